"""The Lease of a node as it is written: whose it is, in which epoch, and what is kept of it; over loopback."""

import json
from typing import Any

import pytest
from aiohttp import web

from tests.support.scripted import ScriptedServer, refuse
from vkprovider.api.errors import InputError
from vkprovider.api.objects import Lease
from vkprovider.controllers.context import Context
from vkprovider.controllers.replica.leases import NodeLeases, epoch_of, owner_uid_of
from vkprovider.kube.client import KubeClient
from vkprovider.kube.events import EventRecorder


@pytest.fixture
def leases(kube: KubeClient) -> NodeLeases:
    events = EventRecorder(kube, component="vkprovider", instance="me")
    return NodeLeases(Context(kube, events, "i", "me", "n"), lambda: None)


class Stored:
    """The one Lease of the server: what was written last, with a version of its own."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.version = 0

    async def _take(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = json.loads(await request.read())
        self.version += 1
        body["metadata"] |= {"uid": "lease-uid", "resourceVersion": str(self.version)}
        return web.json_response(body)

    async def write(self, leases: NodeLeases, old: Lease | None, uid: str, **options: Any) -> Lease:
        self.server.next(self._take, when="POST" if old is None else "PUT")
        lease = await leases.write("w1", old, uid, **options)
        assert lease is not None
        return lease

    @property
    def written(self) -> dict[str, Any]:
        body: dict[str, Any] = self.server.seen[-1].json
        return body


async def test_renewal_keeps_the_epoch_and_names_the_version(server: ScriptedServer, leases: NodeLeases) -> None:
    stored = Stored(server)
    lease = await stored.write(leases, None, "u1", holder="me", anew=True)
    first = (epoch_of(lease), lease.spec.acquire_time, lease.spec.renew_time)
    for _ in range(3):
        version = lease.metadata.resource_version
        lease = await stored.write(leases, lease, owner_uid_of(lease), holder="me")
        assert stored.written["metadata"]["resourceVersion"] == version
    assert (epoch_of(lease), lease.spec.acquire_time) == first[:2]
    assert lease.spec.renew_time > first[2]  # type: ignore[operator]
    assert (lease.metadata.name, lease.metadata.uid, owner_uid_of(lease)) == ("vnode.w1", "lease-uid", "u1")


async def test_worker_that_was_made_again_owns_its_lease(server: ScriptedServer, leases: NodeLeases) -> None:
    """Else the garbage collector takes the Lease away with the worker that is gone, and its epoch too."""
    stored = Stored(server)
    lease = await stored.write(leases, None, "u1", holder="me", anew=True)
    lease = await stored.write(leases, lease, "u2", holder="me", anew=True)
    assert (owner_uid_of(lease), epoch_of(lease)) == ("u2", 1)
    lease = await stored.write(leases, lease, owner_uid_of(lease), holder="me")
    assert [owner["uid"] for owner in stored.written["metadata"]["ownerReferences"]] == ["u2"]


@pytest.mark.parametrize("status", [404, 409])
async def test_lease_that_others_have_written_is_lost(server: ScriptedServer, leases: NodeLeases, status: int) -> None:
    lease = await Stored(server).write(leases, None, "u1", holder="me", anew=True)
    server.next(refuse(status, "changed"), when="PUT")
    assert await leases.write("w1", lease, "u1", holder="me") is None


async def test_lease_of_somebody_else_is_left_alone(server: ScriptedServer, leases: NodeLeases) -> None:
    async def foreign(_: web.Request) -> web.Response:
        return web.json_response({"metadata": {"name": "vnode.w1"}})

    server.next(foreign, when="GET")
    with pytest.raises(InputError, match="NodeConflict"):
        await leases.read("w1")
    server.next(refuse(404, "not found"), when="GET")
    assert await leases.read("w1") is None
