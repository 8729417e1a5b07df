"""Who may be thought gone, and what an answer is worth that news have overtaken; against a server over loopback."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.support.scripted import ScriptedServer, refuse, status_body
from vkprovider.api.errors import Conflict
from vkprovider.api.objects import Lease
from vkprovider.controllers.context import Context
from vkprovider.controllers.replica.membership import MEMBER_PREFIX, Membership
from vkprovider.controllers.replica.ownership import Ownership
from vkprovider.kube.client import KubeClient
from vkprovider.kube.events import EventRecorder
from vkprovider.settings.cluster import ReplicaSettings

GONE_S = 10.0
"""Of LEADER_LEASE_TTL: after how much silence a member counts as gone."""


class Clock:
    """A monotonic clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ctx(kube: KubeClient, clock: Clock) -> Context:
    events = EventRecorder(kube, component="vkprovider", instance="me")
    return Context(kube=kube, events=events, installation="i", replica="me", namespace="n", now=clock)


def joined(membership: Membership) -> Membership:
    """A member that may act for as long as a test takes."""
    membership._listening_since = membership._ctx.now()
    membership._renew_began_at = 1e9
    return membership


def owning_none(ctx: Context) -> Ownership:
    """A replica that may act and owns no Node yet."""
    ownership = Ownership(ctx, ReplicaSettings(), list, wake=lambda _: None, led=lambda: None)
    joined(ownership.membership)
    return ownership


@pytest.fixture
def membership(ctx: Context) -> Membership:
    return owning_none(ctx).membership


def member(replica: str, version: str) -> dict[str, Any]:
    return {"metadata": {"name": MEMBER_PREFIX + replica, "resourceVersion": version}}


def hear(membership: Membership, replica: str, version: str) -> None:
    """Let the watch tell of a renewal."""
    membership._member_changed(None, msgspec.convert(member(replica, version), Lease))


async def test_a_replica_of_which_our_watch_has_not_told_is_asked_for(
    server: ScriptedServer, clock: Clock, membership: Membership
) -> None:
    async def there(_: web.Request) -> web.Response:
        return web.json_response(member("new", "7"))

    server.next(there, when="GET")
    assert membership.is_gone("new")
    assert not await membership.end("new"), "it lives"
    assert "new" in membership.living()
    clock.now += GONE_S
    assert membership.is_gone("new")


async def test_a_replica_that_has_left_may_be_replaced(server: ScriptedServer, membership: Membership) -> None:
    server.next(refuse(404, "not found"), when="GET")
    assert await membership.end("left")


async def test_a_renewal_heard_while_we_ask_is_not_forgotten(
    server: ScriptedServer, clock: Clock, membership: Membership
) -> None:
    async def meanwhile(_: web.Request) -> web.Response:
        hear(membership, "late", "2")
        return web.Response(status=409, body=status_body(409, "the object has been modified", "Conflict"))

    hear(membership, "late", "1")
    clock.now += GONE_S
    server.next(meanwhile, when="DELETE")
    assert not await membership.end("late")
    clock.now += GONE_S
    assert await membership.end("late"), "it could never be ended"
    versions = [seen.json["preconditions"]["resourceVersion"] for seen in server.seen if seen.method == "DELETE"]
    assert versions == ["1", "2"]


async def test_memberships_of_the_dead_are_ended_and_no_others(
    server: ScriptedServer, clock: Clock, membership: Membership
) -> None:
    hear(membership, "dead", "1")
    hear(membership, "me", "1")
    clock.now += GONE_S / 2
    hear(membership, "alive", "2")
    clock.now += GONE_S / 2
    await membership.end_all_gone()
    assert [seen.path.rpartition("/")[2] for seen in server.seen] == [f"{MEMBER_PREFIX}dead"]


