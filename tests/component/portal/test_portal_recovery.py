"""Replicas die, are cut off, and lose answers at every step: one Pod for each request, nothing left (R002-077-080)."""

import asyncio
import itertools
import re

import pytest

from tests.component.controllers.looking import eventually, when
from tests.component.portal.harness import SOON, PortalWorld, Running
from tests.component.portal.wishes import ask
from tests.support.faultyapi import Asked
from vkprovider.portal.service.requests import Rejected

CREATES = [
    r"^POST .*/leases$",
    r"^POST /api/v1/namespaces$",
    r"^POST .*/secrets$",
    r"^POST .*/configmaps$",
    r"^POST .*/serviceaccounts$",
    r"^POST .*/rolebindings$",
    r"^POST .*/pods$",
    r"^PATCH /api/v1/namespaces/nublado-alice$",
    r"^DELETE .*/leases/vkprovider-userlab-alice$",
]
"""The writes of a creation, in their order."""
DELETES = [
    r"^PATCH /api/v1/namespaces/nublado-alice$",
    r"^DELETE .*/pods/nb-alice$",
    r"^DELETE /api/v1/namespaces/nublado-alice$",
    r"^DELETE .*/leases/vkprovider-userlab-alice$",
]
LOCK = r"vkprovider-userlab-alice"


@pytest.fixture
def takes_over(world: PortalWorld) -> None:
    """Let replicas take over soon, for which a busy machine fences them for moments."""
    world.takes_over_s = SOON


async def ask_while_it_lives(
    world: PortalWorld, running: Running, name: str, died: asyncio.Event | None = None, user: str = "alice"
) -> bool:
    """Ask a replica for a user's lab, again after it was fenced for a moment; return whether it accepted."""
    while True:
        try:
            await ask(world, running, user, name)
        except Rejected:
            if died is not None and died.is_set():
                return False
            await asyncio.sleep(0.1)
        else:
            return True


def dies_at(running: Running, pattern: str, *, after: bool) -> asyncio.Event:
    """Have a replica end as by SIGKILL before, or right after, its first write that matches; return when it did."""
    died = asyncio.Event()

    def cut(asked: Asked) -> None:
        if asked.method == "POST" and asked.path.endswith("/leases") and not re.search(LOCK, asked.body.decode()):
            return
        running.api.cut()
        running.task.cancel()
        died.set()

    async def cut_then() -> None:
        running.api.cut()
        running.task.cancel()
        died.set()

    if after:
        running.api.fault(pattern, then=cut_then, lose=True)
    else:
        running.api.fault(pattern, first=cut, count=None)
    return died


@pytest.mark.usefixtures("takes_over")
@pytest.mark.parametrize(
    ("pattern", "after"),
    # Before its first write, and before and after each other one.
    [(CREATES[0], False), *itertools.product(CREATES[1:], [False, True])],
)
async def test_a_creation_is_finished_or_removed_wherever_its_replica_dies(
    world: PortalWorld, pattern: str, *, after: bool
) -> None:
    first, second = await world.replica(), await world.replica()
    name = await world.define()
    died = dies_at(first, pattern, after=after)
    accepted = await ask_while_it_lives(world, first, name, died)
    await asyncio.wait_for(died.wait(), 30)
    if not accepted:  # without its Secret it goes, or never was, and can be had; with it, it goes on

        async def had() -> bool:
            try:
                await ask(world, second, "alice", name)
            except Rejected:
                return bool(await world.note("alice", "operation"))
            return True

        await eventually(had, "the lab can be had from the other replica")
    await world.until_phase("alice", "complete")
    await world.until_unlocked()
    assert len(await world.pods()) == 1
    assert len(world.stage.made) == 1


@pytest.mark.usefixtures("takes_over")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("pattern", DELETES)
async def test_a_deletion_is_finished_wherever_its_replica_dies(
    world: PortalWorld, pattern: str, *, after: bool
) -> None:
    first, second = await world.replica(), await world.replica()
    name = await world.define()
    await ask_while_it_lives(world, first, name)
    await world.until_phase("alice", "complete")
    await world.until_unlocked()
    died = dies_at(first, pattern, after=after)
    try:
        await first.replica.requests.delete("alice", "alice")
    except Rejected:
        assert pattern == DELETES[0]
        if not after:
            await second.replica.requests.delete("alice", "alice")
    await asyncio.wait_for(died.wait(), 30)
    await world.until_gone("alice")
    await world.until_unlocked()
    assert await world.pods() == []


