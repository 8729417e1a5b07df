"""The stock scheduler places lablets; kubectl's commands for nodes do what they do on any node (R004-002, -020…023).

Each rule has a case that is placed and one that stays Pending, with the scheduler's own message.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster, condition
from tests.support.extra import Extra, extra_worker
from tests.support.topologies import definition, deployment, pod, topology
from tests.support.waiting import until

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
VERSION = "vkprovider.io/cml-version"


def why_pending(cluster: Cluster, namespace: str, name: str) -> str:
    """Wait until the scheduler has given a Pod up for now; give its message."""

    def message() -> str:
        told = condition(cluster.pod(namespace, name), "PodScheduled")
        return str(told.get("message", "")) if told.get("reason") == "Unschedulable" else ""

    return until(message, 30, f"{name} is not Unschedulable")


def pending(cluster: Cluster, namespace: str, count: int) -> list[str]:
    """Wait until exactly so many Pods of a namespace are Unschedulable; give their names."""

    def names() -> list[str]:
        pods = cluster.pods(namespace)
        found = [p["metadata"]["name"] for p in pods if condition(p, "PodScheduled").get("reason") == "Unschedulable"]
        assert len(found) == count, found
        return found

    return until(names, 45)


def nodes_of(pods: list[dict[str, Any]]) -> Counter[str]:
    return Counter(p["spec"].get("nodeName", "") for p in pods)


def on(name: str) -> dict[str, str]:
    return {HOSTNAME: name}


@pytest.fixture
def ordinary(cluster: Cluster) -> Iterator[str]:
    """A Node without a kubelet that shows Ready and has room for anything; its name."""
    name = "ordinary"
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": on(name)}})
    status = json.dumps({"status": {"capacity": capacity, "allocatable": capacity, "conditions": ready}})
    cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge", f"--patch={status}")
    yield name
    cluster.kubectl("delete", "node", name)


@pytest.fixture
def plain(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A definition; cordons and taints of the test are taken off again."""
    name = f"placed-{namespace[-5:]}"
    cluster.define(definition(name))
    yield name
    for worker in cluster.workers:
        cluster.kubectl("uncordon", worker.node)
        cluster.kubectl("taint", "node", worker.node, "maintenance-", check=False)


def test_lablets_stay_off_ordinary_nodes_and_ordinary_pods_off_workers(
    cluster: Cluster, namespace: str, plain: str, ordinary: str
) -> None:
    """R004-004, R004-010: the ordinary Node has more room than all workers."""
    container = {"name": "c", "image": "registry.example/app"}
    apps = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app"}, "spec": {"containers": [container]}}
    cluster.apply(apps, deployment("labs", plain, 6), namespace=namespace)
    until(lambda: nodes_of([pod for pod in cluster.pods(namespace) if pod["metadata"]["name"] == "app"])[ordinary], 60)
    cluster.kubectl("delete", "pod", "app", "--force", "--grace-period=0", f"--namespace={namespace}")
    ready = cluster.wait_ready(namespace, 6)
    assert set(nodes_of(ready)) <= {worker.node for worker in cluster.workers}