def lease_of(process: str, version: str) -> dict[str, Any]:
    """The Lease of the replica `me`, as some process wrote it."""
    return {
        "metadata": {
            "name": MEMBER_PREFIX + "me",
            "resourceVersion": version,
            "annotations": {"vkprovider.io/process": process},
        },
        "spec": {"holderIdentity": "me"},
    }


def answering(document: dict[str, Any]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.json_response(document)

    return answer


TAKEN = refuse(409, "leases already exists")


async def test_the_name_of_a_replica_that_lives_is_not_taken(
    server: ScriptedServer, clock: Clock, membership: Membership
) -> None:
    """LABLET_CONTROLLER_INSTANCE_ID given twice: the second process never acts, the first one is not disturbed."""
    for version in range(5):
        server.next(TAKEN, when="POST")
        server.next(answering(lease_of("elsewhere-1-aaaa", str(version))), when="GET")
        hear(membership, "me", str(version))
        with pytest.raises(Conflict):
            await membership._renew()
        clock.now += GONE_S / 2
    assert {seen.method for seen in server.seen} == {"POST", "GET"}
    assert membership.lease_age_s is None


async def test_the_name_of_a_replica_that_is_silent_is_ended_like_any_other(
    server: ScriptedServer, clock: Clock, membership: Membership
) -> None:
    hear(membership, "me", "7")
    clock.now += GONE_S
    server.next(TAKEN, when="POST")
    server.next(answering(lease_of("elsewhere-1-aaaa", "7")), when="GET")
    with pytest.raises(Conflict):
        await membership._renew()
    assert server.seen[-1].json["preconditions"] == {"resourceVersion": "7"}
    server.next(answering(lease_of(membership._ctx.process, "9")), when="POST")
    await membership._renew()
    assert membership.lease_age_s is not None


async def test_a_container_that_crashed_leaves_its_name_to_the_next(
    server: ScriptedServer, membership: Membership
) -> None:
    host, pid, _ = membership._ctx.process.rsplit("-", 2)
    server.next(TAKEN, when="POST")
    server.next(answering(lease_of(f"{host}-{pid}-ffff", "7")), when="GET")
    with pytest.raises(Conflict):
        await membership._renew()
    server.next(answering(lease_of(membership._ctx.process, "8")), when="PUT")
    await membership._renew()
    assert [seen.method for seen in server.seen] == ["POST", "GET", "PUT"]
    assert server.seen[-1].json["metadata"]["resourceVersion"] == "7"


@pytest.mark.parametrize("mine", [True, False])
async def test_a_name_that_was_taken_meanwhile_is_lost_with_all_nodes(
    server: ScriptedServer, ctx: Context, *, mine: bool
) -> None:
    """Two writes of one name: the answer to ours was lost, or another process has taken it while we were away."""
    lost: list[str] = []
    membership = joined(Membership(ctx, 15.0, changed=lambda: None, ended=lambda: lost.append("all")))
    server.next(answering(lease_of(membership._ctx.process, "1")), when="POST")
    await membership._renew()
    hear(membership, "me", "5")
    server.next(refuse(409, "the object has been modified"), when="PUT")
    server.next(answering(lease_of(membership._ctx.process if mine else "elsewhere-1-aaaa", "5")), when="GET")
    if mine:
        server.next(answering(lease_of(membership._ctx.process, "6")), when="PUT")
        await membership._renew()
        assert server.seen[-1].json["metadata"]["resourceVersion"] == "5"
    else:
        with pytest.raises(Conflict):
            await membership._renew()
    assert lost == ([] if mine else ["all"])
    assert (membership.lease_age_s is not None) is mine
    assert membership.is_fenced is not mine


def node_lease(holder: str, epoch: int) -> dict[str, Any]:
    metadata = {"name": "vnode.w", "namespace": "kube-node-lease", "uid": "u", "resourceVersion": str(epoch + 100)}
    return {"metadata": metadata, "spec": {"holderIdentity": holder, "leaseTransitions": epoch}}


@pytest.mark.parametrize(("theirs", "ours"), [(5, {}), (3, {"w": 4})])
async def test_news_of_a_later_epoch_are_believed_before_our_own_answer(
    server: ScriptedServer, ctx: Context, theirs: int, ours: dict[str, int]
) -> None:
    """Somebody may take the node right after us, and the watch be quicker than the answer to our own write."""
    ownership = owning_none(ctx)

    async def meanwhile(_: web.Request) -> web.Response:
        news = {"type": "MODIFIED", "object": node_lease("other", theirs)}
        ownership.leases._read_line(json.dumps(news, separators=(",", ":")).encode())
        return web.json_response(node_lease("me", 4))

    server.next(refuse(404, "not found"), when="GET")
    server.next(meanwhile, when="POST")
    assert await ownership.acquire("w", "uid") is bool(ours)
    assert ownership.epochs == ours


def ours(epoch: int = 1, version: str = "1", holder: str = "me") -> dict[str, Any]:
    lease = node_lease(holder, epoch)
    lease["metadata"] |= {"resourceVersion": version, "annotations": {"vkprovider.io/installation": "i"}}
    return lease


@pytest.fixture
async def ownership(server: ScriptedServer, ctx: Context) -> Ownership:
    """The replica has taken node `w`, in epoch 1."""
    ownership = owning_none(ctx)
    server.next(refuse(404, "not found"), when="GET")
    server.next(answering(ours()), when="POST")
    assert await ownership.acquire("w", "uid")
    server.seen.clear()
    return ownership


MODIFIED = refuse(409, "the object has been modified")


async def renew(ownership: Ownership) -> None:
    """What the heartbeat does when a Lease is due."""
    lease = ownership._held["w"]
    await ownership._write("w", lease, "uid")


@pytest.mark.parametrize(
    ("found", "kept"), [(ours(1, "2"), True), (ours(2, "2"), False), (ours(1, "2", holder="other"), False)]
)
async def test_renewal_whose_answer_was_lost_does_not_cost_the_node(
    server: ScriptedServer, ownership: Ownership, found: dict[str, Any], *, kept: bool
) -> None:
    server.next(MODIFIED, when="PUT")
    server.next(answering(found), when="GET")
    server.next(answering(ours(1, "3")), when="PUT")
    await renew(ownership)
    assert ownership.epochs == ({"w": 1} if kept else {})
    assert [seen.method for seen in server.seen] == ["PUT", "GET"] + ["PUT"] * kept


async def test_renewal_under_way_does_not_undo_a_release(server: ScriptedServer, ownership: Ownership) -> None:
    async def meanwhile(_: web.Request) -> web.Response:
        server.next(MODIFIED, when="PUT")
        server.next(answering(ours(1, "2")), when="GET")
        server.next(answering(ours(1, "3", holder="")), when="PUT")
        await ownership.release("w")
        return web.json_response(ours(1, "2"))

    server.next(meanwhile, when="PUT")
    await renew(ownership)
    assert not ownership.epochs
    assert not ownership._held
    released = server.seen[-1].json
    assert (released["metadata"]["resourceVersion"], released["spec"]["holderIdentity"]) == ("2", None)


async def test_all_nodes_are_released(server: ScriptedServer, ctx: Context) -> None:
    names = [f"w{number}" for number in range(30)]
    ownership = owning_none(ctx)

    async def created(request: web.Request) -> web.Response:
        return web.json_response(ours() | {"metadata": json.loads(await request.read())["metadata"]})

    for name in names:
        server.next(refuse(404, "not found"), when="GET")
        server.next(created, when="POST")
        assert await ownership.acquire(name, "uid")
    server.seen.clear()
    await ownership.release_all()
    assert ownership.epochs == {}
    assert {seen.json["metadata"]["name"] for seen in server.seen if seen.method == "PUT"} == {
        f"vnode.{name}" for name in names
    }
