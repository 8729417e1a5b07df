"""Leases and statuses of the provider are served like those of kubelets, and statuses never before Leases."""

import http.client
import json
import ssl
from typing import Any

import pytest
import yaml

from tests.support.cluster import Cluster
from tests.support.replicas import LEASES
from tests.support.waiting import until

MERGE_PATCH = "application/merge-patch+json"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
UNTOUCHED: dict[str, Any] = {}


def served_as(cluster: Cluster, method: str, path: str, body: object = None) -> tuple[int, str, str]:
    """Ask with the provider's token; give status, and the UIDs of the FlowSchema and of the priority level."""
    sandbox = cluster.sandbox
    config = yaml.safe_load(sandbox.provider_kubeconfig.read_text())
    context = ssl.create_default_context(cafile=str(sandbox.layout.pki / "server-ca.crt"))
    server = sandbox.process("kube-apiserver").url.removeprefix("https://")
    connection = http.client.HTTPSConnection(server, timeout=15, context=context)
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    kind = MERGE_PATCH if method == "PATCH" else "application/json"
    try:
        connection.request(method, path, json.dumps(body), {**headers, "Content-Type": kind})
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    found = [answer.headers.get(f"X-Kubernetes-PF-{what}-UID", "") for what in ("FlowSchema", "PriorityLevel")]
    return answer.status, found[0], found[1]


def uid(cluster: Cluster, path: str) -> str:
    found = cluster.get(path)
    assert found, path
    return str(found["metadata"]["uid"])


def level(cluster: Cluster, schema: str, name: str) -> tuple[str, str]:
    """Give the UIDs of a FlowSchema and of a priority level."""
    return uid(cluster, f"{FLOW}/flowschemas/{schema}"), uid(cluster, f"{FLOW}/prioritylevelconfigurations/{name}")


def test_leases_and_nodes_are_served_like_those_of_kubelets(cluster: Cluster) -> None:
    ours = level(cluster, "vkprovider-leases", "node-high")
    worker = cluster.workers[0]

    def written() -> bool:
        lease = cluster.get(f"{LEASES}/{worker.node}")
        status, *served = served_as(cluster, "PUT", f"{LEASES}/{worker.node}", lease)
        assert tuple(served) == ours
        return status == 200  # 409: the owner renewed it meanwhile

    until(written)
    members = "/apis/coordination.k8s.io/v1/namespaces/vkprovider-system/leases"
    assert served_as(cluster, "GET", members) == (200, *ours)
    assert served_as(cluster, "PATCH", f"/api/v1/nodes/{worker.node}/status", UNTOUCHED) == (200, *ours)


def test_no_number_of_statuses_can_delay_a_lease(cluster: Cluster) -> None:
    """They are of another priority level: three quarters of the seats of that of Leases are lent to none."""
    ours = level(cluster, "vkprovider", "system")
    worker = cluster.workers[0]
    status = f"/apis/vkprovider.io/v1alpha1/cmlworkers/{worker.name}/status"
    assert served_as(cluster, "PATCH", status, UNTOUCHED) == (200, *ours)
    claims = f"/api/v1/namespaces/vkprovider-system/configmaps/{worker.name}-port-allocations"
    assert served_as(cluster, "GET", claims)[1:] == ours
    missing = "/api/v1/namespaces/default/pods/missing"
    assert served_as(cluster, "PATCH", f"{missing}/status", UNTOUCHED) == (404, *ours)
    assert served_as(cluster, "DELETE", missing) == (404, *ours)


@pytest.mark.parametrize("path", ["/api/v1/pods?limit=1", "/apis/vkprovider.io/v1alpha1/cmlworkers"])
def test_everything_else_is_served_like_any_service_account(cluster: Cluster, path: str) -> None:
    status, schema, _ = served_as(cluster, "GET", path)
    assert (status, schema) == (200, uid(cluster, f"{FLOW}/flowschemas/service-accounts"))