def test_cordoned_node_takes_no_lablet_and_keeps_those_it_has(cluster: Cluster, namespace: str, plain: str) -> None:
    node = cluster.workers[0].node
    cluster.apply(pod("before", plain, nodeSelector=on(node)), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    cluster.kubectl("cordon", node)
    assert "SchedulingDisabled" in cluster.kubectl("get", "node", node).stdout
    cluster.apply(pod("after", plain, nodeSelector=on(node)), namespace=namespace)
    assert "unschedulable" in why_pending(cluster, namespace, "after")
    cluster.kubectl("uncordon", node)
    cluster.wait_ready(namespace, 2)


def test_drain_moves_the_lablets_of_a_deployment(cluster: Cluster, namespace: str, plain: str) -> None:
    first = cluster.workers[0]
    spread = {"maxSkew": 1, "topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"}
    labels = {"labelSelector": {"matchLabels": {"app": "pool"}}}
    cluster.apply(deployment("pool", plain, 3, topologySpreadConstraints=[spread | labels]), namespace=namespace)
    before = cluster.wait_ready(namespace, 3)
    moved = [p["metadata"]["uid"] for p in before if p["spec"]["nodeName"] == first.node]
    assert moved
    said = cluster.kubectl("drain", first.node, "--pod-selector=app=pool", "--timeout=60s").stdout
    assert "drained" in said
    assert [lab for uid in moved if (lab := first.lab_of(uid))] == [], "drain waits until the lab is gone"
    after = cluster.wait_ready(namespace, 3)
    assert first.node not in nodes_of(after)
    kept = {p["metadata"]["uid"] for p in before} - set(moved)
    assert kept <= {p["metadata"]["uid"] for p in after}, "drain touched lablets of other nodes"


def test_taint_keeps_lablets_away_or_moves_them(cluster: Cluster, namespace: str, plain: str) -> None:
    node = cluster.workers[1].node
    cluster.kubectl("taint", "node", node, "maintenance=soon:NoSchedule")
    cluster.apply(pod("late", plain, nodeSelector=on(node)), namespace=namespace)
    assert "untolerated taint" in why_pending(cluster, namespace, "late")
    cluster.kubectl("taint", "node", node, "maintenance-")
    cluster.wait_ready(namespace, 1)
    cluster.kubectl("taint", "node", node, "maintenance=now:NoExecute")
    cluster.wait_gone(namespace, within_s=45)
    until(lambda: not cluster.workers[1].labs(), 15, "the lab stays")


def test_anti_affinity_puts_one_copy_on_each_worker(cluster: Cluster, namespace: str, plain: str) -> None:
    """R004-023."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "apart"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster.apply(deployment("apart", plain, 4, affinity=affinity), namespace=namespace)
    [name] = pending(cluster, namespace, 1)
    assert "anti-affinity rules" in why_pending(cluster, namespace, name)

    def placed() -> list[dict[str, Any]]:
        return [p for p in cluster.pods(namespace) if p["spec"].get("nodeName")]

    until(lambda: set(nodes_of(placed())) == {worker.node for worker in cluster.workers})


@pytest.mark.parametrize(("key", "domains"), [(HOSTNAME, 3), (ZONE, 2)])
def test_spreading(cluster: Cluster, namespace: str, plain: str, key: str, domains: int) -> None:
    constraint = {
        "maxSkew": 1,
        "minDomains": domains + 1,  # one more than there is, so that each holds one and no second
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    cluster.apply(deployment("spread", plain, domains + 1, topologySpreadConstraints=[constraint]), namespace=namespace)
    [name] = pending(cluster, namespace, 1)
    assert "topology spread constraints" in why_pending(cluster, namespace, name)

    def is_spread() -> bool:
        placed = nodes_of([p for p in cluster.pods(namespace) if p["spec"].get("nodeName")])
        labels = [(cluster.get(f"/api/v1/nodes/{node}") or {})["metadata"]["labels"][key] for node in placed]
        assert len(set(labels)) == domains
        assert set(placed.values()) == {1}
        return True

    until(is_spread)


def test_affinity_by_version(cluster: Cluster, namespace: str, plain: str) -> None:
    """R004-020."""

    def wants(*versions: str) -> dict[str, Any]:
        term = {"matchExpressions": [{"key": VERSION, "operator": "In", "values": list(versions)}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}

    cluster.apply(
        pod("old", plain, affinity=wants("2.8.1", "2.8.0")),
        pod("newer", plain, affinity=wants("2.10.0")),
        namespace=namespace,
    )
    assert "didn't match Pod's node affinity/selector" in why_pending(cluster, namespace, "newer")
    old = until(lambda: (cluster.pod(namespace, "old") or {})["spec"].get("nodeName"), 30)
    assert old == cluster.workers[2].node


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({"cpu": "65"}, "Insufficient cpu"),
        ({"memory": "257Gi"}, "Insufficient memory"),
        ({"labNodes": 401}, "Insufficient vkprovider.io/lab-nodes"),
        ({"ports": 6001}, "Insufficient vkprovider.io/ports"),
    ],
)
def test_lablet_that_is_too_large_stays_pending(
    cluster: Cluster, namespace: str, resources: dict[str, Any], told: str
) -> None:
    cluster.define(definition("too-large", resources=resources))
    cluster.apply(pod("large", "too-large"), namespace=namespace)
    assert told in why_pending(cluster, namespace, "large")


def test_need_is_computed_from_the_topology(cluster: Cluster) -> None:
    tags = {"h0": ["serial:4000", "pat:tcp:8080:80", "hidden"], "r1": ["serial:4001"]}
    text = topology({"h0": "alpine", "r1": "iosv", "sw": "unmanaged_switch", "ext": "external_connector"}, tags)
    cluster.define(definition("charged", text))
    found = cluster.get("/apis/node.k8s.io/v1/runtimeclasses/charged")
    assert found
    assert found["overhead"]["podFixed"] == {
        "cpu": "2",
        "memory": "1Gi",
        "vkprovider.io/lab-nodes": "2",
        "vkprovider.io/ports": "3",
    }


@pytest.fixture
def extra(cluster: Cluster) -> Iterator[Extra]:
    with extra_worker(cluster, "testing", "--boot-seconds=0.2") as extra:
        extra.wait_ready()
        yield extra


def test_environments_are_kept_apart(cluster: Cluster, extra: Extra, namespace: str) -> None:
    """R004-004, R004-010…012, R004-021, R004-022."""
    node = f"vnode.{extra.name}"
    cluster.define(definition("of-testing", environment="testing"), definition("of-default"))
    tolerations = [
        {"key": "vkprovider.io/virtual-node", "operator": "Equal", "value": "true"},
        {"key": "vkprovider.io/env", "operator": "Equal", "value": "testing"},
    ]
    stranger = {"containers": [{"name": "web", "image": "nginx"}]}
    cluster.apply(
        pod("at-home", "of-testing"),
        pod("abroad", "of-default", nodeSelector=on(node)),
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "intolerant"},
            "spec": stranger | {"nodeSelector": on(node)},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "tolerates-other-env"},
            "spec": stranger | {"tolerations": tolerations, "nodeSelector": on(cluster.workers[0].node)},
        },
        namespace=namespace,
    )
    assert "node affinity/selector" in why_pending(cluster, namespace, "abroad")
    assert "untolerated taint" in why_pending(cluster, namespace, "intolerant")
    assert "untolerated taint" in why_pending(cluster, namespace, "tolerates-other-env")
    assert until(lambda: (cluster.pod(namespace, "at-home") or {})["spec"].get("nodeName"), 30) == node
    until(lambda: extra.simulator.lab_of((cluster.pod(namespace, "at-home") or {})["metadata"]["uid"]), 30)
