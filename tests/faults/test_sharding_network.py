"""Three replicas, one of them behind a proxy: stalled watches, cut networks, etcd away (R004-033)."""

import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.cluster import Cluster, Refused, condition, is_ready
from tests.support.proxy import Proxy
from tests.support.replicas import LEASES, Replicas, since_ready
from tests.support.topologies import definition, deployment
from tests.support.waiting import until
from vkpsandbox import Sandbox

WORKERS, LABLETS = 6, 24
FENCE_S = 8.0
"""Of LEADER_LEASE_TTL: how long after its last renewal a replica may act."""
STALL_S, CUT_S, ETCD_AWAY_S = 60, 60, 30
TAKEN_S = 15
RENEWAL_S = 3
"""What is sent may still renew the Lease once where only the answers are lost."""
BACK_S = 20
"""Within which everything is Ready again after a fault."""
NEEDED = (
    LEASES,
    "/api/v1/nodes",
    "/api/v1/pods",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/apis/node.k8s.io/v1/runtimeclasses",
    "/apis/vkprovider.io/v1alpha1/cmlworkers",
    "/apis/vkprovider.io/v1alpha1/labletdefinitions",
)
"""Without which a replica cannot act, or a Node is not Ready."""
OPEN = "provider-1"
BEHIND = "provider-3"


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Two replicas, six simulated workers, an audit log."""
    directory = tmp_path_factory.mktemp("network")
    with Sandbox.up("network", directory=directory, workers=WORKERS, replicas=2, audit=True, tied=True) as made:
        yield made


@pytest.fixture(scope="module")
def proxy(sandbox: Sandbox) -> Iterator[Proxy]:
    """The way of a third replica to the API server."""
    pki = sandbox.layout.pki
    dial = ssl.create_default_context(cafile=str(pki / "server-ca.crt"))
    listen = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listen.load_cert_chain(pki / "server.crt", pki / "server.key")
    port = int(sandbox.process("kube-apiserver").url.rpartition(":")[2])
    with Proxy("127.0.0.1", port, listen=listen, dial=dial) as made:
        kubeconfig = sandbox.directory / "behind-proxy"
        Replicas(Cluster(sandbox)).add(3, kubeconfig=through(made, sandbox.provider_kubeconfig, kubeconfig))
        yield made


def through(proxy: Proxy, way: Path, changed: Path) -> Path:
    """Copy a kubeconfig with another server."""
    config = yaml.safe_load(way.read_text())
    config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    changed.write_text(yaml.safe_dump(config))
    return changed


@pytest.fixture
def converged(cluster: Cluster, proxy: Proxy, replicas: Replicas) -> Iterator[dict[str, str]]:
    """Lablets that have converged, by Pod UID since when; at the end none of their labs was doubled or restarted."""
    proxy.heal()
    until(replicas.is_balanced, 90)
    cluster.define(definition("network"))
    cluster.apply(deployment("network", "network", LABLETS))
    cluster.delete_later("deployment", "network")
    ready = since_ready(cluster.wait_ready("default", LABLETS, within_s=180))
    until(lambda: replicas.all_ready_in_claims(set(ready)), 45)
    yield ready
    replicas.once_each()
    cluster.kubectl("delete", "deployment", "network")
    cluster.wait_gone("default", within_s=180)


def all_back(cluster: Cluster, replicas: Replicas) -> None:
    """Wait until all nodes and lablets are Ready; it must not take longer than it may."""
    began = time.monotonic()
    until(replicas.all_nodes_ready, BACK_S)
    cluster.wait_ready("default", LABLETS, within_s=BACK_S)
    assert time.monotonic() - began <= BACK_S


def test_replica_whose_watches_stall_is_robbed_by_nobody_and_robs_nobody(
    cluster: Cluster, replicas: Replicas, proxy: Proxy, converged: dict[str, str]
) -> None:
    before, members = replicas.epochs(), replicas.members()
    assert replicas.nodes_of(replicas.identity(BEHIND))
    began = time.monotonic()
    proxy.stall_watches()
    while time.monotonic() - began < STALL_S:
        replicas.all_nodes_ready()
        assert replicas.epochs() == before
        assert replicas.members() <= members
        time.sleep(1)
    assert proxy.held_bytes > 0
    assert proxy.held_pairs >= 2, "the watches of both kinds of Lease are not held up"
    proxy.heal()
    all_back(cluster, replicas)
    assert replicas.epochs() == before
    assert replicas.members() == members
    assert since_ready(cluster.pods("default")) == converged


@pytest.mark.parametrize(
    ("break_off", "within_s"),
    [
        (Proxy.cut, TAKEN_S),
        (Proxy.deafen, TAKEN_S + RENEWAL_S),
        (Proxy.refuse, TAKEN_S),
        (Proxy.reset, TAKEN_S),
        (Proxy.half_open, TAKEN_S),
    ],
    ids=["silent", "only-the-answers", "refused", "reset", "half-open"],
)
def test_replica_cut_off_from_the_api_server_is_replaced_and_stops(
    cluster: Cluster,
    replicas: Replicas,
    proxy: Proxy,
    converged: dict[str, str],
    break_off: Callable[[Proxy], None],
    within_s: float,
) -> None:
    cut_off = replicas.identity(BEHIND)
    nodes = replicas.nodes_of(cut_off)
    assert nodes
    cut = time.time()
    break_off(proxy)
    until(lambda: not replicas.nodes_of(cut_off), 45, "its nodes are not taken")
    assert time.time() - cut <= within_s
    assert replicas.sandbox.process(BEHIND).state == "running"
    while time.time() < cut + CUT_S:
        replicas.all_nodes_ready()
        assert not replicas.nodes_of(cut_off)
        time.sleep(1)
    healed = time.time()
    proxy.heal()
    all_back(cluster, replicas)
    sent = [
        (worker, entry)
        for worker in cluster.workers
        for entry in worker.access_log()
        if cut_off in entry.get("agent", "")
    ]
    assert any(entry["arrived_unix_s"] < cut for _, entry in sent), f"no log names {cut_off} as an agent"
    late = [
        f"{worker.name}: {entry['method']} {entry['path']} {entry['arrived_unix_s'] - cut:.1f} s"
        for worker, entry in sent
        if cut + FENCE_S + 1 < entry["arrived_unix_s"] < healed
    ]
    assert not late
    until(replicas.is_balanced, 90)
    assert replicas.nodes_of(cut_off), "it does not come back to work"
    assert since_ready(cluster.pods("default")) == converged


def test_replica_cut_off_from_a_worker_keeps_it_and_its_labs(
    cluster: Cluster, replicas: Replicas, converged: dict[str, str]
) -> None:
    owner = replicas.identity(OPEN)
    node = min(replicas.nodes_of(owner))
    [worker] = [worker for worker in cluster.workers if worker.node == node]
    path = f"/apis/vkprovider.io/v1alpha1/cmlworkers/{worker.name}"
    host, _, port = worker.worker.url.removeprefix("https://").rpartition(":")
    on_it = {p["metadata"]["uid"] for p in cluster.pods("default") if p["spec"]["nodeName"] == node}
    assert on_it
    with Proxy(host, int(port)) as way:
        hosts = {"vkprovider.io/host": f"{worker.worker.url},https://127.0.0.1:{way.port}"}
        secret = f"/api/v1/namespaces/vkprovider-system-logins/secrets/{worker.worker.process}"
        cluster.patch(secret, {"metadata": {"annotations": hosts}})
        cluster.patch(path, {"spec": {"url": f"https://127.0.0.1:{way.port}"}})
        last = worker.last_request()
        until(lambda: way_is_used(cluster, path, worker.last_request() > last), 45)
        before, last = replicas.epochs(), worker.last_request()
        pid = replicas.sandbox.process(OPEN).pid
        assert pid
        way.cut(pid)
        until(lambda: condition(cluster.node(worker), "Ready").get("status") == "False", 180, "the node stays Ready")
        assert condition(cluster.node(worker), "Ready")["reason"] == "WorkerUnreachable"
        until(lambda: {p["metadata"]["uid"] for p in cluster.pods("default") if not is_ready(p)} == on_it, 45)
        time.sleep(CUT_S / 2)
        assert way.held_pairs > 0
        assert replicas.epochs() == before, "a worker that is away costs nobody a node"
        way.heal()
        all_back(cluster, replicas)
        changes = [e for e in worker.access_log(last) if e["method"] != "GET" and "authenticate" not in e["path"]]
        assert not changes
        cluster.patch(path, {"spec": {"url": worker.worker.url}})
    until(lambda: replicas.epochs() == before and replicas.all_nodes_ready(), 45)
    assert since_ready(cluster.pods("default")).keys() == converged.keys()


def way_is_used(cluster: Cluster, path: str, asked: bool) -> bool:  # noqa: FBT001 (a predicate's part)
    """Tell whether a changed CMLWorker was taken up, and its worker asked since."""
    found = cluster.get(path) or {}
    return asked and found["status"]["observedGeneration"] == found["metadata"]["generation"]


def test_etcd_that_restarts_costs_nobody_anything(
    cluster: Cluster, replicas: Replicas, converged: dict[str, str]
) -> None:
    before, first = replicas.epochs(), replicas.sandbox.process("etcd").pid
    replicas.sandbox.kill("etcd")
    until(lambda: replicas.sandbox.process("etcd").pid not in {first, None}, 60, "etcd does not start again")
    until(lambda: answers(cluster), 90)
    all_back(cluster, replicas)
    cluster.sandbox.stop("etcd")
    with pytest.raises((Refused, OSError)):
        cluster.patch("/api/v1/namespaces/default", {"metadata": {"annotations": {"a": "b"}}})
    time.sleep(ETCD_AWAY_S)
    assert cluster.sandbox.process("etcd").state == "stopped"
    cluster.sandbox.start("etcd")
    until(lambda: answers(cluster), 90)
    all_back(cluster, replicas)
    assert replicas.epochs() == before, "somebody stole from somebody"
    assert since_ready(cluster.pods("default")).keys() == converged.keys()


def answers(cluster: Cluster) -> bool:
    """Tell whether the API server can write, and read every kind that the provider needs.

    It dials etcd for each kind by itself: after 45 s without etcd some answer at once, others up to 31 s later.
    """
    try:
        cluster.patch("/api/v1/namespaces/default", {"metadata": {"annotations": {"turn": "1"}}})
        return all(cluster.request("GET", f"{path}?limit=1") for path in NEEDED)
    except (OSError, ValueError, Refused):
        return False
