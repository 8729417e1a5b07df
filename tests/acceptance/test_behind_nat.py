"""Workers that only an agent reaches, by MQTT and HTTP: the main job, and what ends or moves (R004-040, R004-041)."""

from collections.abc import Iterator

import pytest

from tests.support.cluster import Cluster, condition
from tests.support.plugin import succeeded
from tests.support.replicas import Replicas
from tests.support.sandboxes import started
from tests.support.topologies import definition, pod
from tests.support.waiting import until
from vkpsandbox import Sandbox
from vkpsandbox.controlplane.tunnels import Tunnel

REPLICAS, WORKERS = 2, 2


@pytest.fixture(scope="module", params=["mqtt", "http"])
def tunnel(request: pytest.FixtureRequest) -> Tunnel:
    """How the workers of the module's sandbox are reached."""
    way: Tunnel = request.param
    return way


@pytest.fixture(scope="module")
def sandbox(tunnel: Tunnel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox of its own: two replicas, two workers with agents, a broker if there is need of one."""
    with started(
        tunnel,
        tmp_path_factory.mktemp(tunnel),
        workers=WORKERS,
        replicas=REPLICAS,
        tunnel=tunnel,
        provider_env={"WORKER_PROBE_SECONDS": "1", "RECONCILE_INTERVAL": "5"},
        worker_args=[["--boot-seconds=0.3-1"]],
    ) as made:
        yield made


@pytest.fixture
def netlab(cluster: Cluster, namespace: str) -> str:
    """A definition of one host."""
    name = f"lab-{namespace[-5:]}"
    cluster.define(definition(name))
    return name


def reason(cluster: Cluster, number: int) -> str:
    found = cluster.get(f"/apis/vkprovider.io/v1alpha1/cmlworkers/{cluster.workers[number].name}")
    return str(condition(found, "Ready").get("reason"))


def test_a_lablet_lives_and_ends(cluster: Cluster, namespace: str, netlab: str, tunnel: Tunnel) -> None:
    for worker in cluster.workers:
        node = cluster.node(worker)
        assert node
        assert node["metadata"]["labels"]["vkprovider.io/tunnel"] == tunnel
        name = f"on-{worker.name}"
        cluster.apply(pod(name, netlab, nodeSelector={"kubernetes.io/hostname": worker.node}), namespace=namespace)
    for ready in cluster.wait_ready(namespace, WORKERS):
        lab = cluster.lab_of(ready)
        assert lab is not None
        assert lab["state"] == "STARTED"
    cluster.kubectl("delete", "pods", "--all", f"--namespace={namespace}", "--wait=false")
    cluster.wait_gone(namespace)
    assert [worker.labs() for worker in cluster.workers] == [[], []]


def test_passwords_and_tokens_stay_with_the_agents(cluster: Cluster) -> None:
    secrets = cluster.items("/api/v1/namespaces/vkprovider-system-logins/secrets")
    passwords = [worker.worker.password for worker in cluster.workers]
    assert not [s for s in secrets if any(password in str(s) for password in passwords)]
    for log in cluster.sandbox.directory.glob("logs/*.log"):
        assert not [password for password in passwords if password in log.read_text()]


def test_an_agent_that_ends_makes_its_node_not_ready_at_once(cluster: Cluster, namespace: str, netlab: str) -> None:
    worker = cluster.workers[0]
    cluster.apply(pod("kept", netlab, nodeSelector={"kubernetes.io/hostname": worker.node}), namespace=namespace)
    [ready] = cluster.wait_ready(namespace, 1)
    cluster.sandbox.stop(f"agent-{worker.name}")
    until(lambda: reason(cluster, 0) == "AgentAway", 30)
    node = cluster.node(worker)
    assert node
    assert condition(node, "Ready")["reason"] == "AgentAway"
    assert reason(cluster, 1) == "WorkerReady"
    cluster.sandbox.start(f"agent-{worker.name}")
    until(lambda: reason(cluster, 0) == "WorkerReady", 30)
    found = cluster.pod(namespace, "kept")
    assert found
    assert (
        found["metadata"]["annotations"]["vkprovider.io/lab-id"]
        == ready["metadata"]["annotations"]["vkprovider.io/lab-id"]
    )


def test_what_lies_between_may_be_restarted(cluster: Cluster, namespace: str, netlab: str, tunnel: Tunnel) -> None:
    """The broker; by HTTP a replica, whose workers go to the other one, and the agents of both."""
    between = ["mosquitto"] if tunnel == "mqtt" else ["provider-2", *(f"agent-{w.name}" for w in cluster.workers)]
    cluster.apply(*(pod(f"p{n}", netlab) for n in range(6)), namespace=namespace)
    until(lambda: sum(len(worker.labs()) for worker in cluster.workers) > 0, 30)
    for process in between:
        cluster.sandbox.kill(process)
        cluster.sandbox.start(process)
    cluster.wait_ready(namespace, 6)
    assert sum(len(worker.labs()) for worker in cluster.workers) == 6


def test_workers_of_a_killed_replica_are_taken_by_the_other(cluster: Cluster, namespace: str, netlab: str) -> None:
    replicas = Replicas(cluster)
    cluster.apply(*(pod(f"p{n}", netlab) for n in range(4)), namespace=namespace)
    ready = cluster.wait_ready(namespace, 4)
    cluster.sandbox.kill("provider-1")
    until(lambda: len(set(replicas.owners().values())) == 1, 60)
    cluster.kubectl("delete", "pods", "--all", f"--namespace={namespace}", "--wait=false")
    cluster.wait_gone(namespace)
    assert [worker.labs() for worker in cluster.workers] == [[], []]
    assert ready
    cluster.sandbox.start("provider-1")
    until(lambda: len(set(replicas.owners().values())) == REPLICAS, 90)


def test_an_agent_whose_worker_was_deleted_awaits_approval(cluster: Cluster, namespace: str, netlab: str) -> None:
    worker = cluster.workers[1]
    cluster.kubectl("delete", "cmlworker", worker.name)
    until(lambda: reason(cluster, 1) == "AwaitingApproval", 60)
    node = cluster.node(worker)
    assert node
    assert node["spec"]["unschedulable"] is True
    assert succeeded(cluster, "approve", worker.name) == f"cmlworker/{worker.name} approved\n"
    until(lambda: reason(cluster, 1) == "WorkerReady", 60)
    cluster.apply(pod("new", netlab, nodeSelector={"kubernetes.io/hostname": worker.node}), namespace=namespace)
    cluster.wait_ready(namespace, 1)
