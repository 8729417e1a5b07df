"""What a stolen token of the provider cannot do: touch what is not virtual."""

import base64
import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.support.cluster import Cluster
from vkpsandbox import Sandbox

REAL_NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}}
Thief = Callable[[str, str, dict[str, Any] | None], tuple[int, str]]
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "real", "namespace": "kube-node-lease"},
}
CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "handler": "runsc"}


def pod(name: str, node: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "main:1"}]}
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "nodeName": node}}


@pytest.fixture(scope="module")
def thief(sandbox: Sandbox) -> Iterator[Thief]:
    """Sends a request with the provider's token; returns the status and text of the answer."""
    cluster = Cluster(sandbox)
    cluster.apply(REAL_NODE, LEASE, CLASS)
    cluster.apply(pod("plain"), pod("on-a-real-node", "real"))

    kubeconfig = yaml.safe_load(sandbox.provider_kubeconfig.read_text())
    token, where = kubeconfig["users"][0]["user"]["token"], kubeconfig["clusters"][0]["cluster"]
    authority = base64.b64decode(where["certificate-authority-data"]).decode()
    trust = ssl.create_default_context(cadata=authority)

    def act(method: str, path: str, body: dict[str, Any] | None) -> tuple[int, str]:
        connection = http.client.HTTPSConnection(where["server"].removeprefix("https://"), timeout=15, context=trust)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        if method == "PUT" and body is not None:
            body = {**body, "metadata": (cluster.get(path) or {})["metadata"]}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    yield act
    cluster.kubectl("delete", "pod", "plain", "on-a-real-node", "--namespace=kube-system", "--now", "--wait=false")
    for kind, name in (("node", "real"), ("runtimeclass", "gvisor")):
        cluster.kubectl("delete", kind, name)
    cluster.kubectl("delete", "lease", "real", "--namespace=kube-node-lease")


SYSTEM_PODS = "/api/v1/namespaces/kube-system/pods"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
IP = {"status": {"podIP": "198.51.100.66", "podIPs": [{"ip": "198.51.100.66"}]}}
HEALTHY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
OURS = {"metadata": {"annotations": {"vkprovider.io/installation": "mine"}}}
ATTACKS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "deletes a real node": ("DELETE", "/api/v1/nodes/real", None),
    "changes a real node": ("PATCH", "/api/v1/nodes/real", {"spec": {"unschedulable": True}}),
    "reports a real node as healthy": ("PATCH", "/api/v1/nodes/real/status", HEALTHY),
    "makes a real node": ("POST", "/api/v1/nodes", {**REAL_NODE, "metadata": {"name": "made"}}),
    "deletes a pod of the system": ("DELETE", f"{SYSTEM_PODS}/plain", None),
    "deletes a pod of a real node": ("DELETE", f"{SYSTEM_PODS}/on-a-real-node", None),
    "attracts a pod's traffic": ("PATCH", f"{SYSTEM_PODS}/on-a-real-node/status", IP),
    "takes an unbound pod": ("PATCH", f"{SYSTEM_PODS}/plain/status", IP),
    "makes a real node's Lease": ("POST", LEASES, {**LEASE, "metadata": {"name": "made"}}),
    "keeps a dead node alive": ("PUT", f"{LEASES}/real", {**LEASE, "spec": {"holderIdentity": "real"}}),
    "deletes a RuntimeClass of others": ("DELETE", f"{CLASSES}/gvisor", None),
    "takes a RuntimeClass of others": ("PATCH", f"{CLASSES}/gvisor", OURS),
    "makes a RuntimeClass for others": ("POST", CLASSES, {**CLASS, "metadata": {"name": "kata"}}),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_stolen_token_changes_nothing_that_is_not_virtual(thief: Thief, attack: str) -> None:
    status, said = thief(*ATTACKS[attack])
    assert status == 403
    assert "ValidatingAdmissionPolicy 'vkprovider-confine'" in said
    assert "The provider may change" in said


def test_leases_of_nodes_are_deleted_by_the_garbage_collector_only(thief: Thief) -> None:
    status, said = thief("DELETE", f"{LEASES}/vnode.worker-1", None)
    assert status == 403
    assert "cannot delete resource" in said
