"""Three replicas share thirty workers: kills, a pause, an API server that is away (R004-024…039)."""

import json
import random
import signal
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.support.cluster import Cluster, Refused, is_ready
from tests.support.replicas import Replicas, since_ready
from tests.support.topologies import definition, deployment, topology
from tests.support.waiting import until
from vkpsandbox import Sandbox

WORKERS, LABLETS, ROUNDS, CALM_KILLS = 30, 150, 5, 15
IN_FLIGHT_MIN = 60
TAKEN_S, READY_S, APART_S, WHOLE_S = 15.0, 90.0, 20.0, 1200.0
PAUSE_S, OUTAGE_S = 60, 120
TOLD_S = 1.0
"""How far the time on a Lease may be behind: it is the API server's, whose answers tell whole seconds."""
FENCE_S = 8.0
"""Of LEADER_LEASE_TTL: how long after its last renewal a replica may act."""
LED = {"labletdefinitions", "runtimeclasses"}
"""What the replica that leads writes."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three replicas, thirty simulated workers whose labs take a minute to boot, an audit log."""
    made = Sandbox.up(
        "sharding",
        directory=tmp_path_factory.mktemp("sharding"),
        workers=WORKERS,
        replicas=3,
        worker_args=[["--boot-seconds=60", "--boot=iosv=2"]],
        audit=True,
        tied=True,
    )
    with made:
        yield made


def start(cluster: Cluster, name: str, device: str = "alpine") -> None:
    """Begin the lablets of a Deployment."""
    cluster.define(definition(name, topology({"h0": device})))
    cluster.apply(deployment(name, name, LABLETS))
    cluster.delete_later("deployment", name)


def test_kills_lose_nothing_and_double_nothing(cluster: Cluster, replicas: Replicas) -> None:
    rand = random.Random(5)  # the same kills every time
    took: list[float] = []
    ready_after: list[float] = []
    begun, turned = time.monotonic(), replicas.nodes_turned()
    for number in range(ROUNDS):
        start(cluster, f"round-{number}")
        until(lambda: full(cluster), 90)
        wanted = IN_FLIGHT_MIN + rand.randrange(60)
        until(lambda: in_flight(cluster, replicas) >= wanted, 180)  # noqa: B023 (called at once)
        killed = time.monotonic()
        took.append(replicas.kill(rand.choice(replicas.processes), TAKEN_S))
        cluster.wait_ready("default", LABLETS, within_s=READY_S)
        ready_after.append(time.monotonic() - killed)
        replicas.once_each()
        if number < ROUNDS - 1:
            cluster.kubectl("delete", "deployment", f"round-{number}")
            cluster.wait_gone("default", within_s=180)
        until(replicas.is_balanced, 90)
    ready = since_ready(cluster.pods("default"))
    for _ in range(CALM_KILLS):
        killed = time.monotonic()
        took.append(replicas.kill(rand.choice(replicas.processes), TAKEN_S))
        until(replicas.is_balanced, 90)
        time.sleep(max(0.0, killed + APART_S - time.monotonic()))
    assert since_ready(cluster.wait_ready("default", LABLETS)) == ready
    replicas.once_each()
    assert replicas.nodes_turned() == turned, "a node was NotReady for a while"
    sys.stdout.write(
        f"{len(took)} kills, taken over after {max(took):.1f} s at most, all Ready after {max(ready_after):.1f} s at "
        f"most, {time.monotonic() - begun:.0f} s in all\n"
    )
    assert max(took) <= TAKEN_S, took
    assert max(ready_after) <= READY_S, ready_after
    assert time.monotonic() - begun <= WHOLE_S


def in_flight(cluster: Cluster, replicas: Replicas) -> int:
    """Count the labs between their import and their convergence."""
    imports, _ = replicas.seen_by_cml()
    return sum(imports[pod["metadata"]["uid"]] > 0 and not is_ready(pod) for pod in cluster.pods("default"))


def full(cluster: Cluster) -> list[dict[str, Any]]:
    """Give all pods, when all are bound."""
    pods = cluster.pods("default")
    assert len([p for p in pods if p["spec"].get("nodeName")]) == LABLETS
    return pods


