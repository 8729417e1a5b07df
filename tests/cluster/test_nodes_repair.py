"""A Node of ours stays what it should be, whatever kubectl writes on it; Nodes of others stay as they are."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster, Refused, condition, is_ready
from tests.support.extra import ACCOUNT, Extra, cmlworker, extra_worker, secret
from tests.support.simulator import Simulator
from tests.support.topologies import definition, pod
from tests.support.waiting import throughout, until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODES = "/api/v1/nodes"


@pytest.fixture
def node(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """The first worker's Node; what the test puts on it is taken off again."""
    worker = cluster.workers[0]
    before = cluster.node(worker)
    assert before
    yield before
    cluster.kubectl("label", "node", worker.node, "team-", "vkprovider.io/tunnel=direct", "--overwrite")
    cluster.kubectl("taint", "node", worker.node, "maintenance-", check=False)


def lease_of(cluster: Cluster, worker: Simulator) -> dict[str, Any]:
    found = cluster.get(f"{LEASES}/{worker.node}")
    assert found
    return found


def test_deleted_node_comes_back_with_its_epoch_and_its_lablets(cluster: Cluster, namespace: str) -> None:
    """R004-006, R004-050."""
    worker = cluster.workers[0]
    cluster.define(definition("survivor"))
    cluster.apply(
        pod("survivor", "survivor", nodeSelector={"kubernetes.io/hostname": worker.node}), namespace=namespace
    )
    [before] = cluster.wait_ready(namespace, 1)
    lease, old = lease_of(cluster, worker), cluster.node(worker)
    requests = worker.last_request()
    cluster.kubectl("delete", "node", worker.node)
    new = until(lambda: cluster.node(worker), 15, "the Node does not come back") or {}
    until(lambda: is_ready(cluster.node(worker)), 15)
    assert old
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    after = lease_of(cluster, worker)
    assert after["metadata"]["uid"] == lease["metadata"]["uid"]
    assert after["spec"]["leaseTransitions"] == lease["spec"]["leaseTransitions"]
    assert cluster.cmlworker(worker)["status"]["epoch"] == lease["spec"]["leaseTransitions"]
    [pod_now] = cluster.wait_ready(namespace, 1)
    assert pod_now["metadata"]["uid"] == before["metadata"]["uid"]
    assert {entry["method"] for entry in worker.access_log(requests)} <= {"GET"}


def test_changed_labels_taints_and_annotations_are_repaired(cluster: Cluster, node: dict[str, Any]) -> None:
    worker, name = cluster.workers[0], node["metadata"]["name"]
    cluster.kubectl("label", "node", name, "vkprovider.io/env=other", "vkprovider.io/tunnel=mqtt", "--overwrite")
    cluster.kubectl("label", "node", name, "kubernetes.io/hostname-", "vkprovider.io/component-")
    cluster.kubectl("taint", "node", name, "vkprovider.io/virtual-node-")
    cluster.kubectl("annotate", "node", name, "vkprovider.io/installation-")

    def repaired() -> bool:
        now = cluster.node(worker)
        assert now
        for kind in ("labels", "annotations"):
            assert now["metadata"][kind] == node["metadata"][kind]
        taints = {(taint["key"], taint.get("value"), taint["effect"]) for taint in now["spec"]["taints"]}
        assert taints == {(taint["key"], taint.get("value"), taint["effect"]) for taint in node["spec"]["taints"]}
        return True

    until(repaired, 15)


