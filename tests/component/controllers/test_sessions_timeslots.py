"""The end of a learner's time: by a setting, and changed while the learner works."""

import time
from datetime import UTC, datetime

from tests.component.controllers.harness import World
from tests.component.controllers.looking import is_ready, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import SHORT, WITH_PASSES, Groups
from tests.component.controllers.test_sessions_flow import PORT, TOKEN
from vkpsim.http.faults import Fault
from vkpsim.lds.model import Part, Session
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings


async def learner(
    world: World, intervals: Groups = SHORT, *, timeslots: bool = True, slot_s: int = 86400
) -> tuple[LdsSimulator, Lablet, Session]:
    """Make a lablet whose learner has a session; the LDS does not end sessions by itself."""
    settings = LdsSettings(token=TOKEN, timeslots=timeslots, end_timeslots=False)
    lds = await world.stack.enter_async_context(LdsSimulator(settings))
    await world.replica(intervals, LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN, VKPROVIDER_TIMESLOT_SECONDS=str(slot_s))
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    [session] = lds.world.sessions.values()
    return lds, lablet, session


async def ending(part: Part, unix_s: float) -> None:
    await when(lambda: part.ends_unix_s == unix_s, "the session has the new end")


def at(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat()


async def test_setting_ends_the_learners_time_without_a_word_of_the_lds(world: World) -> None:
    """VKPROVIDER_TIMESLOT_SECONDS, C59; nothing but the periodic pass sees that the clock was set (R000-010)."""
    _, lablet, session = await learner(world, WITH_PASSES, slot_s=3600)
    row = await lablet.claim(lambda row: row["session"].get("slotEnd"))
    [part] = session.parts
    assert part.ends_unix_s == row["session"]["slotEnd"] == row["session"]["slotStart"] + 3600
    world.ahead_s = 3500
    await lablet.annotate(reset="a pass that sees 3500 s")
    await lablet.claim(lambda row: row.get("reset"))
    await lablet.ready()
    assert await world.events("TimeslotEnded", lablet.name) == []
    world.ahead_s = 3700
    await lablet.until(lambda pod: pod["status"]["phase"] == "Succeeded")
    assert await world.events("TimeslotEnded", lablet.name)
    assert session.archived


async def test_changed_end_reaches_the_session_and_ends_the_lablet(world: World) -> None:
    """Prolonged, then shortened; the lablet stays Ready until its time is over, and no pass has to find that."""
    lds, lablet, session = await learner(world)
    [part] = session.parts
    began_s = part.begins_unix_s
    for ends_s in (began_s + 200_000, int(time.time()) + 20):  # the LDS is told every 10 s
        await lablet.annotate(timeslot_end=at(ends_s))
        await ending(part, ends_s)
    await world.until_event("TimeslotChanged", lablet.name)
    assert is_ready(await lablet.ready())
    told = [entry for entry in lds.log.since(0) if entry.path.endswith("/timeslot")]
    assert [entry.status for entry in told] == [204, 204]
    await lablet.until(lambda pod: pod["status"]["phase"] == "Succeeded")
    assert session.archived


async def test_lds_that_does_not_answer_is_asked_again_and_holds_nothing_up(world: World) -> None:
    lds, lablet, session = await learner(world)
    [part] = session.parts
    lds.faults.add(Fault(kind="status", status=503, route="/timeslot$"), lds.now())
    ends_s = part.begins_unix_s + 200_000
    await lablet.annotate(timeslot_end=at(ends_s))
    said = await world.until_event("TimeslotNotChanged", lablet.name)
    assert "for now: LDS default: set_timeslot: 503" in said["message"]
    assert is_ready(await lablet.ready())
    await lablet.annotate(desired_state="STOPPED")
    await lablet.waits("LabStopped")
    await lablet.annotate(desired_state=None)
    await lablet.ready()
    lds.faults.clear()
    await ending(part, ends_s)


async def test_lds_that_cannot_change_timeslots_is_named_on_the_pod(world: World) -> None:
    lds, lablet, session = await learner(world, timeslots=False)
    [part] = session.parts
    before_s = part.ends_unix_s
    await lablet.annotate(timeslot_end=at(before_s + 3600))
    said = await world.until_event("TimeslotNotChanged", lablet.name)
    assert f"the session of alice keeps its end at {at(before_s).replace('+00:00', 'Z')}" in said["message"]
    assert "LDS default cannot change the timeslot of a session" in said["message"]
    assert part.ends_unix_s == before_s
    assert is_ready(await lablet.ready())
    assert [entry for entry in lds.log.since(0) if entry.path.endswith("/timeslot")] == []