@pytest.mark.parametrize("pattern", CREATES[1:])
async def test_a_lost_answer_makes_nothing_twice(world: PortalWorld, pattern: str) -> None:
    running, name = await world.replica(), await world.define()
    running.api.fault(pattern, lose=True)

    async def had() -> bool:
        try:
            await ask(world, running, "alice", name)
        except Rejected:
            return bool(await world.note("alice", "operation"))
        return True

    await eventually(had, "the lab can be had")
    await world.until_phase("alice", "complete")
    await world.until_unlocked()
    assert len(world.stage.made) == 1


@pytest.mark.usefixtures("takes_over")
async def test_what_a_dead_replica_had_in_hand_goes_on_while_it_boots(world: PortalWorld) -> None:
    first, second = await world.replica(), await world.replica()
    name = await world.define()
    world.stage.boots = False
    for number in range(10):
        await ask_while_it_lives(world, first, name, user=f"user-{number}")
    await world.admin.until(world.pod("user-9"), bool)
    await first.crash()
    world.stage.boots = True
    for number in range(10):
        await world.until_phase(f"user-{number}", "complete")
    await world.until_unlocked()
    assert len(world.stage.made) == 10
    assert len(second.replica.index.labs()) == 10


async def test_a_replica_that_ends_hands_over_at_once(world: PortalWorld) -> None:
    first, _ = await world.replica(LEADER_LEASE_TTL="600"), await world.replica(LEADER_LEASE_TTL="600")
    name = await world.define()
    world.stage.boots = False
    await ask(world, first, "alice", name)
    await world.admin.until(world.pod("alice"), bool)
    await first.stop()
    world.stage.boots = True
    await world.until_phase("alice", "complete")
    await world.until_unlocked()


@pytest.mark.usefixtures("takes_over")
async def test_a_replica_that_was_cut_off_writes_nothing_late(world: PortalWorld) -> None:
    """Its lab goes on with the other replica; what it still had to say does not arrive."""
    first, second = await world.replica(), await world.replica()
    name = await world.define()
    held = asyncio.Event()
    first.api.fault(r"^POST .*/pods$", first=lambda _: held.wait())
    await ask_while_it_lives(world, first, name)
    await eventually(lambda: _asked(first, r"^POST .*/pods$"), "its Pod is about to be made")
    first.api.cut()
    await world.until_phase("alice", "complete")
    assert second.replica.labs.steps_total["Make"] >= 1  # a step may be repeated
    before = await world.admin.get(world.namespace("alice"))
    first.api.heal()
    held.set()
    await eventually(lambda: _ready(first), "it acts again")
    await world.until_unlocked()
    assert len(world.stage.made) == 1
    assert await world.admin.get(world.namespace("alice")) == before


async def test_an_api_server_that_is_away_loses_nothing(world: PortalWorld) -> None:
    running, name = await world.replica(), await world.define()
    world.stage.boots = False
    await ask(world, running, "alice", name)
    await world.admin.until(world.pod("alice"), bool)
    running.api.cut()
    with pytest.raises(Rejected, match="try again"):
        await ask(world, running, "bob", name)
    world.stage.boots = True
    running.api.heal()
    await world.until_phase("alice", "complete")

    async def had() -> bool:
        try:
            await ask(world, running, "bob", name)
        except Rejected:
            return False
        return True

    await eventually(had, "bob gets a lab")
    await world.until_phase("bob", "complete")
    await world.until_unlocked()


async def test_a_lock_that_could_not_be_released_is_released_later(world: PortalWorld) -> None:
    """Its holder lives and does not hold it any more: no other replica may take it."""
    first, second = await world.replica(), await world.replica()
    name = await world.define()
    released = r"^DELETE .*/leases/vkprovider-userlab-"
    for number, running in enumerate((first, second)):
        fault = running.api.fault(released, status=503, count=None)
        await ask(world, running, f"user-{number}", name)
        await world.until_phase(f"user-{number}", "complete")
        await eventually(lambda running=running: _asked(running, released), "its release has failed")  # type: ignore[misc]
        assert fault.met
        running.api.heal()
    await world.until_unlocked()