def test_what_others_put_on_a_node_stays(cluster: Cluster, node: dict[str, Any]) -> None:
    worker, name = cluster.workers[0], node["metadata"]["name"]
    cluster.kubectl("label", "node", name, "team=red")
    cluster.kubectl("taint", "node", name, "maintenance=soon:PreferNoSchedule")
    rack = {
        "type": "example.com/Rack",
        "status": "True",
        "reason": "RackFound",
        "message": "rack 7",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    stolen = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "somebody else's"}
    body = {"status": {"conditions": [rack, stolen]}}
    cluster.request("PATCH", f"{NODES}/{name}/status", body, "application/strategic-merge-patch+json")
    cluster.kubectl("label", "node", name, "vkprovider.io/tunnel=mqtt", "--overwrite")
    until(lambda: (cluster.node(worker) or {})["metadata"]["labels"]["vkprovider.io/tunnel"] == "direct", 15)
    until(lambda: is_ready(cluster.node(worker)), 15, "Ready is not corrected")
    now = cluster.node(worker)
    assert now
    assert condition(now, "Ready")["reason"] == "WorkerReady"
    assert condition(now, "example.com/Rack") == rack
    assert now["metadata"]["labels"]["team"] == "red"
    assert "maintenance" in {taint["key"] for taint in now["spec"]["taints"]}


def test_lablets_ready_is_corrected_and_foreign_conditions_stay(cluster: Cluster, namespace: str) -> None:
    cluster.define(definition("corrected"))
    cluster.apply(pod("corrected", "corrected"), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    path = f"/api/v1/namespaces/{namespace}/pods/corrected/status"
    foreign = {"type": "example.com/Gate", "status": "True"}
    stolen = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}
    patch = {"status": {"conditions": [foreign, stolen]}}
    answer = cluster.request("PATCH", path, patch, "application/strategic-merge-patch+json")
    assert not is_ready(answer)
    now = until(lambda: [p for p in cluster.pods(namespace) if is_ready(p)], 15)[0]
    assert condition(now, "example.com/Gate")["status"] == "True"
    assert "reason" not in condition(now, "Ready")


def test_removed_node_label_of_the_worker_leaves_the_node(cluster: Cluster) -> None:
    worker = cluster.workers[1]
    path = f"/apis/vkprovider.io/v1alpha1/cmlworkers/{worker.name}"

    def labels() -> dict[str, str]:
        found: dict[str, str] = (cluster.node(worker) or {})["metadata"]["labels"]
        return found

    cluster.patch(path, {"spec": {"nodeLabels": {"rack": "r7"}}})
    until(lambda: labels().get("rack") == "r7", 15)
    cluster.patch(path, {"spec": {"nodeLabels": {"rack": None}}})
    until(lambda: "rack" not in labels(), 15)
    assert labels()["topology.kubernetes.io/zone"] == "zone-b"


def test_real_node_of_that_name_is_never_touched(cluster: Cluster) -> None:
    """R004-004: a real node keeps its name, its Lease, and its status."""
    mine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "vnode.real", "labels": {"real": "yes"}}}
    cluster.delete_later("node", "vnode.real")
    cluster.delete_later("cmlworker", "real")
    cluster.delete_later("secret", "real", "--namespace=vkprovider-system-logins")
    cluster.request("POST", NODES, mine)
    url = cluster.workers[0].worker.url
    cluster.apply(secret("real", ACCOUNT, url), cmlworker("real", url))
    path = "/apis/vkprovider.io/v1alpha1/cmlworkers/real"
    told = until(lambda: condition(cluster.get(path), "Ready"), 30, "the CMLWorker says nothing")
    assert (told["status"], told["reason"]) == ("False", "NodeConflict")
    assert "vnode.real" in told["message"]
    assert cluster.get(f"{LEASES}/vnode.real") is None
    until(lambda: {event["reason"] for event in cluster.events("default", "real", "CMLWorker")} == {"NodeConflict"}, 60)

    def untouched() -> bool:
        node = cluster.get(f"{NODES}/vnode.real")
        assert node
        managers = {entry["manager"] for entry in node["metadata"]["managedFields"]}
        return not any("vkprovider" in manager for manager in managers) and "addresses" not in node["status"]

    throughout(untouched, 1)
    cluster.kubectl("delete", "node", "vnode.real")
    until(lambda: cluster.get(f"{LEASES}/vnode.real"), 45, "the name is free and not used")
    cluster.kubectl("delete", "cmlworker", "real")
    until(lambda: cluster.get(f"{NODES}/vnode.real") is None, 30)


