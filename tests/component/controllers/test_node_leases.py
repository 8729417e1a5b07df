"""The Lease of a Node as it is written: who holds it, in which epoch; on the real API server."""

import pytest

from tests.component.controllers.parts import context
from tests.support.apiserver import NODE_LEASES, Admin
from tests.support.faultyapi import FaultyApi
from vkprovider.labs.controllers.worker.node_writer import NODES
from vkprovider.platform.errors import InputError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import Lease
from vkprovider.platform.runtime.leases import Leases, epoch_of, owner_uid_of

PATH = f"{NODE_LEASES}/vnode.w1"


@pytest.fixture
def leases(real_kube: KubeClient, admin: Admin) -> Leases:  # noqa: ARG001 (deletes what was written)
    return Leases(context(real_kube), NODES, lambda: None)


async def written(leases: Leases, old: Lease | None, uid: str, *, takes_over: bool = False) -> Lease:
    lease = await leases.write("w1", old, uid, holder="me", takes_over=takes_over)
    assert lease is not None
    return lease


async def test_renewal_keeps_the_epoch_and_names_the_version(api: FaultyApi, leases: Leases) -> None:
    lease = await written(leases, None, "u1", takes_over=True)
    first = (epoch_of(lease), lease.spec.acquire_time, lease.spec.renew_time)
    created = lease
    for _ in range(3):
        version = lease.metadata.resource_version
        lease = await written(leases, lease, owner_uid_of(lease))
        assert api.asked[-1].json["metadata"]["resourceVersion"] == version
    assert (epoch_of(lease), lease.spec.acquire_time) == first[:2]
    assert lease.spec.renew_time > first[2]  # type: ignore[operator]
    same = (lease.metadata.name, lease.metadata.uid, owner_uid_of(lease))
    assert same == ("vnode.w1", created.metadata.uid, "u1")


async def test_worker_that_was_made_again_owns_its_lease(api: FaultyApi, leases: Leases) -> None:
    """Else the garbage collector deletes the Lease with the former worker, and its epoch too."""
    lease = await written(leases, None, "u1", takes_over=True)
    lease = await written(leases, lease, "u2", takes_over=True)
    assert (owner_uid_of(lease), epoch_of(lease)) == ("u2", 1)
    lease = await written(leases, lease, owner_uid_of(lease))
    assert [owner["uid"] for owner in api.asked[-1].json["metadata"]["ownerReferences"]] == ["u2"]


@pytest.mark.parametrize("how", ["changed", "deleted"])
async def test_lease_that_another_client_has_written_is_lost(admin: Admin, leases: Leases, how: str) -> None:
    lease = await written(leases, None, "u1", takes_over=True)
    if how == "changed":
        await admin.patch(PATH, {"spec": {"holderIdentity": "other"}})
    else:
        await admin.delete(PATH)
    assert await leases.write("w1", lease, "u1", holder="me") is None
    found = await admin.get(PATH)
    assert (found and found["spec"]["holderIdentity"]) == ("other" if how == "changed" else None)


async def test_lease_of_another_installation_is_left_alone(admin: Admin, leases: Leases) -> None:
    assert await leases.read("w1") is None
    await admin.create(NODE_LEASES, {"metadata": {"name": "vnode.w1"}})
    with pytest.raises(InputError, match="NodeConflict"):
        await leases.read("w1")
