"""`kubectl lablet extend`, and `stop` and `start` of several lablets: what changes, and what is refused."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.component.cli.desk import Desk
from tests.component.controllers.harness import World
from tests.component.controllers.podhandle import Lablet
from tests.support.faultyapi import Asked, Fault

END = "2999-01-31T12:00:00Z"
USER, UNTIL = "vkprovider.io/username", "vkprovider.io/timeslot-end"


@pytest.fixture
async def site(world: World) -> tuple[str, str]:
    """A definition and a worker."""
    await world.replica()
    worker = await world.worker()
    return await world.define(), worker


def end_of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["annotations"].get(UNTIL, ""))


def here(when: str) -> str:
    """The same, on this machine's clock."""
    return datetime.fromisoformat(when).astimezone().strftime("%Y-%m-%d %H:%M")


async def learner(world: World, site: tuple[str, str], user: str, end: str = END, **labels: str) -> Lablet:
    notes = {USER: user, **({UNTIL: end} if end else {})}
    made = await world.pod(*site, annotations=notes, labels=labels)
    await made.ready()
    return made


async def test_a_class_gets_a_quarter_of_an_hour_more(world: World, desk: Desk, site: tuple[str, str]) -> None:
    alice = await learner(world, site, "alice", group="monday")
    bob = await learner(world, site, "bob", "2999-01-31T13:30:00Z", group="monday")
    other = await learner(world, site, "carol", group="friday")
    said = await desk.succeeds("extend", "-l", "group=monday", "--by", "15m")
    assert sorted(said.splitlines()) == sorted(
        [
            f"pod/{alice.name}: the time of alice ends at 2999-01-31T12:15:00Z ({here('2999-01-31T12:15:00Z')})",
            f"pod/{bob.name}: the time of bob ends at 2999-01-31T13:45:00Z ({here('2999-01-31T13:45:00Z')})",
        ]
    )
    assert end_of(await alice.ready()) == "2999-01-31T12:15:00Z"
    assert end_of(await other.ready()) == END
    said = await desk.succeeds("extend", alice.name, other.name, "--until", "2999-02-01T00:00:00Z")
    assert len(said.splitlines()) == 2
    until = await desk.succeeds("list", "-o", "json", f"--field-selector=metadata.name={other.name}")
    assert "2999-02-01T00:00:00Z" in until


async def test_two_who_extend_at_once_add_up(world: World, desk: Desk, site: tuple[str, str]) -> None:
    """The patch holds the version that was read, and is repeated."""
    alice = await learner(world, site, "alice")
    results = await asyncio.gather(*(desk.lablet("extend", alice.name, "--by", "10m") for _ in range(3)))
    assert [result.code for result in results] == [0, 0, 0], results
    assert end_of(await alice.ready()) == "2999-01-31T12:30:00Z"


async def test_the_next_learner_is_not_given_the_time_of_the_one_who_was_meant(
    world: World, desk: Desk, site: tuple[str, str]
) -> None:
    """The lablet goes back to its pool, and to bob, after it was found as that of alice."""
    notes = {USER: "alice", UNTIL: END, "vkprovider.io/lent-by": "warm"}
    lablet = await world.pod(*site, annotations=notes)
    await lablet.ready()
    api, kubeconfig = await desk.proxied()

    async def pass_on(_: Asked) -> None:
        await desk.succeeds("release", lablet.name)
        await lablet.ready()
        await desk.succeeds("assign", lablet.name, "bob", "--until", END)

    api.fault(rf"^PATCH .*/pods/{lablet.name}", first=pass_on)
    extended = await desk.lablet("extend", "-u", "alice", "--by", "15m", f"--kubeconfig={kubeconfig}")
    assert (extended.code, extended.out) == (1, "")
    assert f"pod/{lablet.name} is that of bob now; nothing was done" in extended.err
    assert end_of(await lablet.ready()) == END


