"""Leases and statuses of the provider are served like those of kubelets, and statuses never before Leases."""

from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from tests.component.controllers.looking import eventually
from tests.support.apiserver import CONFIG_MAPS, GROUP, MEMBERS, NODE_LEASES, NODES, Admin
from tests.support.extra import cmlworker

MERGE_PATCH = "application/merge-patch+json"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
UNTOUCHED: dict[str, Any] = {}
NODE = "vnode.flowing"
Served = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
async def served(admin: Admin, provider: aiohttp.ClientSession) -> Served:
    """Asks with the provider's token; returns status, and the UIDs of the FlowSchema and of the priority level."""
    await admin.create(NODES, {"metadata": {"name": NODE}})
    await admin.create(NODE_LEASES, {"metadata": {"name": NODE}, "spec": {"holderIdentity": "r1"}})
    await admin.create(f"{GROUP}/cmlworkers", cmlworker("flowing", "https://cml.invalid"))

    async def ask(method: str, path: str, body: object = None) -> tuple[int, str, str]:
        kind = MERGE_PATCH if method == "PATCH" else "application/json"
        async with provider.request(method, path, json=body, headers={"Content-Type": kind}) as answer:
            await answer.read()
            found = [answer.headers.get(f"X-Kubernetes-PF-{what}-UID", "") for what in ("FlowSchema", "PriorityLevel")]
            return answer.status, found[0], found[1]

    async def known() -> bool:
        """Whether the FlowSchemas are in force yet: it takes the API server a moment."""
        found = [(await ask("GET", path))[1] for path in (MEMBERS, f"{CONFIG_MAPS}/claims")]
        return found == [await uid(admin, f"{FLOW}/flowschemas/{name}") for name in ("vkprovider-leases", "vkprovider")]

    await eventually(known, "the FlowSchemas")
    return ask


async def uid(admin: Admin, path: str) -> str:
    found = await admin.get(path)
    assert found, path
    return str(found["metadata"]["uid"])


async def level(admin: Admin, schema: str, name: str) -> tuple[str, str]:
    """Return the UIDs of a FlowSchema and of a priority level."""
    paths = (f"{FLOW}/flowschemas/{schema}", f"{FLOW}/prioritylevelconfigurations/{name}")
    return await uid(admin, paths[0]), await uid(admin, paths[1])


async def test_leases_and_nodes_are_served_like_those_of_kubelets(admin: Admin, served: Served) -> None:
    ours = await level(admin, "vkprovider-leases", "node-high")
    lease = await admin.get(f"{NODE_LEASES}/{NODE}")
    assert await served("PUT", f"{NODE_LEASES}/{NODE}", lease) == (200, *ours)
    assert await served("GET", MEMBERS) == (200, *ours)
    assert await served("PATCH", f"{NODES}/{NODE}/status", UNTOUCHED) == (200, *ours)


async def test_no_number_of_statuses_can_delay_a_lease(admin: Admin, served: Served) -> None:
    """They are of another priority level: three quarters of the seats of that of Leases are lent to none."""
    ours = await level(admin, "vkprovider", "system")
    status = f"{GROUP}/cmlworkers/flowing/status"
    assert await served("PATCH", status, UNTOUCHED) == (200, *ours)
    claims = f"{CONFIG_MAPS}/flowing-port-allocations"
    assert (await served("GET", claims))[1:] == ours
    missing = "/api/v1/namespaces/default/pods/missing"
    assert await served("PATCH", f"{missing}/status", UNTOUCHED) == (404, *ours)
    assert await served("DELETE", missing) == (404, *ours)


@pytest.mark.parametrize("path", ["/api/v1/pods?limit=1", "/apis/vkprovider.io/v1alpha1/cmlworkers"])
async def test_everything_else_is_served_like_any_service_account(admin: Admin, served: Served, path: str) -> None:
    status, schema, _ = await served("GET", path)
    assert (status, schema) == (200, await uid(admin, f"{FLOW}/flowschemas/service-accounts"))
