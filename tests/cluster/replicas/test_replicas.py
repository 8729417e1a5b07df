"""Several replicas share the nodes; a process that is killed or paused costs no lablet anything (R004-024…039)."""

import signal
from collections.abc import Iterator

import pytest

from tests.cluster.replicas import REPLICAS
from tests.support.cluster import Cluster, is_ready
from tests.support.replicas import Replicas
from tests.support.topologies import definition, pod_template, topology
from tests.support.waiting import until

pytestmark = pytest.mark.tunnelled

LABLETS = 12


@pytest.fixture
def replicas(cluster: Cluster) -> Iterator[Replicas]:
    """The replicas; all of them run, and have their share, before and after each test."""
    replicas = Replicas(cluster)
    until(replicas.is_balanced, 90)
    yield replicas
    for process in range(1, REPLICAS + 1):
        cluster.sandbox.kill(f"provider-{process}", signal.SIGCONT)
    cluster.heal()
    until(replicas.is_balanced, 90)


def deploy(cluster: Cluster, namespace: str, name: str) -> None:
    """Begin twelve lablets, whose routers boot slowly."""
    cluster.define(definition(name, topology({"r1": "csr1000v"})))
    labels = {"app": name}
    spec = {"replicas": LABLETS, "selector": {"matchLabels": labels}, "template": pod_template(name, labels=labels)}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    cluster.apply(deployment, namespace=namespace)


def wait_half_started(cluster: Cluster, replicas: Replicas, namespace: str) -> None:
    """Wait until CML has been asked to start half of the lablets of a namespace: others are of earlier tests."""

    def started() -> bool:
        starts = replicas.seen_by_cml()[1]
        return sum(starts[pod["metadata"]["uid"]] for pod in cluster.pods(namespace)) >= LABLETS // 2

    until(started, 45, "no lab is being started")


def test_nodes_are_shared_and_everybody_can_see_by_whom(cluster: Cluster, replicas: Replicas) -> None:
    assert len(set(replicas.owners().values())) == REPLICAS
    for worker in cluster.workers:
        lease = replicas.leases()[worker.node]
        status = cluster.cmlworker(worker)["status"]
        until(lambda: cluster.cmlworker(worker)["status"]["owner"] == lease["holderIdentity"], 30)  # noqa: B023 (it ends before the next round)
        assert status["epoch"] <= lease["leaseTransitions"]


def test_nodes_of_a_killed_replica_are_taken_and_its_labs_are_finished(
    cluster: Cluster, replicas: Replicas, namespace: str
) -> None:
    deploy(cluster, namespace, "killed")
    victim = replicas.identity("provider-2")
    nodes = replicas.nodes_of(victim)
    wait_half_started(cluster, replicas, namespace)
    cluster.sandbox.kill("provider-2")
    booting = [p for p in cluster.pods(namespace) if p["spec"].get("nodeName") in nodes and not is_ready(p)]
    assert booting, "the kill came too late to interrupt anything"

    def taken() -> bool:
        replicas.all_nodes_ready()
        return not replicas.nodes_of(victim)

    until(taken, 15)
    assert victim not in replicas.members()
    cluster.wait_ready(namespace, LABLETS)
    replicas.once_each(namespace)
    cluster.sandbox.start("provider-2")
    until(replicas.is_balanced, 90)
    cluster.wait_ready(namespace, LABLETS)
    replicas.once_each(namespace)


def test_paused_replica_has_lost_its_nodes_when_it_wakes_up(
    cluster: Cluster, replicas: Replicas, namespace: str
) -> None:
    deploy(cluster, namespace, "paused")
    sleeper = replicas.identity("provider-3")
    epochs = {node: replicas.leases()[node]["leaseTransitions"] for node in replicas.nodes_of(sleeper)}
    wait_half_started(cluster, replicas, namespace)
    cluster.sandbox.kill("provider-3", signal.SIGSTOP)
    until(lambda: not replicas.nodes_of(sleeper), 15, "its nodes are not taken")
    assert all(replicas.leases()[node]["leaseTransitions"] > epoch for node, epoch in epochs.items())
    cluster.wait_ready(namespace, LABLETS)
    cluster.sandbox.kill("provider-3", signal.SIGCONT)
    until(lambda: sleeper in replicas.members(), 45, "it does not come back")
    until(replicas.is_balanced, 90)
    replicas.all_nodes_ready()
    cluster.wait_ready(namespace, LABLETS)
    replicas.once_each(namespace)
