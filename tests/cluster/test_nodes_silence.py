"""A worker that does not answer, and what the stock controllers do with its Node and its lablets."""

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster, condition, is_ready
from tests.support.extra import Extra, extra_worker
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod
from tests.support.waiting import until

SYSTEM = "vkprovider-system"


def on(worker: Simulator) -> dict[str, str]:
    """A node selector."""
    return {"kubernetes.io/hostname": worker.node}


def writes(worker: Simulator, since: int) -> list[str]:
    """What was done on a worker, besides reading and logging in."""
    entries = worker.access_log(since)
    return [f"{e['method']} {e['path']}" for e in entries if e["method"] != "GET" and "authenticate" not in e["path"]]


def unready(item: dict[str, Any] | None) -> dict[str, Any]:
    """Give an object if its condition Ready is False, else nothing."""
    return item if item and condition(item, "Ready").get("status") == "False" else {}


def reasons(cluster: Cluster, namespace: str, name: str) -> set[str]:
    return {event["reason"] for event in cluster.events(namespace, name)}


@pytest.mark.parametrize(("mode", "seconds"), [("hold", 120), ("refuse", 60)])
def test_silence_is_told_and_forgotten(cluster: Cluster, namespace: str, mode: str, seconds: float) -> None:
    """R004-047, R004-049: Ready turns False on node and lablets, with the reason, and True again; nothing is lost."""
    silent, other = cluster.workers[0], cluster.workers[1]
    cluster.define(definition("quiet"))
    cluster.apply(
        pod("there", "quiet", nodeSelector=on(silent)),
        pod("elsewhere", "quiet", nodeSelector=on(other)),
        namespace=namespace,
    )
    before = {p["metadata"]["name"]: p["metadata"]["uid"] for p in cluster.wait_ready(namespace, 2)}
    since = silent.last_request()
    silent.silence(seconds, mode)

    node = until(lambda: unready(cluster.node(silent)), 90, "the node stays Ready")
    assert condition(node, "Ready")["reason"] == "WorkerUnreachable"
    assert ("no response" if mode == "hold" else "refused") in condition(node, "Ready")["message"]
    told_worker = until(lambda: unready(cluster.cmlworker(silent)), 30, "the CMLWorker stays Ready")
    assert condition(told_worker, "Ready")["reason"] == "WorkerUnreachable"
    there = until(lambda: unready(cluster.pod(namespace, "there")), 30)
    assert there["status"]["phase"] == "Running"
    assert condition(there, "Ready")["reason"] == "WorkerUnreachable"
    assert condition(there, "ContainersReady")["status"] == "False"
    assert silent.name in condition(there, "Ready")["message"]
    assert is_ready(cluster.node(other))
    assert is_ready(cluster.pod(namespace, "elsewhere"))
    told = {"there": namespace, silent.node: "default"}
    for name, where in told.items():
        until(lambda name=name, where=where: "WorkerUnreachable" in reasons(cluster, where, name), 30)  # type: ignore[misc]

    if mode == "hold":
        until(lambda: "kubernetes.io/not-ready" in str((cluster.node(silent) or {})["spec"]["taints"]), 30)
        silent.clear_faults()
    until(lambda: is_ready(cluster.node(silent)), 120, "the node stays not Ready")  # a silence of 60 s ends by itself
    after = {p["metadata"]["name"]: p for p in cluster.wait_ready(namespace, 2)}
    assert {name: p["metadata"]["uid"] for name, p in after.items()} == before
    assert "reason" not in condition(after["there"], "Ready")
    assert writes(silent, since) == []


def faults(entries: list[dict[str, Any]]) -> list[str]:
    """The injected faults that requests met, in order."""
    return [entry["fault"] for entry in entries if entry.get("fault")]


def test_one_lost_probe_is_no_silence(cluster: Cluster) -> None:
    worker = cluster.workers[2]
    before = condition(cluster.node(worker), "Ready")
    since = worker.last_request()
    worker.fault("drop", "^GET /api/v0/labs$", count=2)
    until(lambda: faults(worker.access_log(since)) == ["drop", "drop"], 45)
    dropped = worker.last_request()
    until(lambda: any(e["path"] == "/api/v0/labs" and e.get("status") == 200 for e in worker.access_log(dropped)), 45)
    assert condition(cluster.node(worker), "Ready") == before