async def test_a_lock_that_is_wanted_twice_at_once_is_taken_once(world: PortalWorld) -> None:
    """By a lab's turn and by a pass that looks for left ones: neither takes the other's Lease for another replica's."""
    running = await world.replica()
    locks = running.replica.locks
    for delay_s in (0.5, 1.0):
        running.api.fault(r"^POST .*/leases$", delay_s=delay_s)
    assert all(await asyncio.gather(locks.take("twice"), locks.take("twice")))
    assert locks.holds("twice")
    await locks.release("twice")
    await world.until_unlocked()


async def test_a_namespace_that_somebody_deletes_is_gone_and_can_be_had_again(world: PortalWorld) -> None:
    running, name = await world.replica(), await world.define()
    world.stage.boots = False
    await ask(world, running, "alice", name)
    await world.admin.until(world.pod("alice"), bool)
    await world.admin.delete(world.namespace("alice"))
    await world.until_gone("alice")
    await world.until_unlocked()
    world.stage.boots = True
    await ask(world, running, "alice", name)
    await world.until_phase("alice", "complete")


async def _asked(running: Running, pattern: str) -> bool:
    return bool(running.api.matching(pattern))


async def _ready(running: Running) -> bool:
    return not running.replica.process.unready()


@pytest.mark.parametrize("kind", ["namespaces", "pods", "leases"])
async def test_a_watch_that_delivers_nothing_holds_no_lab_up(world: PortalWorld, kind: str) -> None:
    """The replica that took the request sees nothing of what it makes; the other one finishes it, or it does itself."""
    first, _ = await world.replica(), await world.replica()
    name = await world.define()
    first.api.fault(rf"^GET .*/{kind}\?.*watch=", count=None, delay_s=600)
    first.api.end_watches(rf"/{kind}\?")
    await ask(world, first, "alice", name)
    await world.until_phase("alice", "complete")
    await world.until_unlocked()
    assert len(world.stage.made) == 1


async def test_a_lab_that_others_hold_goes_five_minutes_after_its_end(world: PortalWorld) -> None:
    """An instructor, or a program, has put a finalizer on its Pod: the user would get no lab any more."""
    ahead = [0.0]
    running = await world.replica(wall_ahead_s=lambda: ahead[0])
    family = await world.define()
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")
    held = ["x.example/stuck", "vkprovider.io/own"]
    await world.admin.patch(world.pod("alice"), {"metadata": {"finalizers": held}})
    await running.replica.requests.delete("alice", "alice")
    pod = await world.admin.until(world.pod("alice"), lambda pod: pod["metadata"].get("deletionTimestamp"))
    await world.admin.until(world.pod("alice"), lambda pod: pod["metadata"]["deletionGracePeriodSeconds"] == 0)
    assert pod["metadata"]["finalizers"] == held
    steps = running.replica.labs.steps_total
    assert "Free" not in steps
    ahead[0] = 310.0
    found = await world.admin.until(world.pod("alice"), lambda pod: pod["metadata"]["finalizers"] == held[1:])
    assert found["metadata"]["uid"] == pod["metadata"]["uid"]

    async def told() -> list[str]:
        events = await world.admin.items(f"{world.namespace('alice')}/events")
        return [event["message"] for event in events if event["reason"] == "UserLabHeld"]

    assert "x.example/stuck" in (await eventually(told, "an Event names what held it"))[0]
    await world.admin.patch(world.pod("alice"), {"metadata": {"finalizers": None}})
    await world.until_gone("alice")
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")


async def test_no_end_that_somebody_writes_is_later_than_the_longest_time(world: PortalWorld) -> None:
    running = await world.replica(VKPROVIDER_PORTAL_DURATION_MAX_SECONDS="18000")
    family = await world.define()
    await ask(world, running, "alice", family)
    await world.until_phase("alice", "complete")
    index = running.replica.index
    for end in ("2036-01-01T00:00:00Z", None):
        note = {"metadata": {"annotations": {"vkprovider.io/timeslot-end": end}}}
        await world.admin.patch(world.pod("alice"), note)

        def bounded() -> bool:
            lab = index.lab("alice")
            return lab is not None and lab.end_at == lab.began_at + 18000

        await when(bounded, f"the end is not {end}")