def test_paused_replica_does_nothing_late(cluster: Cluster, replicas: Replicas) -> None:
    start(cluster, "paused")
    until(lambda: full(cluster), 90)
    process = "provider-2"
    sleeper = replicas.identity(process)
    until(lambda: sum(replicas.seen_by_cml()[1].values()) >= IN_FLIGHT_MIN, 180)
    assert replicas.nodes_of(sleeper)
    stopped = time.time()
    cluster.sandbox.kill(process, signal.SIGSTOP)
    until(lambda: not replicas.nodes_of(sleeper), 45, "its nodes are not taken")
    while time.time() < stopped + PAUSE_S:
        replicas.all_nodes_ready()
        time.sleep(1)
    woken = time.time()
    cluster.sandbox.kill(process, signal.SIGCONT)
    until(replicas.is_balanced, 90)
    cluster.wait_ready("default", LABLETS, within_s=270)
    replicas.once_each()
    leases = replicas.leases()
    again = {
        node: datetime.fromisoformat(spec["acquireTime"]).timestamp()
        for node, spec in leases.items()
        if spec["holderIdentity"] == sleeper
    }
    assert again, "it never came back to work"
    late = late_at_cml(cluster, sleeper, stopped, again) + late_writes(cluster, sleeper, stopped, again)
    assert not late, late
    assert min(again.values()) > woken - TOLD_S


def late_at_cml(cluster: Cluster, replica: str, stopped: float, again: dict[str, float]) -> list[str]:
    """Name the requests that reached a worker after the deadline, from a replica that had its node no more.

    The logs must show that it sent some before: under another agent's name nothing could ever be late.
    """
    sent = [
        (worker, entry)
        for worker in cluster.workers
        for entry in worker.access_log()
        if replica in entry.get("agent", "")
    ]
    assert any(entry["arrived_unix_s"] < stopped for _, entry in sent), f"no log names {replica} as an agent"
    return [
        f"{worker.name}: {entry['method']} {entry['path']} {entry['arrived_unix_s'] - stopped:.1f} s"
        for worker, entry in sent
        if stopped + FENCE_S + 1 < entry["arrived_unix_s"] < again.get(worker.node, 1e12)
    ]


def late_writes(cluster: Cluster, replica: str, stopped: float, again: dict[str, float]) -> list[str]:
    """Name the writes that reached a Node, node Lease, Pod or Event likewise, from the API server's audit log.

    Definitions and their RuntimeClasses belong to no Node: the replica that leads writes them, once it has renewed
    its own Lease.
    """
    assert cluster.sandbox.audit_log
    nodes = {p["metadata"]["name"]: p["spec"].get("nodeName", "") for p in cluster.pods("default")}
    late, before, renewed = [], 0, 1e12
    for raw in cluster.sandbox.audit_log.read_text().splitlines():
        entry = json.loads(raw)
        ref = entry.get("objectRef", {})
        if replica not in entry.get("userAgent", "") or entry["verb"] in {"get", "list", "watch"}:
            continue
        before += datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp() < stopped
        begun = datetime.fromisoformat(entry["requestReceivedTimestamp"]).timestamp()
        if ref.get("resource") == "leases" and ref.get("namespace") != "kube-node-lease":  # its membership
            if begun > stopped + FENCE_S and entry.get("responseStatus", {}).get("code") in {200, 201}:
                renewed = min(renewed, begun)
            continue
        if ref.get("resource") in LED and begun >= renewed:
            continue
        node = ref["name"] if ref["resource"] in {"nodes", "leases"} else nodes.get(ref.get("name", ""), "")
        if ref["resource"] == "cmlworkers":
            node = f"vnode.{ref['name']}"
        if stopped + FENCE_S + 1 < begun < again.get(node, min(again.values())) - 1:
            late.append(f"{entry['verb']} {ref['resource']} {ref.get('name')} {begun - stopped:.1f} s")
    assert before, f"the audit log names {replica} as no agent"
    return late


def test_away_api_server_costs_nobody_anything(cluster: Cluster, replicas: Replicas) -> None:
    start(cluster, "outage", "iosv")
    ready = since_ready(cluster.wait_ready("default", LABLETS, within_s=360))
    assert len(ready) == LABLETS
    before = replicas.epochs()
    requests = {worker.name: worker.last_request() for worker in cluster.workers}
    cluster.sandbox.stop("kube-apiserver")
    time.sleep(OUTAGE_S)
    assert cluster.sandbox.process("kube-apiserver").state == "stopped"
    cluster.sandbox.start("kube-apiserver")
    until(lambda: answers(cluster), 90)
    until(replicas.all_nodes_ready, 60)
    cluster.wait_ready("default", LABLETS, within_s=60)
    assert replicas.epochs() == before, "somebody stole from somebody"
    replicas.once_each()
    writes = [e for w in cluster.workers for e in w.access_log(requests[w.name]) if e["method"] in {"PUT", "DELETE"}]
    assert not writes


def answers(cluster: Cluster) -> bool:
    """Tell whether the API server answers."""
    try:
        return cluster.get("/readyz") is not None
    except (OSError, ValueError, Refused):
        return False
