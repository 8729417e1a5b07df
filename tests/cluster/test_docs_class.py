"""docs/class.md, followed from one class to the next by an instructor with three learners: with and without an LDS."""

import csv
import json
import os
import signal
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.test_lablets_life import done, made
from tests.conftest import SETTINGS
from tests.support import docs
from tests.support.cluster import Cluster, is_ready
from tests.support.lds import LdsSide
from tests.support.ptys import Pty
from tests.support.sandboxes import started
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.tunnels import Tunnel

PAGE = "docs/class.md"
SECTIONS = (
    "The namespace",
    "Before",
    "At the start",
    "Meanwhile",
    "Over their shoulders",
    "At the end",
    "The next class",
)
EXAMPLES = docs.ROOT / "manifests" / "examples"
NAMESPACE = "friday"
LEARNERS = ("alice", "bob", "carol")
NOTE = "vkprovider.io/"
CHECKS = [{"item": "task-1", "matches": "router ospf"}]
"""What a learner must answer to pass."""


@pytest.fixture(scope="module", params=[False, True], ids=["without an LDS", "with an LDS"])
def sandbox(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tunnel: Tunnel
) -> Iterator[Sandbox]:
    """One worker and the admission policies of an installation."""
    checks = tmp_path_factory.mktemp("grader") / "checks.json"
    checks.write_text(json.dumps(CHECKS))
    with started(
        "class",
        tmp_path_factory.mktemp("sandbox"),
        workers=1,
        policies=True,
        lds=request.param,
        lds_args=["--grade=checks", f"--grade-checks={checks}", "--grade-seconds=1"] if request.param else [],
        provider_env=SETTINGS,
        worker_args=[("--boot-seconds=0.3-0.5",)],
        tunnel=tunnel,
    ) as made_:
        yield made_