def test_lease_of_somebody_else_is_never_touched(cluster: Cluster) -> None:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "vnode.leased"},
        "spec": {"holderIdentity": "vnode.leased", "leaseDurationSeconds": 40},
    }
    cluster.delete_later("lease", "vnode.leased", "--namespace=kube-node-lease")
    cluster.delete_later("cmlworker", "leased")
    made = cluster.request("POST", LEASES, lease)
    cluster.apply(cmlworker("leased", cluster.workers[0].worker.url))
    path = "/apis/vkprovider.io/v1alpha1/cmlworkers/leased"
    told = until(lambda: condition(cluster.get(path), "Ready"), 30)
    assert told["reason"] == "NodeConflict"
    found = cluster.get(f"{LEASES}/vnode.leased")
    assert found
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert cluster.get(f"{NODES}/vnode.leased") is None


def test_environment_cannot_be_changed(cluster: Cluster) -> None:
    path = f"/apis/vkprovider.io/v1alpha1/cmlworkers/{cluster.workers[0].name}"
    with pytest.raises(Refused, match="environment cannot be changed"):
        cluster.patch(path, {"spec": {"environment": "other"}})


@pytest.fixture
def extra(cluster: Cluster) -> Iterator[Extra]:
    with extra_worker(cluster, "leaver", "--boot-seconds=0.2") as extra:
        yield extra


def test_worker_in_use_is_cordoned_and_waits_for_its_lablets(cluster: Cluster, extra: Extra, namespace: str) -> None:
    cluster.define(definition("leaver", environment="leaver"))
    cluster.apply(pod("last", "leaver"), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    until(lambda: (cluster.get(extra.path) or {})["metadata"].get("finalizers"), 30, "no finalizer")
    cluster.kubectl("delete", "cmlworker", "leaver", "--wait=false")
    told = until(lambda: (c := condition(cluster.get(extra.path), "Ready"))["reason"] == "InUse" and c, 30)
    assert told["message"].startswith(f"1 lablet: {namespace}/last; delete the Pods")
    until(lambda: (extra.node or {})["spec"].get("unschedulable"), 15)
    assert len(cluster.wait_ready(namespace, 1)) == 1
    cluster.kubectl("delete", "pod", "last", f"--namespace={namespace}")
    until(lambda: cluster.get(extra.path) is None, 45, "the CMLWorker stays")
    until(lambda: extra.node is None, 15, "the Node stays")
    # The garbage collector looks for new kinds of owners every 30 s only.
    until(lambda: cluster.get(f"{LEASES}/vnode.leaver") is None, 180, "the Lease stays")
    until(lambda: not extra.claims(), 45, "the claims stay")
    assert extra.simulator.labs() == []


def test_abandoned_worker_goes_at_once_and_names_its_labs(cluster: Cluster, extra: Extra, namespace: str) -> None:
    cluster.define(definition("leaver", environment="leaver"))
    cluster.apply(pod("left", "leaver"), namespace=namespace)
    cluster.wait_ready(namespace, 1)
    [lab] = extra.simulator.labs()
    until(lambda: (cluster.get(extra.path) or {})["metadata"].get("finalizers"), 30, "no finalizer")
    cluster.kubectl("annotate", "cmlworker", "leaver", "vkprovider.io/abandon=true")
    cluster.kubectl("delete", "cmlworker", "leaver", "--timeout=60s")
    until(lambda: extra.node is None, 15, "the Node stays")
    events = {event["reason"]: event["message"] for event in cluster.events("default", "leaver")}
    assert lab["lab_title"] in events["Abandoned"]
    assert [lab["id"] for lab in extra.simulator.labs()] == [lab["id"]]
    cluster.kubectl("delete", "pod", "left", f"--namespace={namespace}", "--force", "--grace-period=0")