def test_changed_password_needs_no_restart_and_touches_no_lablet(cluster: Cluster, namespace: str) -> None:
    worker = cluster.workers[1]
    cluster.define(definition("guarded"))
    cluster.apply(pod("guarded", "guarded", nodeSelector=on(worker)), namespace=namespace)
    [before] = cluster.wait_ready(namespace, 1)
    since, old, identity = worker.last_request(), worker.password, cluster.health()["instance_id"]

    def store(password: str) -> None:
        data = {"data": {"password": base64.b64encode(password.encode()).decode()}}
        cluster.patch(f"/api/v1/namespaces/{SYSTEM}-logins/secrets/{worker.process}", data)

    worker.set_password("an-0ther-secret")
    try:
        told = condition(until(lambda: unready(cluster.node(worker)), 45), "Ready")
        assert told["reason"] == "CredentialsInvalid"
        assert "Secret" in told["message"]
        store("an-0ther-secret")
        until(lambda: is_ready(cluster.node(worker)), 60, "the new password is not read")
        [after] = cluster.wait_ready(namespace, 1)
    finally:
        worker.set_password(old)
        store(old)
    until(lambda: is_ready(cluster.node(worker)), 60)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert writes(worker, since) == []
    assert cluster.health()["instance_id"] == identity
    refused = [e for e in worker.access_log(since) if e.get("status") == 403]
    assert len(refused) <= 8, "a wrong password is tried again and again"
    for place in (cluster.sandbox.layout.log("provider-1").read_text(), str(cluster.events("default", worker.node))):
        assert "an-0ther-secret" not in place


@pytest.fixture
def extra(cluster: Cluster) -> Iterator[Extra]:
    with extra_worker(cluster, "counted", capacity=None, stats="On") as extra:
        yield extra


def test_capacity_comes_from_cml_and_foreign_labs_are_taken_off(cluster: Cluster, extra: Extra, namespace: str) -> None:
    """R004-047: `stats: On`."""
    extra.wait_ready()

    def amounts(kind: str) -> dict[str, str]:
        found: dict[str, str] = (extra.node or {})["status"][kind]
        return found

    assert amounts("capacity").items() >= {"cpu": "256", "memory": "1Ti", "vkprovider.io/lab-nodes": "500"}.items()
    assert amounts("allocatable") == amounts("capacity")
    cluster.define(definition("counted", environment="counted"))
    cluster.apply(pod("ours", "counted"), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    lab = extra.simulator.cml("POST", "/labs", {"title": "somebody else's"})["id"]
    node = {"label": "r1", "node_definition": "iosv", "x": 0, "y": 0}
    for number in (1, 2):
        extra.simulator.cml("POST", f"/labs/{lab}/nodes", {**node, "label": f"r{number}"})
    extra.simulator.cml("PUT", f"/labs/{lab}/start")
    left = {"cpu": "254", "memory": "1023Gi", "vkprovider.io/lab-nodes": "498"}
    until(lambda: amounts("allocatable").items() >= left.items(), 60, "foreign labs are not taken off")
    assert amounts("capacity")["cpu"] == "256"
    until(lambda: (cluster.get(extra.path) or {})["status"]["labs"] == {"ours": 1, "foreign": 1}, 60)

    cluster.patch(extra.path, {"spec": {"stats": "Off"}})
    told = condition(until(lambda: unready(extra.node), 30), "Ready")
    assert told["reason"] == "CapacityUnknown"
    assert "labNodes" in told["message"]
    until(lambda: condition(cluster.get(extra.path), "Ready")["reason"] == "CapacityUnknown", 30)
    cluster.patch(extra.path, {"spec": {"capacity": {"cpu": 8, "memory": "8Gi", "labNodes": 10, "labs": 3}}})
    extra.wait_ready()
    assert amounts("allocatable").items() >= {"cpu": "8", "memory": "8Gi", "pods": "3"}.items()
    [lablet] = cluster.wait_ready(namespace, 1)
    assert lablet["status"]["containerStatuses"][0]["restartCount"] == 0
