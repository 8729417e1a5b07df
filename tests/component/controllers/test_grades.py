"""A grade belongs to a learner, a session and what is kept of it: never to the Pod that the next learner gets."""

import asyncio
import json
from typing import Any

import msgspec
import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL, Running
from tests.component.controllers.test_archive import CONFIGS
from tests.component.controllers.test_sessions_flow import PORT, TOKEN
from vkprovider.lablet.archives import ArchiveEntry, Leftovers
from vkprovider.labs.pure.lablet import leftovers
from vkprovider.platform.objects import ConfigMap
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

POOL = "vkprovider.io/pool"


@pytest.fixture
async def lds(world: World) -> LdsSimulator:
    return await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))


async def start(world: World, lds: LdsSimulator, **settings: Any) -> Running:
    grader = {"VKPROVIDER_GRADER_URL": f"{lds.url}/grade", "VKPROVIDER_GRADER_TOKEN": TOKEN}
    return await world.replica(MORTAL, LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN, **grader, **settings)


async def pooled(world: World) -> Lablet:
    """Make a free lablet of a pool."""
    worker, definition = await world.worker((await world.simulator()).url), await world.define(PORT)
    lablet = await world.pod(definition, worker, labels={POOL: "warm", "class": "friday"})
    await lablet.ready()
    return lablet


async def give(world: World, lablet: Lablet, learner: str) -> None:
    notes = {"vkprovider.io/username": learner, "vkprovider.io/lent-by": "warm"}
    await world.admin.patch(lablet.path, {"metadata": {"annotations": notes, "labels": {POOL: None}}})
    await lablet.claim(lambda row: row.get("session", {}).get("ready"))


async def returned(lablet: Lablet) -> dict[str, Any]:
    pod = await lablet.until(lambda pod: pod["metadata"]["labels"].get(POOL), "not back in its pool")
    await lablet.ready()
    return pod


async def kept(world: World) -> dict[str, tuple[ArchiveEntry, Leftovers]]:
    """Return the stored archive entry and leftovers of each learner."""
    stored = [msgspec.convert(item, ConfigMap) for item in await world.admin.items(CONFIGS)]
    found = {}
    for config_map in stored:
        entry, left = leftovers.entry_of(config_map.metadata), leftovers.read(config_map)
        assert entry is not None
        assert left.username not in found
        found[left.username] = entry, left
    return found


async def test_each_learner_of_a_lablet_has_the_own_grade(world: World, lds: LdsSimulator) -> None:
    await start(world, lds)
    lablet = await pooled(world)
    sessions = {}
    for learner in ("alice", "bob"):
        await give(world, lablet, learner)
        sessions[learner] = (await lablet.claim())["session"]["id"]
        world.ahead_s += 60
        await lablet.annotate(**{"desired-state": "COLLECTING", "message": f"2026-11-26T17:00:00Z Hello, {learner}."})
        pod = await returned(lablet)
        message = (await kept(world))[learner][1].grade
        assert message is not None
        shown = json.dumps({**pod["metadata"], "status": pod["status"], "managedFields": None})
        assert learner not in shown, shown[max(0, shown.find(learner) - 300) : shown.find(learner) + 300]
        assert message.message not in shown
    found = await kept(world)
    for learner in ("alice", "bob"):
        entry, left = found[learner]
        assert (left.username, left.session_id) == (learner, sessions[learner])
        assert entry.grade == left.grade
        assert (entry.learner, entry.session_id, entry.labels["class"]) == (learner, sessions[learner], "friday")
        assert left.configs, "the work is kept beside its grade"
        assert left.responses is not None


async def test_killed_when_the_grade_is_stored_and_before_the_claim_knows(world: World, lds: LdsSimulator) -> None:
    first = await start(world, lds)
    lablet = await pooled(world)
    await give(world, lablet, "alice")

    stored = asyncio.Event()

    async def cut() -> None:
        first.api.cut()
        stored.set()

    first.api.fault(r"^PUT .*/configmaps/left-", count=1, then=cut)
    await lablet.annotate(**{"desired-state": "COLLECTING"})
    await asyncio.wait_for(stored.wait(), 60)
    await first.crash()
    assert (await kept(world))["alice"][1].grade is not None
    assert "verdict" not in await lablet.claim()
    await start(world, lds)
    pod = await returned(lablet)
    assert "alice" not in json.dumps(pod["metadata"].get("annotations", {}))
    entry, left = (await kept(world))["alice"]
    assert entry.grade == left.grade
    assert left.grade is not None
    assert left.configs


async def test_a_grade_is_kept_where_nothing_else_is(world: World, lds: LdsSimulator) -> None:
    """A null worker has no configurations, and without a session there are no answers."""
    grader = {"VKPROVIDER_GRADER_URL": f"{lds.url}/grade", "VKPROVIDER_GRADER_TOKEN": TOKEN}
    await world.replica(MORTAL, **grader)
    lablet = await world.pod(await world.define(), await world.worker(), annotations={"vkprovider.io/username": "zoe"})
    await lablet.ready()
    await lablet.annotate(**{"desired-state": "COLLECTING"})
    await lablet.until(lambda pod: pod["status"]["phase"] in {"Succeeded", "Failed"})
    entry, left = (await kept(world))["zoe"]
    assert (entry.learner, left.configs) == ("zoe", {})
    assert entry.grade is not None