async def test_what_cannot_be_extended_is_told_what_to_do(world: World, desk: Desk, site: tuple[str, str]) -> None:
    warm = await world.pod(*site)
    await warm.ready()
    openly = await learner(world, site, "alice", "")
    mine = await learner(world, site, "alice")

    async def refused(*words: str) -> str:
        result = await desk.lablet("extend", *words)
        assert result.code != 0
        assert result.out == ""
        return result.err

    assert f"to assign it: kubectl lablet assign {warm.name} USER" in await refused(warm.name, "--by", "5m")
    assert "has no end: that of alice is open" in await refused(openly.name, "--by", "5m")
    assert f"ends later already, at {END}" in await refused(mine.name, "--until", "90m")
    assert "say how long: --by 30m, or --until" in await refused(mine.name)
    assert "say how long" in await refused(mine.name, "--by", "5m", "--until", "5m")
    assert "invalid duration 'soon' of --by" in await refused(mine.name, "--by", "soon")
    assert "is over already; name a later time" in await refused(mine.name, "--until", "2020-01-01T00:00:00Z")
    assert '"nowhere" not found' in await refused("nowhere", mine.name, "--by", "5m")
    assert end_of(await mine.ready()) == END, "nothing is done while a name is wrong"


async def test_all_learners_get_an_end_and_free_lablets_none(world: World, desk: Desk, site: tuple[str, str]) -> None:
    """Open times get one, too; the lablets of a pool that nobody has are left alone by all that ends a time."""
    openly, timed = await learner(world, site, "alice", "", group="a"), await learner(world, site, "bob", group="a")
    free = await world.pod(*site, labels={"group": "a", "vkprovider.io/pool": "warm"})
    await free.ready()
    extended = await desk.lablet("extend", "--all", "--until", "2999-02-01T12:00:00Z")
    assert (extended.code, len(extended.out.splitlines())) == (0, 2)
    assert extended.err == "1 lablet that nobody has is left alone.\n"
    for lablet in (openly, timed):
        assert end_of(await lablet.ready()) == "2999-02-01T12:00:00Z"
    assert end_of(await free.ready()) == ""
    both = await desk.lablet("extend", "--all", "-l", "group=a", "--by", "5m")
    assert (both.code, "not both" in both.err) == (2, True)
    collected = await desk.lablet("collect", "-l", "group=a", "--yes", "--wait")
    assert (collected.code, collected.out.count(" Succeeded: collected")) == (0, 2), collected
    assert sorted(line.split()[0] for line in collected.out.splitlines()[2:]) == ["LEARNER", "alice", "bob"]
    assert "desired-state" not in str((await free.ready())["metadata"]["annotations"])
    released = await desk.lablet("release", "-l", "vkprovider.io/pool=warm")
    assert (released.code, released.out) == (0, "")
    assert "nobody has is left alone" in released.err


async def test_the_deadline_of_the_pod_is_the_limit(world: World, desk: Desk, site: tuple[str, str]) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=10)
    alice = await learner(world, site, "alice", soon.strftime("%Y-%m-%dT%H:%M:%SZ"))
    await world.admin.patch(alice.path, {"spec": {"activeDeadlineSeconds": 3600}})
    started = datetime.fromisoformat((await alice.ready())["status"]["startTime"])
    limit = (started + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    result = await desk.lablet("extend", alice.name, "--by", "2h")
    assert result.code == 1
    assert f"ends at {limit} by its activeDeadlineSeconds, which cannot be raised" in result.err
    await desk.succeeds("extend", alice.name, "--until", limit)
    assert end_of(await alice.ready()) == limit


async def test_one_that_fails_does_not_keep_the_others_from_it(world: World, desk: Desk, site: tuple[str, str]) -> None:
    one, two = [await learner(world, site, user, group="a") for user in ("alice", "bob")]
    ended = await world.pod(*site, labels={"group": "a"})
    await ended.ready()
    await ended.annotate(desired_state="TERMINATED")
    await ended.until(lambda pod: pod["status"]["phase"] == "Succeeded")
    result = await desk.lablet("stop", "-l", "group=a", "--wait", "--timeout", "80s")
    assert result.code == 1
    assert {line.split(";")[0] for line in result.out.splitlines()} == {
        f"pod/{one.name} stopped",
        f"pod/{two.name} stopped",
    }
    assert f"Error: pod/{ended.name} has ended (Succeeded)" in result.err
    api, kubeconfig = await desk.proxied()
    away: list[Fault] = []

    async def go_away() -> None:
        away.append(api.fault(rf"^GET .*/pods/{one.name}$", count=2, status=503))

    api.fault(rf"^PATCH .*/pods/{one.name}$", then=go_away)
    words = ("--wait", "--timeout", "80s", f"--kubeconfig={kubeconfig}")
    said = await desk.succeeds("start", one.name, two.name, one.name, *words)
    assert len(said.splitlines()) == 2
    assert [each.met for each in away] == [2], "the wait outlives an API server that is away"
    nothing = await desk.lablet("stop", "-l", "group=nobody")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err.startswith("No lablets found in")
