"""The provider is killed while lablets with ports come and go: claims, labs and pods agree afterwards, nothing leaks.

R000-022, R000-054, R000-066, R000-067.
"""

import functools
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster, is_ready
from tests.support.simulator import Simulator
from tests.support.topologies import definition, deployment, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.content import NAMESPACE

FIRST, LAST = 10000, 10059
LABLETS, FIT = 50, 30
STEPS = ("claim", "import", "start", "delete")
MOMENTS_S = {"claim": (0.0, 0.0), "import": (0.0, 0.15), "start": (0.0, 0.15), "delete": (0.2, 1.2)}
"""How long after what leads up to a step its request may be under way; a lab is deleted when it was seen wiped."""
DELETE_S = 0.5
EACH, KILLS_MAX = 3, 40
"""How often each step must be hit, and after how many kills it is given up."""
SIX = topology(
    {"r1": "iosv", "pc": "desktop"},
    {"r1": ["serial:4001", "serial:4002:1", "pat:4003:22", "pat:udp:4004:53"], "pc": ["vnc:4005", "serial:4006"]},
)
PODS = "default"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three workers of sixty ports, slow enough that a kill finds requests under way; one provider."""
    made = Sandbox.up(
        "ports-faults",
        directory=tmp_path_factory.mktemp("sandbox"),
        workers=3,
        provider_env={"LEADER_LEASE_TTL": "6"},  # so that its successor has the nodes soon
        worker_args=[["--boot-seconds=0.2-1", "--latency-ms=120", f"--port-range={FIRST}-{LAST}"]],
        worker_spec={"portRange": {"start": FIRST, "end": LAST}},
        tied=True,
    )
    with made:
        yield made


def document(cluster: Cluster, worker: Simulator) -> dict[str, Any]:
    """Read the claims of a worker."""
    found = cluster.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{worker.name}-port-allocations")
    read: dict[str, Any] = json.loads(found["data"]["allocations.json"]) if found else {"lablets": [], "portClaims": []}
    return read


def step_of(entry: dict[str, Any]) -> str:
    """Name the step that a request belongs to; "" for all others."""
    path = entry["path"]
    if entry["method"] == "DELETE":
        return "delete"
    return next((step for step in ("import", "start") if path.endswith(f"/{step}")), "")


def new_entries(cluster: Cluster, marks: dict[str, int]) -> list[dict[str, Any]]:
    """List the requests of a round; all that there ever were would take too long to read."""
    return [entry for worker in cluster.workers for entry in worker.access_log(marks[worker.name])]


def hits(cluster: Cluster, marks: dict[str, int], killed_at: float, placed: set[str]) -> Counter[str]:
    """Tell which steps a kill has hit: requests under way, and Pods that had a node and no import by then."""
    found = Counter[str]()
    imported: set[str] = set()
    for entry in new_entries(cluster, marks):
        if entry["arrived_unix_s"] > killed_at:
            continue
        if "title" in entry:
            imported.add(entry["title"][-36:])
        if (step := step_of(entry)) and entry.get("answered_unix_s", killed_at) >= killed_at:
            found[step] += 1
    found["claim"] = len(placed - imported)
    return found


def is_near(cluster: Cluster, marks: dict[str, int], before: set[str], step: str) -> bool:
    """Tell whether a step is about to be taken, by what comes before it."""
    entries = new_entries(cluster, marks)
    if step in {"claim", "import"}:
        return bool(bound(cluster) - before - {entry["title"][-36:] for entry in entries if "title" in entry})
    sign = "/wipe" if step == "delete" else "/import"
    return any(entry["path"].endswith(sign) for entry in entries)


def bound(cluster: Cluster) -> set[str]:
    """Give the UIDs of Pods that have a node and are not being deleted."""
    return {
        pod["metadata"]["uid"]
        for pod in cluster.pods(PODS)
        if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
    }


def test_kills_leak_no_port_and_no_lab(cluster: Cluster) -> None:
    dice = random.Random(6)
    cluster.define(definition("ported", SIX, version="1.0"))
    cluster.apply(deployment("ported", "ported", LABLETS))
    until(lambda: sum(map(is_ready, cluster.pods(PODS))) == FIT, 270, "thirty lablets run")
    for worker in cluster.workers:
        worker.fault("delay", "^DELETE ", delay_s=DELETE_S)
    total, kills = Counter[str](), 0
    while min(total[step] for step in STEPS) < EACH:
        assert kills < KILLS_MAX, f"after {kills} kills: {dict(total)}"
        running = [pod["metadata"]["name"] for pod in cluster.pods(PODS) if is_ready(pod)]
        marks = {worker.name: worker.last_request() for worker in cluster.workers}
        before = bound(cluster)
        cluster.kubectl("delete", "pod", *dice.sample(running, 12), "--wait=false")
        lacking = [step for step in STEPS if total[step] < EACH]
        wanted = dice.choice(lacking)
        near = functools.partial(is_near, cluster, marks, before, wanted)
        until(near, 90, f"nothing leads up to {wanted}")
        time.sleep(dice.uniform(*MOMENTS_S[wanted]))  # the moment within the step is what is random here
        placed = bound(cluster) - before
        killed_at = time.time()
        status = cluster.sandbox.kill("provider-1")
        assert status.state != "running", status
        kills += 1
        cluster.sandbox.start("provider-1")
        until(lambda: sum(map(is_ready, cluster.pods(PODS))) == FIT, 270, "thirty lablets run again")
        found = hits(cluster, marks, killed_at, placed)
        total.update({step: int(count > 0) for step, count in found.items()})
        sys.stdout.write(f"kill {kills}: {dict(found)}; so far {dict(total)}\n")
    agree(cluster)
    cluster.kubectl("scale", "deployment/ported", "--replicas=0")
    cluster.wait_gone(PODS, within_s=270)
    for worker in cluster.workers:
        until(lambda worker=worker: document(cluster, worker)["lablets"] == [], 60)  # type: ignore[misc]
        assert document(cluster, worker)["portClaims"] == []
        assert worker.labs() == []


def agree(cluster: Cluster) -> None:
    """Compare pods, labs and claims: the same lablets everywhere, the same ports, none twice."""

    def settled() -> bool:
        rows = sum(len(document(cluster, worker)["lablets"]) for worker in cluster.workers)
        labs = sum(len(worker.labs()) for worker in cluster.workers)
        return rows == labs == FIT

    until(settled, 180, "claims and labs are as many as lablets")
    running = [pod for pod in cluster.pods(PODS) if is_ready(pod)]
    for worker in cluster.workers:
        mine = {pod["metadata"]["uid"]: pod for pod in running if pod["spec"]["nodeName"] == worker.node}
        labs = {lab["lab_title"][-36:]: lab["id"] for lab in worker.labs()}
        rows = document(cluster, worker)
        assert set(labs) == set(mine) == {row["podUID"] for row in rows["lablets"]}
        ports = Counter((row["protocol"], row["port"]) for row in rows["portClaims"])
        assert set(ports.values()) <= {1}, "a port twice"
        for uid, pod in mine.items():
            told = json.loads(pod["metadata"]["annotations"]["vkprovider.io/port-mappings"])
            given = sorted(info["allocated_port"] for info in told.values())
            assert given == sorted(row["port"] for row in rows["portClaims"] if uid.startswith(row["podUID"]))
            tags = [tag for device in worker.devices(labs[uid]) for tag in device["tags"]]
            assert (
                sorted(int(part) for tag in tags for part in tag.split(":") if part.isdigit() and int(part) >= FIRST)
                == given
            )
