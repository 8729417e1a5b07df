"""Two hours ahead or behind, one process after the other: no lab ends, nothing is done twice (R004-030, C04)."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import pytest

from tests.cluster.sessions import NOTE, learner
from tests.support.clocks import wrong_by
from tests.support.cluster import Cluster
from tests.support.consoles import running_lab
from tests.support.lds import LdsSide
from tests.support.plugin import succeeded
from tests.support.relay import haproxy_or_skip
from tests.support.replicas import SKEW, Replicas
from tests.support.sandboxes import started
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import throughout, until
from vkprovider.platform.times import iso
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE

pytestmark = pytest.mark.timeout(600)

OFF_S: Final = 7200
PROGRAMS: Final = ("provider-1", "portal-1", "mux")
"""Those that read the API server's clock."""
AGENT: Final = "agent-worker-1"
"""It reads no clock but that of its own CML."""
WATCHED_S: Final = 40
"""Longer than two answers of the API server must lie apart, until something may end."""
CLASS: Final = "net-a"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Everything once: one worker behind a broker, an LDS, a mux, and two replicas each of provider and portal."""
    haproxy_or_skip()
    with started(
        "wrong-clocks",
        tmp_path_factory.mktemp("clocks"),
        workers=1,
        replicas=2,
        tunnel="mqtt",
        lds=True,
        mux=True,
        portals=2,
        worker_args=[["--boot-seconds=0.3-0.6"]],
        worker_spec={"portRange": {"start": 5000, "end": 5999}},
        provider_env={"WORKER_PROBE_SECONDS": "1", "RECONCILE_INTERVAL": "5"},
        portal_env={"VKPROVIDER_PORTAL_DURATION_SECONDS": "3600"},
    ) as made:
        yield made


class Seen(NamedTuple):
    """What a clock that is off must not change.

    Attributes:
        pods: Of each Pod: its UID, how often its containers began again, the end of its time.
        labs: On CML: their ids and states.
        commands: How often CML was told to import, start, stop and wipe each lab.
        sessions: Of the LDS: their ids and states.
        ports: Of the mux, by device.
    """

    pods: dict[str, tuple[str, tuple[int, ...], str]]
    labs: dict[str, str]
    commands: dict[str, dict[str, int]]
    sessions: dict[str, str]
    ports: dict[str, int]


def looked(cluster: Cluster) -> Seen:
    pods = [each for each in cluster.items("/api/v1/pods") if "runtimeClassName" in each["spec"]]
    notes = {each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in pods}
    [worker] = cluster.workers
    assert cluster.sandbox.lds is not None
    access = [json.loads(each.get(f"{NOTE}access", "{}")) for each in notes.values()]
    return Seen(
        {
            each["metadata"]["name"]: (
                each["metadata"]["uid"],
                tuple(status["restartCount"] for status in each["status"]["containerStatuses"]),
                notes[each["metadata"]["name"]].get(f"{NOTE}timeslot-end", ""),
            )
            for each in pods
        },
        {str(lab["id"]): str(lab["state"]) for lab in worker.labs()},
        {command: dict(seen) for command, seen in Replicas(cluster).commands_seen().items()},
        {str(one["id"]): str(one["state"]) for one in LdsSide(cluster.sandbox.lds).sessions()},
        {slot: port["port"] for each in access for slot, port in each.items() if port["state"] == "live"},
    )


def is_serving(cluster: Cluster, process: str) -> bool:
    """Tell whether a process takes part again: it has found its clock, if it reads one, to be off."""
    replicas = Replicas(cluster)
    if process == AGENT:
        return cluster.sandbox.process(process).state == "running" and replicas.all_nodes_ready()
    try:
        return not replicas.missing(process) and abs(replicas.metric(process, SKEW)) > OFF_S - 60
    except (OSError, StopIteration):
        return False


def exposed(cluster: Cluster, namespace: str) -> None:
    """Have a lablet of alice whose hour has begun, with a session of the LDS and a port at the mux."""
    cluster.define(
        definition("timed", topology({"r1": "iosv"}, {"r1": ["serial:5001"]}), expose={"mux": f"labs.{NAMESPACE}"})
    )
    now = int(time.time())
    notes = {"timeslot-start": iso(now - 60), "timeslot-end": iso(now + 3600)}
    cluster.apply(learner("timed", "timed", "alice", notes=notes), namespace=namespace)
    cluster.wait_ready(namespace, 1)


@pytest.fixture(scope="module")
def seen(sandbox: Sandbox) -> Iterator[Seen]:
    """What there is before any clock is off: a lablet of alice and a lab of bob, each for an hour."""
    cluster = Cluster(sandbox)
    namespace, class_ = cluster.create_namespace("timed"), cluster.create_namespace(CLASS)
    exposed(cluster, namespace)
    with running_lab(cluster, class_, "bob"):

        def all_there() -> Seen:
            found = looked(cluster)
            assert len(found.pods) == 2, found
            assert len(found.sessions) == 2, found
            assert found.ports, found
            return found

        yield until(all_there, 60)


@pytest.mark.parametrize("sign", [1, -1], ids=["ahead", "behind"])
@pytest.mark.parametrize("process", [*PROGRAMS, AGENT])
def test_a_process_whose_clock_is_off_ends_nothing(cluster: Cluster, seen: Seen, process: str, sign: int) -> None:
    def unchanged() -> bool:
        assert looked(cluster) == seen
        return Replicas(cluster).all_nodes_ready()

    cluster.sandbox.stop(process, grace_s=20)
    try:
        cluster.sandbox.start(process, wrong_by(sign * OFF_S))
        until(lambda: is_serving(cluster, process), 60, f"{process} does not serve")
        throughout(unchanged, WATCHED_S, every_s=1)
        if process != AGENT:
            said = "ahead of" if sign > 0 else "behind"
            page = Replicas(cluster).page(process, "/ready").decode()
            assert said in page, page
    finally:
        cluster.sandbox.stop(process, grace_s=20)
        cluster.sandbox.start(process)
    until(lambda: looked(cluster) == seen, 60)


@pytest.mark.parametrize("sign", [1, -1], ids=["ahead", "behind"])
def test_kubectl_lablet_on_a_laptop_whose_clock_is_off_gives_the_time_it_says(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch, sign: int
) -> None:
    cluster.define(definition("given"))
    item = pod("given", "given")
    item["metadata"]["labels"] = {f"{NOTE}pool": "evening"}
    cluster.apply(item, namespace=namespace)
    cluster.wait_ready(namespace, 1)
    for name, value in wrong_by(sign * OFF_S).items():
        monkeypatch.setenv(name, value)
    succeeded(cluster, "assign", "given", "carol", "-n", namespace, "--until", "1h")
    monkeypatch.undo()
    [found] = cluster.pods(namespace)
    end = datetime.fromisoformat(found["metadata"]["annotations"][f"{NOTE}timeslot-end"])
    assert abs(end - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=2)
