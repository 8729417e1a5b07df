"""What a stolen token of the provider cannot do: touch what is not virtual."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from tests.component.controllers.looking import eventually
from tests.support.apiserver import ENDPOINT_SLICES as SLICES
from tests.support.apiserver import MEMBERS, NODES, SECRETS, SYSTEM, Admin
from tests.support.apiserver import NODE_LEASES as LEASES
from tests.support.apiserver import RUNTIME_CLASSES as CLASSES

REAL_NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}}
SECRETS_HERE = f"/api/v1/namespaces/{SYSTEM}/secrets"
KEYS = {"metadata": {"name": "vkprovider-portal-settings"}, "stringData": {"VKPROVIDER_PORTAL_COOKIE_KEY": "k"}}
Thief = Callable[[str, str, dict[str, Any] | None], Awaitable[tuple[int, str]]]
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "real", "namespace": "kube-node-lease"},
}
CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "handler": "runsc"}
MEMBER = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "thief"}}
EXPOSED = {"vkprovider.io/component": "exposed-lablet"}
SLICE = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["198.51.100.66"]}],
    "ports": [{"name": "https", "port": 443, "protocol": "TCP"}],
}
GENUINE = {**SLICE, "metadata": {"name": "portal-1", "labels": {"kubernetes.io/service-name": "vkprovider-portal"}}}
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
    code = {**MEMBER, "metadata": {"name": "vkprovider-portal-code-1"}}
    for path, item in (
        (NODES, REAL_NODE),
        (LEASES, LEASE),
        (CLASSES, CLASS),
        (MEMBERS, code),
        (SLICES, GENUINE),
        (SECRETS_HERE, KEYS),
    ):
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
    await admin.delete(f"{MEMBERS}/vkprovider-portal-code-1")
    await admin.delete(f"{SLICES}/portal-1")
    await admin.delete(f"{SECRETS_HERE}/vkprovider-portal-settings")


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
    "takes over the portal's replicas": ("POST", MEMBERS, {**MEMBER, "metadata": {"name": "vkprovider-portal-1"}}),
    "uses up a one-time code": ("DELETE", f"{MEMBERS}/vkprovider-portal-code-1", None),
    "leads the portal's visitors elsewhere": (
        "POST",
        SLICES,
        {**SLICE, "metadata": {"name": "portal-2", "labels": {"kubernetes.io/service-name": "vkprovider-portal"}}},
    ),
    "leads them elsewhere by a slice that passes for a lablet's": (
        "POST",
        SLICES,
        {**SLICE, "metadata": {"name": "portal-3", "labels": {**EXPOSED, "kubernetes.io/service-name": "x"}}},
    ),
    "withdraws the portal's slice": ("DELETE", f"{SLICES}/portal-1", None),
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


async def test_stolen_token_reads_logins_and_no_key_of_the_portal(thief: Thief, admin: Admin) -> None:
    """Logins of workers have a namespace of their own; what is secret beside the provider stays so."""
    for path in (f"{SECRETS_HERE}/vkprovider-portal-settings", SECRETS_HERE, SECRETS, "/api/v1/secrets"):
        status, said = await thief("GET", path, None)
        assert (status, "cannot" in said) == (403, True), path
    await admin.create(SECRETS, {"metadata": {"name": "cml-1"}, "stringData": {"password": "p"}})
    try:
        assert (await thief("GET", f"{SECRETS}/cml-1", None))[0] == 200
        for method, body in (("PATCH", {"data": {}}), ("DELETE", None)):
            assert (await thief(method, f"{SECRETS}/cml-1", body))[0] == 403
    finally:
        await admin.delete(f"{SECRETS}/cml-1")


async def test_slices_of_exposed_lablets_and_leases_of_replicas_are_written(thief: Thief) -> None:
    meta = {"name": "lablet-1", "labels": EXPOSED}
    assert (await thief("POST", SLICES, {**SLICE, "metadata": meta}))[0] == 201
    assert (await thief("DELETE", f"{SLICES}/lablet-1", None))[0] == 200
    assert (await thief("POST", MEMBERS, {**MEMBER, "metadata": {"name": "vkprovider-replica-a"}}))[0] == 201
    assert (await thief("DELETE", f"{MEMBERS}/vkprovider-replica-a", None))[0] == 200
