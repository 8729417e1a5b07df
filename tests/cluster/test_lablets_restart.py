"""The provider's process is killed while lablets are at every step: no second lab, none lost (R004-050)."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.cluster import Cluster, container, is_ready, waiting_reason
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod, topology
from tests.support.waiting import until

pytestmark = pytest.mark.tunnelled


class Log:
    """What was done to labs on the workers since the test began, by Pod UID."""

    def __init__(self, cluster: Cluster) -> None:
        self._workers = {worker.name: (worker, worker.last_request()) for worker in cluster.workers}

    def counts(self, uid: str) -> Counter[str]:
        """Count what succeeded for one Pod: `import`, `start`, `stop`, `wipe`, `DELETE`."""
        found: Counter[str] = Counter()
        for worker, since in self._workers.values():
            entries = [e for e in worker.access_log(since) if e["method"] != "GET" and e.get("status", 0) < 300]
            labs = {e["lab"] for e in entries if e.get("title", "").endswith(uid)}
            found["import"] += len(labs)
            for entry in entries:
                parts = entry["path"].split("/")
                if len(parts) > 4 and parts[4] in labs and "status" in entry:
                    found[entry["method"] if entry["method"] == "DELETE" else parts[-1]] += 1
        return found


def in_flight(worker: Simulator, route: str) -> Callable[[], bool]:
    """Tell whether a delayed request has met its fault: there is one fewer to come."""
    return lambda: any(f["route"] == route and f["count"] == 99 for f in worker.admin("GET", "/faults"))


def slow_down(worker: Simulator, route: str) -> None:
    worker.fault("delay", route, delay_s=3, count=100)


def made(cluster: Cluster, namespace: str, name: str) -> dict[str, Any]:
    found = cluster.pod(namespace, name)
    assert found
    return found


def test_every_step_survives_the_end_of_the_provider(cluster: Cluster, namespace: str) -> None:
    """R000-022, R000-067, R004-033; the write-ahead claim of C24, the search of C31."""
    one, two, three = cluster.workers
    fast, slow = f"fast-{namespace[-5:]}", f"slow-{namespace[-5:]}"
    cluster.define(definition(fast), definition(slow, topology({"r1": "iosv"})))

    def put(name: str, what: str, worker: Simulator) -> str:
        cluster.apply(pod(name, what, nodeSelector={"kubernetes.io/hostname": worker.node}), namespace=namespace)
        return str(made(cluster, namespace, name)["metadata"]["uid"])

    def delete(name: str, *how: str) -> None:
        cluster.kubectl("delete", "pod", name, *how, "--wait=false", f"--namespace={namespace}")

    log = Log(cluster)
    ready = put("ready", fast, three)
    crashed = put("crashed", fast, three)
    stopping, deleting, forced = put("stopping", fast, one), put("deleting", fast, two), put("forced", fast, three)
    cluster.wait_ready(namespace, 5)
    starting = put("starting", slow, three)
    until(lambda: log.counts(starting)["start"] == 1, 30)
    slow_down(one, "/import$")
    slow_down(one, "/stop$")
    slow_down(two, "^DELETE")
    delete("stopping")
    delete("deleting")
    importing = put("importing", fast, one)
    until(in_flight(one, "/import$"), 30)
    until(in_flight(one, "/stop$"), 30)
    until(in_flight(two, "^DELETE"), 30)
    before = made(cluster, namespace, "ready")
    holder = cluster.health()["instance_id"]

    cluster.sandbox.kill("provider-1")
    late = put("late", fast, two)
    delete("forced", "--force", "--grace-period=0")
    lab = three.lab_of(crashed)
    assert lab
    three.crash(lab["id"], "h0")
    cluster.sandbox.start("provider-1")

    until(lambda: log.counts(crashed)["start"] == 2, 60, "its Pod may still show Ready from before the crash")
    cluster.wait_ready(namespace, 5, within_s=135)
    until(lambda: cluster.cmlworker(one)["status"]["owner"] == cluster.health()["instance_id"] != holder, 45)
    assert {p["metadata"]["uid"] for p in cluster.pods(namespace)} == {ready, crashed, starting, importing, late}
    for uid in (ready, starting, importing, late):
        assert log.counts(uid) == {"import": 1, "start": 1}, uid
    assert log.counts(crashed) == {"import": 1, "start": 2}
    for uid in (stopping, deleting, forced):
        until(lambda uid=uid: log.counts(uid)["DELETE"] >= 1, 60, "a lab stays")  # type: ignore[misc]
        assert log.counts(uid)["import"] == log.counts(uid)["DELETE"] == 1, log.counts(uid)
    titles = sorted(lab["lab_title"][-36:] for worker in cluster.workers for lab in worker.labs())
    assert titles == sorted([ready, crashed, starting, importing, late])
    after = made(cluster, namespace, "ready")
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    ended = container(made(cluster, namespace, "crashed"))["lastState"]["terminated"]
    assert ended["message"] == "h0 stopped on the worker (number 1)"


def test_worker_restart_is_survived_by_a_lablet_in_the_making(cluster: Cluster, namespace: str) -> None:
    """The controller itself restarts, with its labs, while one of them is being imported."""
    worker = cluster.workers[1]
    name = f"anew-{namespace[-5:]}"
    cluster.define(definition(name))
    worker.fault("delay", "/import$", delay_s=10)
    cluster.apply(pod("anew", name, nodeSelector={"kubernetes.io/hostname": worker.node}), namespace=namespace)
    until(lambda: waiting_reason(cluster.pod(namespace, "anew")) == "ImportingLab", 30)
    cluster.sandbox.kill(worker.process)
    until(lambda: not is_ready(cluster.node(worker)), 45)
    cluster.sandbox.start(worker.process)
    [ready] = cluster.wait_ready(namespace, 1)
    assert [lab["lab_title"][-36:] for lab in worker.labs()] == [ready["metadata"]["uid"]]
