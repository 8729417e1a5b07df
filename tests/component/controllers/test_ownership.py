"""Nodes taken, renewed and released while other replicas write their Leases; on the real API server."""

import asyncio
import json
from functools import partial
from typing import Any

import pytest

from tests.component.controllers.looking import when
from tests.component.controllers.parts import Clock, context, owning_none, to_act
from tests.support.apiserver import MEMBERS, NODE_LEASES, SYSTEM, Admin
from tests.support.faultyapi import FaultyApi
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.controllers.worker.node_writer import NODES
from vkprovider.platform.errors import Fenced, InputError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.leases import UNCLAIMED_S, Duty
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.leases import LeaseKind
from vkprovider.platform.runtime.members import MEMBER_PREFIX
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.ownership import Ownership

PATH = f"{NODE_LEASES}/vnode.w"


@pytest.fixture
def ctx(real_kube: KubeClient, admin: Admin) -> Context:  # noqa: ARG001 (deletes what was written)
    return context(real_kube, replica="me", now=Clock())


@pytest.mark.parametrize(("theirs", "ours"), [(5, {}), (3, {"w": 4})])
async def test_news_of_a_later_epoch_are_believed_before_our_own_answer(
    api: FaultyApi, admin: Admin, ctx: Context, theirs: int, ours: dict[str, int]
) -> None:
    """Another replica may take the Node right after us, and the watch be quicker than the answer to our own write."""
    ownership = owning_none(ctx)
    annotations = {"vkprovider.io/installation": "inst"}
    await admin.create(
        NODE_LEASES, {"metadata": {"name": "vnode.w", "annotations": annotations}, "spec": {"leaseTransitions": 3}}
    )

    async def meanwhile() -> None:
        spec = {"holderIdentity": "other", "leaseTransitions": theirs}
        found = await admin.get(PATH)
        assert found is not None
        assert found["spec"]["holderIdentity"] == "me"
        if theirs > 4:
            found = await admin.patch(PATH, {"spec": spec})
        news = {"type": "MODIFIED", "object": {**found, "spec": spec}}
        ownership.leases._read_line(json.dumps(news, separators=(",", ":")).encode())

    api.fault("^PUT", then=meanwhile)
    assert await ownership.acquire("w", "uid") is bool(ours)
    assert ownership.epochs == ours


@pytest.mark.parametrize(("written_since", "asked"), [(False, ["PUT"]), (True, ["PUT", "GET", "PUT"])])
async def test_a_lease_is_taken_as_the_watch_shows_it_and_read_only_if_that_is_old(
    api: FaultyApi, admin: Admin, ctx: Context, *, written_since: bool, asked: list[str]
) -> None:
    """A replica that dies may leave hundreds; reading each of them first would double what a takeover waits for."""
    ownership = owning_none(ctx)
    annotations = {"vkprovider.io/installation": "inst"}
    shown = await admin.create(
        NODE_LEASES, {"metadata": {"name": "vnode.w", "annotations": annotations}, "spec": {"leaseTransitions": 3}}
    )
    ownership.leases._read_line(json.dumps({"type": "ADDED", "object": shown}, separators=(",", ":")).encode())
    if written_since:
        await admin.patch(PATH, {"spec": {"leaseTransitions": 7}})
    api.asked.clear()
    assert await ownership.acquire("w", "uid")
    assert [request.method for request in api.asked] == asked
    assert ownership.epochs == {"w": 8 if written_since else 4}


@pytest.fixture
async def ownership(api: FaultyApi, ctx: Context) -> Ownership:
    """The replica has taken Node `w`."""
    ownership = owning_none(ctx)
    assert await ownership.acquire("w", "uid")
    assert ownership.epochs == {"w": 0}
    api.asked.clear()
    return ownership


async def renew(ownership: Ownership) -> None:
    """What the heartbeat does when a Lease is due."""
    await ownership._renew("w")


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"metadata": {"annotations": {"edited": "by hand"}}}, True),
        ({"spec": {"leaseTransitions": 1}}, False),
        ({"spec": {"holderIdentity": "other"}}, False),
    ],
)
async def test_a_renewal_that_meets_another_version_keeps_the_node_only_in_the_same_epoch(
    api: FaultyApi, admin: Admin, ownership: Ownership, change: dict[str, Any], *, kept: bool
) -> None:
    await admin.patch(PATH, change)
    await renew(ownership)
    assert ownership.epochs == ({"w": 0} if kept else {})
    assert [asked.method for asked in api.asked] == ["PUT", "GET"] + ["PUT"] * kept


async def test_a_renewal_whose_answer_was_lost_does_not_cost_the_node(api: FaultyApi, ownership: Ownership) -> None:
    api.fault("^PUT", lose=True)
    await renew(ownership)  # the heartbeat logs that there was no answer
    assert ownership.epochs == {"w": 0}
    await renew(ownership)  # it meets what the first one has written
    assert ownership.epochs == {"w": 0}
    assert [asked.status for asked in api.matching("^PUT")] == [0, 409, 200]


