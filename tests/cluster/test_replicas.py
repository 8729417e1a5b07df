"""Several replicas share the nodes; one that dies, pauses, comes or goes costs no lablet anything (R004-024…039)."""

import signal
from collections.abc import Iterator

import pytest

from tests.support.cluster import Cluster, is_ready
from tests.support.replicas import MEMBERS, Replicas, since_ready
from tests.support.topologies import definition, pod_template
from tests.support.waiting import throughout, until
from vkpsandbox import Sandbox

REPLICAS, WORKERS, LABLETS = 3, 6, 12


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox of its own: three replicas, six workers whose labs take five seconds to boot."""
    made = Sandbox.up(
        "replicas",
        directory=tmp_path_factory.mktemp("replicas"),
        workers=WORKERS,
        replicas=REPLICAS,
        provider_env={"WORKER_PROBE_SECONDS": "2", "RECONCILE_INTERVAL": "5"},
        worker_args=[["--boot-seconds=5"]],
        tied=True,
    )
    with made:
        yield made


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
    """Begin twelve lablets."""
    cluster.define(definition(name))
    labels = {"app": name}
    spec = {"replicas": LABLETS, "selector": {"matchLabels": labels}, "template": pod_template(name, labels=labels)}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    cluster.apply(deployment, namespace=namespace)


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
    until(lambda: sum(replicas.seen_by_cml()[1].values()) >= LABLETS // 2, 45, "no lab is being started")
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
    until(lambda: sum(replicas.seen_by_cml()[1].values()) >= LABLETS // 2, 45, "no lab is being started")
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


def test_rolling_restart_takes_no_lablet_out_of_ready(cluster: Cluster, replicas: Replicas, namespace: str) -> None:
    deploy(cluster, namespace, "rolled")
    before = since_ready(cluster.wait_ready(namespace, LABLETS))
    for process in replicas.processes:
        leaver = replicas.identity(process)
        cluster.sandbox.stop(process, grace_s=20)
        assert leaver not in replicas.members(), "it left without a word"
        until(lambda: "" not in replicas.owners().values() and leaver not in replicas.owners().values(), 30)  # noqa: B023 (it ends before the next round)
        cluster.sandbox.start(process)
        until(replicas.is_balanced, 90)
    after = since_ready(cluster.wait_ready(namespace, LABLETS))
    assert after == before, "a lablet was not Ready for a while"
    replicas.once_each(namespace)


def test_membership_of_one_who_died_without_a_node_is_ended(cluster: Cluster, replicas: Replicas) -> None:
    living = replicas.members()
    labels = {"vkprovider.io/replica": "true"}
    metadata = {"name": "vkprovider-replica-ghost", "namespace": "vkprovider-system", "labels": labels}
    spec = {"holderIdentity": "ghost", "renewTime": "2026-01-01T00:00:00.000000Z"}
    path = MEMBERS.partition("?")[0]
    cluster.request("POST", path, {"apiVersion": "coordination.k8s.io/v1", "metadata": metadata, "spec": spec})
    assert "ghost" in replicas.members()
    until(lambda: replicas.members() == living, 90, "it is thought alive for ever")


def test_container_that_restarts_under_its_name_goes_on_at_once_in_a_new_epoch(
    cluster: Cluster, replicas: Replicas
) -> None:
    """Four replicas and six nodes: shares are odd, so a plan made without its old nodes would give them to others."""
    env = {"LABLET_CONTROLLER_INSTANCE_ID": "steady", "WORKER_PROBE_SECONDS": "2", "RECONCILE_INTERVAL": "5"}
    process = replicas.add(REPLICAS + 1, env)
    until(replicas.is_balanced, 90)
    before, first = replicas.epochs(), cluster.sandbox.process(process).pid
    assert replicas.nodes_of("steady")
    cluster.sandbox.kill(process)
    assert cluster.sandbox.start(process).pid != first
    after = {node: (who, epoch + 1 if who == "steady" else epoch) for node, (who, epoch) in before.items()}
    until(lambda: replicas.epochs() == after, 90, "not all of its nodes, or not only these, were taken anew")
    replicas.all_nodes_ready()


def test_second_process_of_a_name_waits_until_the_first_has_ended(cluster: Cluster, replicas: Replicas) -> None:
    """The same LABLET_CONTROLLER_INSTANCE_ID for all of a Deployment, or in two terminals."""
    env = {"LABLET_CONTROLLER_INSTANCE_ID": "twin", "WORKER_PROBE_SECONDS": "2", "RECONCILE_INTERVAL": "5"}
    first = replicas.add(REPLICAS + 2, env)
    until(replicas.is_balanced, 90)
    before = replicas.epochs()
    assert replicas.nodes_of("twin")

    second = replicas.add(REPLICAS + 3, env)
    log = cluster.sandbox.layout.log(second)
    until(lambda: "another process has the name of this replica" in log.read_text(), 60, "it says nothing")
    throughout(lambda: replicas.epochs() == before, 15, every_s=1)
    assert "lease" in replicas.missing(second)

    cluster.sandbox.kill(first)
    until(lambda: replicas.missing(second) == [], 60, "it does not take the name over")
    until(replicas.is_balanced, 90)
    replicas.all_nodes_ready()
