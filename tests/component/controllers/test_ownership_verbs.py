"""Forget, lose, release: what each leaves of a Node's Lease and of the right to act; on the real API server."""

import asyncio
import json
from typing import Any

import pytest

from tests.component.controllers.looking import when
from tests.component.controllers.parts import Clock, context, to_act
from tests.support.apiserver import NODE_LEASES, Admin
from tests.support.faultyapi import FaultyApi
from vkprovider.labs.controllers.worker.node_writer import NODES
from vkprovider.platform.errors import Fenced
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.ownership import Ownership

PATH = f"{NODE_LEASES}/vnode.w"


class Holder:
    """What is kept for the Nodes of a replica."""

    def __init__(self) -> None:
        self.dropped: list[str] = []

    def given_up(self, worker: str) -> None:
        self.dropped.append(worker)


@pytest.fixture
def holder() -> Holder:
    return Holder()


@pytest.fixture
def woken() -> list[str]:
    """The workers that were woken."""
    return []


@pytest.fixture
async def ownership(real_kube: KubeClient, admin: Admin, holder: Holder, woken: list[str]) -> Ownership:  # noqa: ARG001 (deletes what was written)
    """The replica `me` owns Node `w`."""
    ctx = context(real_kube, replica="me", now=Clock())
    ownership = Ownership(ctx, Membership(ctx, 15.0), NODES, list, levels=10, wake=woken.append, holders=[holder])
    to_act(ownership.membership)
    assert await ownership.acquire("w", "uid")
    return ownership


async def lease(admin: Admin) -> dict[str, Any]:
    found = await admin.get(PATH)
    assert found is not None
    spec: dict[str, Any] = found["spec"]
    return spec


def held_by(replica: str, epoch: int) -> dict[str, Any]:
    return {"spec": {"holderIdentity": replica, "leaseTransitions": epoch}}


def show(ownership: Ownership, kind: str, found: dict[str, Any]) -> None:
    """Show the replica what its watch would."""
    line = json.dumps({"type": kind, "object": found}, separators=(",", ":")).encode()
    ownership.leases._read_line(line)


async def test_forgotten_node_keeps_its_lease_and_fences_what_is_in_hand(
    api: FaultyApi, admin: Admin, ownership: Ownership, holder: Holder, woken: list[str]
) -> None:
    guard, before = ownership.guard("w"), await lease(admin)
    guard()
    api.asked.clear()
    ownership.forget("w")
    with pytest.raises(Fenced):
        guard()
    assert await lease(admin) == before
    assert (api.asked, holder.dropped, woken) == ([], ["w"], [])


async def test_released_node_is_free_in_the_same_epoch(admin: Admin, ownership: Ownership, holder: Holder) -> None:
    guard, before = ownership.guard("w"), await lease(admin)
    await ownership.release("w")
    with pytest.raises(Fenced):
        guard()
    after = await lease(admin)
    assert not after.get("holderIdentity")
    assert after["leaseTransitions"] == before["leaseTransitions"]
    assert holder.dropped == ["w"]
    assert await ownership.acquire("w", "uid")
    assert (await lease(admin))["leaseTransitions"] == before["leaseTransitions"] + 1
    with pytest.raises(Fenced):
        guard()  # of the earlier epoch


async def test_node_is_given_up_even_if_its_lease_cannot_be_released(
    api: FaultyApi, admin: Admin, ownership: Ownership
) -> None:
    api.fault("^PUT", status=500)
    await ownership.release("w")
    assert ownership.epochs == {}
    assert (await lease(admin))["holderIdentity"] == "me", "the others wait for the end of its membership"


@pytest.mark.parametrize("epoch", [1, 0])
async def test_node_that_the_watch_shows_with_another_owner_is_lost(
    admin: Admin, ownership: Ownership, holder: Holder, woken: list[str], epoch: int
) -> None:
    """Also in the same epoch: etcd was restored, and the other one took the Node from what was before."""
    guard = ownership.guard("w")
    found = await admin.get(PATH)
    assert found is not None
    show(ownership, "ADDED", found)
    assert ownership.epochs == {"w": 0}
    show(ownership, "MODIFIED", await admin.patch(PATH, held_by("other", epoch)))
    assert ownership.epochs == {}
    assert (holder.dropped, woken) == (["w"], ["w"])
    with pytest.raises(Fenced):
        guard()


async def test_node_that_the_watch_shows_with_an_earlier_owner_is_renewed_at_once(
    admin: Admin, ownership: Ownership, woken: list[str]
) -> None:
    """The watch may be late. After etcd was restored the renewal is refused, and the Node is lost."""
    await ownership.release("w")
    assert await ownership.acquire("w", "uid")
    found = await admin.get(PATH)
    assert found is not None
    heartbeat = asyncio.create_task(ownership.run_heartbeat())
    try:
        show(ownership, "MODIFIED", {**found, **held_by("other", 0)})
        assert ownership.oldest_renewal_s > 0
        await when(lambda: ownership.oldest_renewal_s == 0, "it is renewed")
        assert ownership.epochs == {"w": 1}
        assert (await lease(admin))["renewTime"] != found["spec"]["renewTime"]
        show(ownership, "MODIFIED", await admin.patch(PATH, held_by("other", 0)))
        await when(lambda: not ownership.epochs, "it is lost")
    finally:
        heartbeat.cancel()
    assert woken == ["w"]


async def test_node_whose_lease_is_deleted_is_lost_and_can_be_acquired_again(
    admin: Admin, ownership: Ownership, woken: list[str]
) -> None:
    found = await admin.get(PATH)
    assert found is not None
    show(ownership, "ADDED", found)
    await admin.delete(PATH)
    show(ownership, "DELETED", found)
    assert (ownership.epochs, woken) == ({}, ["w"])
    assert await ownership.acquire("w", "uid")