async def test_renewal_under_way_does_not_undo_a_release(api: FaultyApi, admin: Admin, ownership: Ownership) -> None:
    api.fault("^PUT", then=lambda: ownership.release("w"))
    await renew(ownership)
    assert not ownership.epochs
    assert not ownership._held
    released = await admin.get(PATH)
    assert released is not None
    assert not released["spec"].get("holderIdentity")
    assert [asked.status for asked in api.matching("^PUT")] == [200, 409, 200]


async def test_all_nodes_are_released(admin: Admin, ctx: Context) -> None:
    names = [f"w{number}" for number in range(30)]
    ownership = owning_none(ctx)
    for name in names:
        assert await ownership.acquire(name, "uid")
    held = {item["metadata"]["name"]: item["spec"].get("holderIdentity") for item in await admin.items(NODE_LEASES)}
    assert held == {f"vnode.{name}": "me" for name in names}
    await ownership.release_all()
    assert ownership.epochs == {}
    held = {item["metadata"]["name"]: item["spec"].get("holderIdentity") for item in await admin.items(NODE_LEASES)}
    assert held == {f"vnode.{name}": None for name in names}


async def test_leases_of_many_nodes_are_renewed_in_time_where_the_api_server_is_slow(
    api: FaultyApi, ctx: Context
) -> None:
    """A Node whose Lease is 50 s old is NotReady, and so are its Pods: one renewal after the other takes 24 s here."""
    ownership = owning_none(ctx)
    workers = [f"w{number}" for number in range(48)]
    for worker in workers:
        assert await ownership.acquire(worker, "uid")
    assert isinstance(ctx.now, Clock)
    ctx.now.now += 20
    slow = api.fault("^PUT .*/leases/vnode", count=None, delay_s=0.5)
    heartbeat = asyncio.create_task(ownership.run_heartbeat())
    try:
        async with asyncio.timeout(10):
            await when(lambda: ownership.oldest_renewal_s == 0, "all Leases are renewed")
    finally:
        heartbeat.cancel()
    assert slow.met == len(workers)
    assert sorted(ownership.epochs) == sorted(workers)


async def test_node_that_patience_has_left_alone_is_offered_again(ctx: Context) -> None:
    """Its planned owner lives, but takes nothing; patience grows with what is owned, between two plans."""
    woken: list[str] = []
    clock = ctx.now
    assert isinstance(clock, Clock)
    ownership = Ownership(ctx, Membership(ctx, 15.0), NODES, lambda: ["v", "w"], levels=10, wake=woken.append)
    to_act(ownership.membership)
    planning, living = ownership.plan, {"a", "me"}
    ownership.epochs["v"] = 0
    planning._plan(living)
    assert planning.planned == {"v": "me", "w": "a"}
    clock.now += UNCLAIMED_S + 1.5
    planning._plan(living)
    assert woken == ["w"]
    clock.now -= 1.5
    assert planning.act("w") is Duty.STAND_BY
    clock.now += 1.5
    planning._plan(living)
    assert woken == ["w", "w"]


async def test_a_replica_owns_keys_of_several_kinds_under_one_membership(ctx: Context, admin: Admin) -> None:
    def service(key: str, uid: str) -> ObjectRef:
        return ObjectRef("v1", "Service", SYSTEM, key, uid)

    muxes = LeaseKind(
        noun="mux",
        key="mux",
        namespace=SYSTEM,
        seconds=60,
        labels={"vkprovider.io/mux": "true"},
        name_of=lambda key: f"mux-{key}",
        key_of=lambda name: name.removeprefix("mux-"),
        about=service,
        taken_over=WorkerReason.TAKEN_OVER,
        owner=lambda key, uid: None,  # noqa: ARG005 (a mux may be in another namespace than its Lease)
        foreign=partial(InputError, WorkerReason.NODE_CONFLICT),
    )
    membership, lost = to_act(Membership(ctx, 15.0)), list[str]()
    nodes = Ownership(ctx, membership, NODES, lambda: ["w"], levels=10, wake=lost.append)
    others = Ownership(ctx, membership, muxes, lambda: ["m"], levels=10, wake=lost.append)
    assert await nodes.acquire("w", "uid")
    assert await others.acquire("m", "uid")
    written = await admin.get(f"{MEMBERS}/mux-m")
    assert written is not None
    assert written["metadata"]["labels"] == {**muxes.labels, "vkprovider.io/installed-in": "vkprovider-system"}
    assert written["spec"]["leaseDurationSeconds"] == 60
    assert "ownerReferences" not in written["metadata"]
    guards = nodes.guard("w"), others.guard("m")
    await membership._renew()
    await admin.delete(f"{MEMBERS}/{MEMBER_PREFIX}me")  # as a replica does that takes this one for dead
    await membership._renew()
    assert (nodes.epochs, others.epochs, lost) == ({}, {}, ["w", "m"])
    for guard in guards:
        with pytest.raises(Fenced):
            guard()
