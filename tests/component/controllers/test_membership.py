"""Which replicas count as gone, and which process has a replica's name."""

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest

from tests.component.controllers.parts import Clock, context, owning_none, to_act
from tests.support.apiserver import MEMBERS, Admin
from tests.support.faultyapi import FaultyApi
from tests.support.tunnels import eventually, running
from vkprovider.labs.wiring.tunnels import dialled
from vkprovider.platform.errors import Conflict, Unavailable
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.objects import Lease
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.members import LABEL_MEMBER, MEMBER_PREFIX
from vkprovider.platform.runtime.membership import Membership

GONE_S = 10.0
"""Of LEADER_LEASE_TTL: after how much silence a member counts as gone."""
ELSEWHERE = "elsewhere-1-aaaa"
"""A process on another host."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ctx(real_kube: KubeClient, clock: Clock) -> Context:
    return context(real_kube, replica="me", now=clock)


@pytest.fixture
def membership(ctx: Context) -> Membership:
    return owning_none(ctx).membership


class Members:
    """The Leases of replicas, as other replicas write them."""

    def __init__(self, admin: Admin) -> None:
        self.admin = admin
        self._renewals = 0

    async def join(self, replica: str, process: str = ELSEWHERE) -> dict[str, Any]:
        annotations = {"vkprovider.io/process": process}
        metadata = {"name": MEMBER_PREFIX + replica, "annotations": annotations}
        return await self.admin.create(MEMBERS, {"metadata": metadata, "spec": {"holderIdentity": replica}})

    async def renew(self, replica: str, **annotations: str) -> dict[str, Any]:
        self._renewals += 1
        changed = {"annotations": {f"vkprovider.io/{name}": value for name, value in annotations.items()}}
        spec = {"leaseDurationSeconds": self._renewals}
        return await self.admin.patch(f"{MEMBERS}/{MEMBER_PREFIX}{replica}", {"metadata": changed, "spec": spec})

    async def exist(self) -> set[str]:
        return {item["metadata"]["name"].removeprefix(MEMBER_PREFIX) for item in await self.admin.items(MEMBERS)}


@pytest.fixture
def members(admin: Admin) -> Members:
    return Members(admin)


def losing(ctx: Context, lost: list[str]) -> Membership:
    """Return a membership that notes when another replica has ended it."""

    class Listener:
        def members_changed(self) -> None:
            pass

        def membership_ended(self) -> None:
            lost.append("all")

    membership = Membership(ctx, 15.0)
    membership.add_listener(Listener())
    return membership


def hear(membership: Membership, lease: dict[str, Any]) -> None:
    """Let the watch show a Lease."""
    membership.members._member_changed(None, msgspec.convert(lease, Lease))


async def test_a_replica_that_our_watch_has_not_shown_is_asked_for(
    members: Members, clock: Clock, membership: Membership
) -> None:
    await members.join("new")
    assert membership.members.is_gone("new")
    assert not await membership.members.end("new"), "it lives"
    assert "new" in membership.living()
    clock.now += GONE_S
    assert membership.members.is_gone("new")
    assert await membership.members.end("new")
    assert await members.exist() == set()


async def test_a_replica_that_has_left_may_be_replaced(admin: Admin, membership: Membership) -> None:
    assert await admin.items(MEMBERS) == []
    assert await membership.members.end("left")


async def test_a_renewal_heard_while_we_ask_is_not_forgotten(
    api: FaultyApi, members: Members, clock: Clock, membership: Membership
) -> None:
    versions: list[str] = []

    async def meanwhile() -> None:
        renewed = await members.renew("late")
        versions.append(renewed["metadata"]["resourceVersion"])
        hear(membership, renewed)

    joined = await members.join("late")
    versions.append(joined["metadata"]["resourceVersion"])
    hear(membership, joined)
    clock.now += GONE_S
    api.fault("^DELETE", first=lambda _: meanwhile())
    assert not await membership.members.end("late")
    clock.now += GONE_S
    assert await membership.members.end("late"), "it could never be ended"
    deletions = api.matching("^DELETE")
    assert [asked.json["preconditions"]["resourceVersion"] for asked in deletions] == versions
    assert [asked.status for asked in deletions] == [409, 200]


async def test_memberships_of_the_dead_are_ended_and_no_others(
    members: Members, clock: Clock, membership: Membership
) -> None:
    for replica in ("dead", "me"):
        hear(membership, await members.join(replica))
    clock.now += GONE_S / 2
    hear(membership, await members.join("alive"))
    clock.now += GONE_S / 2
    await membership.members.end_all_gone()
    assert await members.exist() == {"me", "alive"}


async def test_the_name_of_a_replica_that_lives_is_not_taken(
    api: FaultyApi, members: Members, clock: Clock, membership: Membership
) -> None:
    """LABLET_CONTROLLER_INSTANCE_ID given twice: the second process never acts, the first one is not disturbed."""
    hear(membership, await members.join("me"))
    for _ in range(5):
        hear(membership, await members.renew("me"))
        with pytest.raises(Conflict):
            await membership._renew()
        clock.now += GONE_S / 2
    assert {asked.method for asked in api.asked} == {"POST", "GET"}
    assert membership.lease_age_s is None


async def test_the_name_of_a_replica_that_is_silent_is_ended_like_any_other(
    api: FaultyApi, members: Members, clock: Clock, membership: Membership
) -> None:
    """Silence counts from the first answer, and the name is taken in the same turn that ends it."""
    silent = await members.join("me")
    hear(membership, silent)
    for waited_s in (0.0, GONE_S / 2):
        clock.now += waited_s
        with pytest.raises(Conflict):
            await membership._renew()
        assert 0 < membership._pause_s() <= GONE_S / 2
    clock.now += GONE_S / 2
    await membership._renew()
    assert [asked.method for asked in api.asked[-4:]] == ["POST", "GET", "DELETE", "POST"]
    assert api.asked[-2].json["preconditions"] == {"resourceVersion": silent["metadata"]["resourceVersion"]}
    assert membership.lease_age_s is not None


async def test_a_container_that_crashed_leaves_its_name_to_the_next(
    api: FaultyApi, members: Members, membership: Membership
) -> None:
    host, pid, _ = membership._ctx.process.rsplit("-", 2)
    crashed = await members.join("me", f"{host}-{pid}-ffff")
    await membership._renew()
    assert [asked.method for asked in api.asked] == ["POST", "GET", "PUT"]
    assert api.asked[-1].json["metadata"]["resourceVersion"] == crashed["metadata"]["resourceVersion"]
    assert membership.lease_age_s is not None


async def test_a_membership_that_another_replica_has_ended_is_lost_with_all_nodes(
    admin: Admin, members: Members, ctx: Context
) -> None:
    """The API server would create a Lease anew that is only replaced by name and version. It joins again at once."""
    lost: list[str] = []
    membership = to_act(losing(ctx, lost))
    await membership._renew()
    [first] = await admin.items(MEMBERS)
    await admin.delete(f"{MEMBERS}/{MEMBER_PREFIX}me")
    await membership._renew()
    assert (lost, membership.is_fenced) == (["all"], True)
    [second] = await admin.items(MEMBERS)
    assert await members.exist() == {"me"}
    assert second["metadata"]["uid"] != first["metadata"]["uid"]


@pytest.mark.usefixtures("admin")
async def test_silence_counts_for_as_long_as_the_api_server_answers(
    api: FaultyApi, members: Members, clock: Clock, membership: Membership
) -> None:
    """That a replica could not act itself does not make it deaf; that no renewal of its own was answered does."""
    hear(membership, await members.join("silent"))
    await membership._renew()
    clock.now += GONE_S / 2
    await membership._renew()
    membership._lose()
    clock.now += GONE_S / 2
    await membership._renew()
    assert membership.members.is_gone("silent")
    api.fault("^PUT", status=503, count=None)
    clock.now += GONE_S
    with pytest.raises(Unavailable):
        await membership._renew()
    api.heal()
    await membership._renew()
    assert not membership.members.is_gone("silent"), "it may have been cut off as well"
    clock.now += GONE_S
    assert membership.members.is_gone("silent")


@pytest.mark.usefixtures("admin")
async def test_a_machine_that_was_suspended_past_a_fence_resumes(ctx: Context, clock: Clock) -> None:
    """The clock goes on and timers do not, so that the Lease may be renewed before anything has seen the fence."""
    resumed: list[float] = []
    membership = Membership(ctx, 15.0)
    membership.ready.set()
    fence = partial(
        membership.run_fence, fenced=lambda: None, resumed=lambda: resumed.append(clock.now), led=lambda: None
    )
    async with running(membership.run, fence):
        await eventually(lambda: resumed == [1000.0])
        clock.now += 60.0
        assert membership.is_fenced, "and nothing has seen it"
        await eventually(lambda: resumed == [1000.0, 1060.0])


async def test_a_replica_leads_when_those_before_it_are_gone_and_no_longer_when_one_comes(
    ctx: Context, clock: Clock, members: Members
) -> None:
    """The first living replica leads; no event tells when it falls silent."""
    led: list[float] = []
    membership = to_act(Membership(ctx, 15.0))
    hear(membership, await members.join("first"))
    fence = partial(membership.run_fence, fenced=lambda: None, resumed=lambda: None, led=lambda: led.append(clock.now))
    async with running(fence):
        clock.now += GONE_S - 0.1
        hear(membership, await members.join("second"))
        assert (led, membership.leads()) == ([], False)
        clock.now += 0.1
        await eventually(lambda: led == [1000.0 + GONE_S])
        assert membership.leads()
        hear(membership, await members.renew("first"))
        hear(membership, await members.join("a-new-one"))
        await eventually(lambda: not membership.leads())
    assert led == [1000.0 + GONE_S]


@pytest.mark.parametrize("mine", [True, False])
async def test_a_name_that_was_taken_meanwhile_is_lost_with_all_nodes(
    api: FaultyApi, members: Members, ctx: Context, *, mine: bool
) -> None:
    """Two writes of one name: the answer to ours was lost, or another process has taken it while we were away."""
    lost: list[str] = []
    membership = to_act(losing(ctx, lost))
    await membership._renew()
    other = await members.renew("me", process=ctx.process if mine else ELSEWHERE)
    hear(membership, other)
    if mine:
        await membership._renew()
        assert api.asked[-1].json["metadata"]["resourceVersion"] == other["metadata"]["resourceVersion"]
    else:
        with pytest.raises(Conflict):
            await membership._renew()
    assert lost == ([] if mine else ["all"])
    assert (membership.lease_age_s is not None) is mine
    assert membership.is_fenced is not mine


async def test_replicas_name_each_other_to_agents(admin: Admin, members: Members, ctx: Context, clock: Clock) -> None:
    """Of a replica that does not accept agents, or is gone, no agent hears."""
    membership = to_act(Membership(ctx, 15.0, {"vkprovider.io/agents-url": "https://me.example.com"}))
    watching = asyncio.create_task(membership.members.leases.run())
    await membership._renew()
    [lease] = await admin.items(MEMBERS)
    assert lease["metadata"]["annotations"]["vkprovider.io/agents-url"] == "https://me.example.com"
    for name, url in (("other", "https://other.example.com"), ("behind-a-proxy", ""), ("without", None)):
        await members.join(name, f"process-of-{name}")
        notes = {"vkprovider.io/agents-url": url} if url is not None else {}
        meta = {"labels": {LABEL_MEMBER: "true"}, "annotations": notes}
        await admin.patch(f"{MEMBERS}/{MEMBER_PREFIX}{name}", {"metadata": meta})
    expected = {
        ctx.process: "https://me.example.com",
        "process-of-other": "https://other.example.com",
        "process-of-behind-a-proxy": "",
    }
    await eventually(lambda: dialled(membership) == expected)
    for _ in range(2):
        clock.now += GONE_S / 2
        await membership._renew()
    membership._renew_began_at = clock.now
    assert dialled(membership) == {ctx.process: "https://me.example.com"}
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