class Instructor:
    """Has the files that the page names, the namespace as context, and a clock on which 16:00 is hours away.

    Attributes:
        end: The next 16:00 on that clock.
    """

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster, self.home = cluster, directory / "home"
        self.home.mkdir()
        (self.home / "names.csv").write_text("\n".join(LEARNERS))
        definition = yaml.safe_load((EXAMPLES / "netlab.yaml").read_text())
        (self.home / "netlab.yaml").write_text(definition["spec"]["source"]["inline"])
        pool = (EXAMPLES / "pool.yaml").read_text()
        assert "replicas: 24\n" in pool
        (self.home / "pool.yaml").write_text(pool.replace("replicas: 24\n", f"replicas: {len(LEARNERS)}\n"))
        config = yaml.safe_load(cluster.sandbox.kubeconfig.read_text())
        config["contexts"][0]["context"]["namespace"] = NAMESPACE
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        now = datetime.now(UTC)
        ahead_h = 10 - now.hour
        self.end = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(hours=16 - ahead_h)
        path = [str(cluster.sandbox.programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environ = {
            "PATH": os.pathsep.join(path),
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(directory),
            "TERM": "xterm",
            "TZ": f"HERE{-ahead_h}",
        }
        own = {"--replicas=24": f"--replicas={len(LEARNERS)}"}
        self.reader = docs.Reader(self.home, self.environ, own)

    def run(self, heading: str) -> str:
        """Run the commands of a section."""
        return self.reader.run(PAGE, heading)

    def at_terminal(self, command: str) -> Pty:
        """Run one command at a terminal."""
        return Pty(["/bin/sh", "-c", command], {**os.environ, **self.environ}, columns=200)

    def hand_out(self) -> dict[str, dict[str, str]]:
        """Read the rows of the hand-out by learner."""
        with (self.home / "hand-out.csv").open(newline="") as file:
            return {row["learner"]: row for row in csv.DictReader(file)}


def replicas(cluster: Cluster) -> int:
    found = cluster.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/warm")
    assert found
    return int(found["spec"]["replicas"])


def pods(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The Pods of the learners by name of the learner; one Pod for each."""
    found = [pod for pod in cluster.pods(NAMESPACE) if f"{NOTE}username" in pod["metadata"].get("annotations", {})]
    assert len({pod["metadata"]["annotations"][f"{NOTE}username"] for pod in found}) == len(found)
    return {pod["metadata"]["annotations"][f"{NOTE}username"]: pod for pod in found}


def uids(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {learner: pod["metadata"]["uid"] for learner, pod in found.items()}


def ends(cluster: Cluster) -> set[datetime]:
    """When the learners' time ends."""
    notes = [pod["metadata"]["annotations"] for pod in pods(cluster).values()]
    return {datetime.fromisoformat(each[f"{NOTE}timeslot-end"]) for each in notes}


def give(here: Instructor, lds: LdsSide | None) -> None:
    """Follow "At the start": each learner gets one of the lablets that were warm, and a row in the hand-out."""
    cluster = here.cluster
    warm = {pod["metadata"]["uid"] for pod in cluster.pods(NAMESPACE)}
    here.run("At the start")
    given = pods(cluster)
    assert given.keys() == set(LEARNERS)
    assert set(uids(given).values()) == warm, "those that were warm, and no others"
    assert replicas(cluster) == 0
    assert ends(cluster) == {here.end}
    assert {learner: row["name"] for learner, row in here.hand_out().items()} == {
        learner: pod["metadata"]["name"] for learner, pod in given.items()
    }

    def complete() -> bool:
        here.run("At the start")
        way = lds.lds.url if lds else "h0 serial "
        return all(way in row["access"] for row in here.hand_out().values())

    until(complete, 60, "the hand-out has no way to the labs", every_s=1)
    assert uids(pods(cluster)) == uids(given), "who has a lablet keeps it"
    assert (ends(cluster), replicas(cluster)) == ({here.end}, 0)


def look_over_a_shoulder(here: Instructor, watch: str) -> None:
    """The watcher sees what the learner types."""
    with (
        here.at_terminal("kubectl lablet console -u alice h0") as learner,
        here.at_terminal(watch.partition("#")[0]) as watcher,
    ):
        learner.shows("Escape character")
        watcher.shows(f"{len(LEARNERS)} consoles of h0")
        watcher.shows("alice | h0:~#")
        learner.type("echo work of alice\r")
        learner.shows("work of alice")
        watcher.shows("alice | work of alice")
        os.killpg(watcher.process.pid, signal.SIGINT)  # Ctrl-C, at a terminal that controls its programs
        assert watcher.ends() != 0
        learner.type("\x1d")
        assert learner.ends() == 0


def wipe(here: Instructor, reset: str) -> None:
    """The lab of one learner is wiped after a question, and nobody else's; the learner keeps it."""
    cluster, [worker] = here.cluster, here.cluster.workers
    before, since = pods(cluster), worker.last_request()
    with here.at_terminal(reset.partition("#")[0]) as asked:
        asked.shows("where bob may have worked")
        asked.type("y\r")
        assert asked.ends() == 0
    until(lambda: done(worker, since) == ["extract", "stop", "wipe", "start"], 60)
    until(lambda: is_ready(pods(cluster)["bob"]), 60)
    lab = cluster.lab_of(before["bob"])
    assert lab
    changed = {e["path"].split("/labs/")[1].split("/")[0] for e in worker.access_log(since) if "/wipe" in e["path"]}
    assert changed == {lab["id"]}
    assert uids(pods(cluster)) == uids(before)


def answer(lds: LdsSide, sessions: dict[str, dict[str, Any]]) -> None:
    """Alice answers well, Bob badly, Carol never logs in."""
    for learner, text in (("alice", "router ospf 1"), ("bob", "no idea")):
        lds.act(sessions[learner]["id"], "log-in")
        lds.act(sessions[learner]["id"], "answer", {"item": "task-1", "answer": text})


def sessions_of(lds: LdsSide, given: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The sessions by learner, when each has one."""
    found = {learner: lds.session_of(uid) for learner, uid in uids(given).items()}
    assert all(found.values())
    return {learner: session for learner, session in found.items() if session}


def collect(here: Instructor, *, graded: bool) -> None:
    """Follow "At the end": the grades, the files of each learner, and no lab is left."""
    cluster = here.cluster
    said = here.run("At the end").splitlines()
    rows = [line.split() for line in said if line.split()[:1] in [[learner] for learner in LEARNERS]]
    told = {row[0]: row[1:3] if graded else [] for row in rows}
    wanted = {"alice": ["yes", "1"], "bob": ["no", "0"], "carol": ["no", "0"]}
    assert told == {learner: wanted[learner] if graded else [] for learner in LEARNERS}, said
    with zipfile.ZipFile(here.home / "friday.zip") as packed:
        files = {name: packed.read(name).decode() for name in packed.namelist()}
    assert {name.partition("/")[0] for name in files} == set(LEARNERS), "a folder for each learner"
    for learner in LEARNERS:
        assert "hostname h0" in files[f"{learner}/h0.cfg"]
        assert (f"{learner}/responses.json" in files) == graded
    assert not graded or "router ospf 1" in files["alice/responses.json"]
    until(lambda: not cluster.pods(NAMESPACE), 90, "those without a place in the pool stay")
    assert [lab["lab_title"] for worker in cluster.workers for lab in worker.labs()] == []


@pytest.mark.timeout(600)
def test_day_of_a_class(cluster: Cluster, tmp_path: Path) -> None:
    cluster.kubectl("create", "namespace", NAMESPACE)
    lds = LdsSide(cluster.sandbox.lds) if cluster.sandbox.lds else None
    here = Instructor(cluster, tmp_path)
    here.run("The namespace")

    assert "booted in" in here.run("Before")
    free = cluster.wait_ready(NAMESPACE, len(LEARNERS))
    assert {pod["metadata"]["labels"]["class"] for pod in free} == {"friday"}
    assert pods(cluster) == {}

    give(here, lds)
    cluster.wait_ready(NAMESPACE, len(LEARNERS))
    given = pods(cluster)
    if lds:
        answer(lds, sessions_of(lds, given))
        alice = given["alice"]["metadata"]["name"]
        until(lambda: made(cluster, NAMESPACE, alice)["metadata"]["annotations"][f"{NOTE}state"] == "RUNNING", 60)
        bob = given["bob"]["metadata"]["name"]
        until(lambda: made(cluster, NAMESPACE, bob)["metadata"]["annotations"][f"{NOTE}state"] == "RUNNING", 60)

    said = here.run("Meanwhile")
    for learner in LEARNERS:
        [row] = [line for line in said.splitlines() if line.startswith(f"{learner} ")]
        assert ("working" if lds and learner != "carol" else "ready") in row
    assert ends(cluster) == {here.end + timedelta(minutes=15)}

    [block] = [block for block in docs.blocks(PAGE) if block.heading == "Over their shoulders"]
    watch, reset = block.text.splitlines()
    look_over_a_shoulder(here, watch)
    wipe(here, reset)

    collect(here, graded=lds is not None)

    here.run("The next class")
    cluster.wait_ready(NAMESPACE, len(LEARNERS))
    assert pods(cluster) == {}, "nobody has one"
    cluster.kubectl("delete", "deployment", "warm", f"--namespace={NAMESPACE}")
    cluster.wait_gone(NAMESPACE)


def test_every_block_of_the_page_is_executed_and_they_are_ten_commands() -> None:
    blocks = docs.blocks(PAGE)
    assert tuple(block.heading for block in blocks) == SECTIONS
    day = [line for block in blocks if block.heading in SECTIONS[1:-1] for line in block.text.splitlines()]
    assert len(day) == 10
