"""A learner's name wherever `kubectl lablet` takes a Pod, on a real API server."""

import pytest

from tests.component.cli.desk import Desk
from tests.component.controllers.harness import World
from tests.component.controllers.podhandle import Lablet
from tests.support.topologies import topology

END = "2999-01-31T12:00:00Z"


@pytest.fixture
async def site(world: World) -> tuple[str, str]:
    """A definition with a port, and a worker."""
    await world.replica()
    worker = await world.worker()
    return await world.define(topology({"r1": "alpine"}, {"r1": ["serial:4001"]})), worker


async def learner(world: World, site: tuple[str, str], user: str) -> Lablet:
    notes = {"vkprovider.io/username": user, "vkprovider.io/timeslot-end": END}
    made = await world.pod(*site, annotations=notes)
    await made.ready()
    return made


async def test_a_learner_stands_for_the_pod(world: World, desk: Desk, site: tuple[str, str]) -> None:
    alice, bob = await learner(world, site, "alice"), await learner(world, site, "bob@example.com")
    ports = await desk.succeeds("ports", alice.name)
    assert "serial" in ports
    assert await desk.succeeds("ports", "alice") == await desk.succeeds("ports", "-u", "alice") == ports
    said = await desk.succeeds("extend", "-u", "alice", "--learner=bob@example.com", alice.name, "--by", "15m")
    assert len(said.splitlines()) == 2, "each once"
    stopped = await desk.succeeds("stop", "bob@example.com", "--wait")
    assert stopped.startswith(f"pod/{bob.name} stopped")
    assert (await desk.succeeds("start", "-u", "bob@example.com")).startswith(f"pod/{bob.name} is being started")
    forwarded = await desk.lablet("forward", "alice", "nothing")
    assert f"pod/{alice.name} has no port 'nothing'" in forwarded.err
    logged = await desk.lablet("logs", "-u", "alice", "r9")
    assert f"pod/{alice.name} has no container for device 'r9'" in logged.err
    login = await desk.lablet("login", "-u", "bob@example.com", "--url", "https://127.0.0.1:1", "--token", "t")
    assert f"/labs/{bob.uid}/login cannot be asked" in login.err
    for pressed in (["stop", "-u", ""], ["console", "--learner", ""]):
        assert (await desk.completes(*pressed))[0] == ["alice", "bob@example.com"]
    assert (await desk.completes("console", "-u", "alice", ""))[0] == ["r1"]
    assert (await desk.completes("forward", "alice", ""))[0] == ["r1_serial"]


async def test_a_name_that_is_not_clear_does_nothing(world: World, desk: Desk, site: tuple[str, str]) -> None:
    one, two = await learner(world, site, "alice"), await learner(world, site, "alice")
    named = await learner(world, site, one.name)
    twice = await desk.lablet("extend", "-u", "alice", "--by", "5m")
    listed = ", ".join(sorted(f"pod/{pod.name}" for pod in (one, two)))
    assert (twice.code, twice.out) == (1, "")
    assert f"alice has 2 lablets: {listed}; name one of these pods" in twice.err
    assert f"pod/{one.name}: the time of alice" in await desk.succeeds("extend", one.name, "--by", "5m"), "a Pod first"
    assert f"pod/{named.name}: the time of {one.name}" in await desk.succeeds("extend", "-u", one.name, "--by", "5m")
    nobody = await desk.lablet("stop", named.name, "-u", "carol")
    assert (nobody.code, nobody.out) == (1, "")
    assert "carol has no lablet in namespace" in nobody.err
    unknown = await desk.lablet("stop", "carol")
    assert 'pods "carol" not found' in unknown.err
    assert "no learner carol has a lablet there" in unknown.err


async def test_learners_are_told_something_and_end_after_a_question(
    world: World, desk: Desk, site: tuple[str, str]
) -> None:
    alice, bob = await learner(world, site, "alice"), await learner(world, site, "bob")
    free = await world.pod(*site)
    await free.ready()
    told = await desk.lablet("message", "--all", "-m", "We go\non at 14:00.")
    assert sorted(told.out.splitlines()) == sorted(
        f"pod/{lablet.name}: {user} has the message" for lablet, user in ((alice, "alice"), (bob, "bob"))
    )
    assert "1 lablet that nobody has is left alone." in told.err

    async def message(lablet: Lablet) -> str:
        return str((await lablet.ready())["metadata"]["annotations"].get("vkprovider.io/message", ""))

    assert (await message(alice)).endswith("Z We go on at 14:00.")
    assert await message(free) == ""
    assert "has no message any more" in await desk.succeeds("message", "-u", "bob", "-m", " ")
    assert await message(bob) == ""
    for words, says in (
        (("message", "-u", "alice", "-m", "x" * 501), "a message has 500 characters at most, and this one 501"),
        (("message", free.name, "-m", "x"), "has no learner who could read it"),
        (("message", "-m", "x"), "name a POD"),
        (
            ("collect", "-u", "alice"),
            "collect ends a learner's time, and there is no terminal to confirm that: add --yes",
        ),
        (("hand-in", alice.name), "hand-in ends a learner's time, and there is no terminal to confirm that: add --yes"),
        (("hand-in", free.name, "--yes"), "has no learner, and so nothing to hand in"),
    ):
        refused = await desk.lablet(*words)
        assert (refused.code in {1, 2}, says in refused.err) == (True, True), refused
    ended = await desk.lablet("hand-in", "-u", "bob", "--yes", "--wait")
    assert f"pod/{bob.name} Succeeded" in ended.out
    await alice.ready()
