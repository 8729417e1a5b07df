"""What a stolen token of the provider cannot do: touch what is not virtual."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from tests.component.controllers.looking import eventually
from tests.support.apiserver import NODE_LEASES as LEASES
from tests.support.apiserver import NODES, Admin
from tests.support.apiserver import RUNTIME_CLASSES as CLASSES

REAL_NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}}
Thief = Callable[[str, str, dict[str, Any] | None], Awaitable[tuple[int, str]]]
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "real", "namespace": "kube-node-lease"},
}
CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "handler": "runsc"}
ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"
POLICY = "ValidatingAdmissionPolicy 'vkprovider-confine'"


def pod(name: str, node: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "main:1"}]}
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**spec, "nodeName": node}}


@pytest.fixture
async def thief(admin: Admin, provider: aiohttp.ClientSession) -> AsyncIterator[Thief]:
    """Sends a request with the provider's token; returns the status and text of the answer."""
    await admin.create(ACCOUNTS, {"metadata": {"name": "default"}})
    for path, item in ((NODES, REAL_NODE), (LEASES, LEASE), (CLASSES, CLASS)):
        await admin.create(path, item)
    for each in (pod("plain"), pod("on-a-real-node", "real")):
        await admin.create(SYSTEM_PODS, each)

    async def act(method: str, path: str, body: dict[str, Any] | None) -> tuple[int, str]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        if method == "PUT" and body is not None:
            body = {**body, "metadata": (await admin.get(path) or {})["metadata"]}
        async with provider.request(method, path, json=body, headers={"Content-Type": kind}) as answer:
            return answer.status, await answer.text()

    async def confined() -> bool:
        """Whether the policy is in force yet: it takes the API server a moment."""
        node = {**REAL_NODE, "metadata": {"name": "probe"}}
        return POLICY in (await act("POST", f"{NODES}?dryRun=All", node))[1]

    await eventually(confined, "the policy")
    yield act
    await admin.delete(f"{ACCOUNTS}/default")


SYSTEM_PODS = "/api/v1/namespaces/kube-system/pods"
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
async def test_stolen_token_changes_nothing_that_is_not_virtual(thief: Thief, attack: str) -> None:
    status, said = await thief(*ATTACKS[attack])
    assert status == 403
    assert POLICY in said
    assert "The provider may change" in said


async def test_leases_of_nodes_are_deleted_by_the_garbage_collector_only(thief: Thief) -> None:
    status, said = await thief("DELETE", f"{LEASES}/vnode.worker-1", None)
    assert status == 403
    assert "cannot delete resource" in said
