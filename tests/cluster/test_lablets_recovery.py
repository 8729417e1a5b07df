"""Recovery destroys no work while controllers wait: what stops starts again without a wipe, or is kept (C07, C48).

What was done to a lab is read from the worker's own access log.
"""

from typing import Any

import pytest

from tests.support.cluster import Cluster, container, is_ready, summary
from tests.support.history import History
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until

pytestmark = pytest.mark.tunnelled

MADE = ["import", "start"]


def on(worker: Simulator) -> dict[str, str]:
    return {"kubernetes.io/hostname": worker.node}


def made(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    found = cluster.pod(namespace, name)
    assert found
    return found


def lab_id(cluster: Cluster, found: dict[str, Any]) -> str:
    lab = cluster.lab_of(found)
    assert lab
    return str(lab["id"])


def last_end(found: dict[str, Any], name: str = "lab") -> dict[str, Any]:
    """The `lastState.terminated` of a container; empty if it never ended."""
    ended: dict[str, Any] = container(found, name).get("lastState", {}).get("terminated", {})
    return ended


@pytest.fixture
def name(namespace: str) -> str:
    """The name of the definition of a test."""
    return f"kept-{namespace[-5:]}"


def test_rebooted_worker_brings_all_labs_back(cluster: Cluster, namespace: str, name: str) -> None:
    """All labs stop at once, also one that boots and one of somebody else: ours come back as they were."""
    worker = cluster.workers[2]
    history = History(worker)
    slow = f"slow-{namespace[-5:]}"
    cluster.define(
        definition(name, topology({"h0": "alpine", "h1": "alpine"})), definition(slow, topology({"r": "iosv"}))
    )
    cluster.apply(*(pod(f"ready-{n}", name, nodeSelector=on(worker)) for n in range(3)), namespace=namespace)
    before = {p["metadata"]["uid"]: lab_id(cluster, p) for p in cluster.wait_ready(namespace, 3)}
    foreign = worker.cml("POST", "/labs", {"title": "homework"})["id"]
    cluster.apply(pod("boots", slow, nodeSelector=on(worker)), namespace=namespace)
    boots = made(cluster, namespace, "boots")["metadata"]["uid"]
    until(lambda: history.of(boots) == MADE, 30)
    try:
        worker.reboot()

        def back() -> dict[str, dict[str, Any]]:
            """Give all lablets once all are Ready and those that were before have ended; each does at its own time."""
            pods = {p["metadata"]["uid"]: p for p in cluster.pods(namespace)}
            assert all(is_ready(p) for p in pods.values()), {uid: summary(p) for uid, p in pods.items()}
            ends = {uid: last_end(pods[uid]).get("message", "") for uid in before}
            assert all(end.endswith("(number 1)") for end in ends.values()), ends
            return pods

        after = until(back, 90)
        assert set(after) == {*before, boots}
        for uid, lab in before.items():
            assert lab_id(cluster, after[uid]) == lab
            assert container(after[uid])["restartCount"] == 0, "nothing failed"
            assert last_end(after[uid])["reason"] == "DeviceStopped"
            assert last_end(after[uid])["message"] == "h0, h1 stopped on the worker (number 1)"
        for uid in after:
            assert history.of(uid) == [*MADE, "start"], uid
        assert [entry for entry in history.entries() if entry["lab"] == foreign and "title" not in entry] == []
    finally:
        worker.cml("DELETE", f"/labs/{foreign}")
