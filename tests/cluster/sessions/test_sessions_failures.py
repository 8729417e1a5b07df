"""What kubectl describes of a lablet that fails is what docs/learner-failures.md shows, the scheduler's words too."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.sessions import NOTE
from tests.support import docs
from tests.support.cluster import Cluster, waiting_reason
from tests.support.lds import LdsSide
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until

pytestmark = pytest.mark.tunnelled

PAGE = docs.ROOT / "docs" / "learner-failures.md"
WHERE = "default"


def shown(heading: str) -> list[str]:
    """The lines that the page shows under a heading."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}$.*?^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"{PAGE} has no block under {heading}"
    return [plain(line) for line in found[1].splitlines() if line.strip() not in {"", "…"}]


def plain(line: str) -> str:
    """A line without its layout and the age of an Event, and without what schedulers before 1.37 say besides."""
    line = line.replace("no new claims to deallocate, ", "")
    return re.sub(r"^((?:Normal|Warning) \S+) (?:<age>|\S+(?: \(x\d+ over \S+\))?) ", r"\1 ", " ".join(line.split()))


def compare(cluster: Cluster, heading: str, name: str = "exam", within_s: float = 135) -> None:
    """Wait until `kubectl describe pod` has all lines of the page, in its order."""
    wanted = shown(heading)

    def same() -> bool:
        said = cluster.kubectl("describe", "pod", name).stdout
        lines = [plain(line) for line in said.splitlines()]
        place = 0
        for line in wanted:
            assert line in lines[place:], f"{heading}: {line!r} is not, or not there, in\n{said}"
            place += lines[place:].index(line) + 1
        return True

    until(same, within_s)


def exam(kind: str, name: str = "exam", **more: Any) -> dict[str, Any]:
    item = pod(name, kind, restartPolicy="Never", **more)
    item["metadata"]["annotations"] = {f"{NOTE}username": "alice"}
    return item


@pytest.fixture(autouse=True)
def no_pods(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.kubectl("delete", "pods", "--all", "--timeout=60s")


def test_lds_answers_503(cluster: Cluster, lds: LdsSide) -> None:
    cluster.define(definition("netlab"))
    lds.fault("status", "^POST /api/v1/sessions$", status=503)
    cluster.apply(exam("netlab"))
    compare(cluster, "The Lab Delivery System answers with errors")
    assert 503 in {one["status"] for one in lds.access_log()}, "the fault was met"
    lds.clear_faults()
    until(lambda: not waiting_reason(cluster.pod(WHERE, "exam")), 120)


def test_worker_has_no_licence(cluster: Cluster) -> None:
    cluster.define(definition("netlab"))
    worker = cluster.workers[0]
    worker.admin("POST", "/licence", {"quota": 0})
    try:
        cluster.apply(exam("netlab"))
        compare(cluster, "The worker has no licence for the devices")
        [lab] = worker.labs()
        assert {device["state"] for device in worker.devices(lab["id"])} == {"QUEUED"}
        compare(cluster, "No licence becomes free", within_s=180)
    finally:
        worker.admin("POST", "/licence", {"quota": 500})


def test_port_range_is_full(cluster: Cluster) -> None:
    cluster.define(definition("netlab", resources={"ports": 4000}))
    cluster.apply(exam("netlab", "first"))
    until(lambda: not waiting_reason(cluster.pod(WHERE, "first")), 90)
    cluster.apply(exam("netlab"))
    compare(cluster, "Every port of the workers is taken")


def test_device_never_boots(cluster: Cluster) -> None:
    cluster.define(definition("netlab", topology({"h0": "alpine", "r1": "csr1000v"})))
    cluster.apply(exam("netlab"))
    compare(cluster, "A device is booting")
    compare(cluster, "A device never boots", within_s=180)


def test_version_is_unknown(cluster: Cluster) -> None:
    cluster.define(definition("netlab"))
    cluster.apply(exam("netlab", version="9.9.9"))
    compare(cluster, "The version of the content is unknown")


def test_work_did_not_pass(cluster: Cluster, lds: LdsSide) -> None:
    """The end of the story as its learner sees it."""
    cluster.define(definition("netlab"))
    cluster.apply(exam("netlab"))
    uid = (cluster.pod(WHERE, "exam") or {})["metadata"]["uid"]
    session = until(lambda: (one := lds.session_of(uid)) and one["devices"] is not None and one, 90)
    assert session
    until(lambda: not waiting_reason(cluster.pod(WHERE, "exam")), 90)
    lds.act(session["id"], "log-in")
    lds.act(session["id"], "answer", {"item": "task-1", "answer": "router ospf 1"})
    lds.act(session["id"], "finish")
    compare(cluster, "The work was graded")
