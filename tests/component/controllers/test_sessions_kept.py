"""A session through everything that befalls its lab: kept, continued, collected from, archived in time."""

from collections.abc import Callable
from typing import Any, Literal

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.labhistory import MADE, TAKEN_DOWN, crash, history
from tests.component.controllers.looking import condition, requests, waiting, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import SHORT, WITH_PASSES, Groups, Running
from tests.component.controllers.test_recovery import SOON
from tests.component.controllers.test_sessions_flow import PORT, TOKEN, said
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology
from vkpsim.http.faults import Fault
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

USER = {"vkprovider.io/username": "alice"}


@pytest.fixture
async def lds(world: World) -> LdsSimulator:
    return await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))


@pytest.fixture
async def simulator(world: World) -> CmlSimulator:
    return await world.simulator()


async def start(world: World, lds: LdsSimulator, intervals: Groups = SHORT) -> Running:
    grader = {"VKPROVIDER_GRADER_URL": f"{lds.url}/grade", "VKPROVIDER_GRADER_TOKEN": TOKEN}
    return await world.replica(intervals, LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN, **grader)


async def lend(world: World, simulator: CmlSimulator, text: str = PORT, **spec: Any) -> Lablet:
    """Make a lablet for alice and wait until it is Ready."""
    worker, definition = await world.worker(simulator.url), await world.define(text)
    lablet = await world.pod(definition, worker, annotations=USER, **spec)
    await lablet.ready()
    return lablet


def is_in(state: str) -> Callable[[dict[str, Any]], bool]:
    return lambda pod: pod["metadata"]["annotations"].get("vkprovider.io/state") == state


async def report(running: Running, lds: LdsSimulator, lablet: Lablet, kind: Literal["started", "ended"]) -> None:
    """Say what the LDS says when the learner logs in, or finishes."""
    [session] = lds.world.sessions
    await running.replica.inbox.accept(said(lablet, session, kind))


def written(lds: LdsSimulator) -> list[str]:
    """List what was asked of the sessions of the LDS, besides reading."""
    [session] = lds.world.sessions
    entries = [e for e in lds.log.since(0) if e.method != "GET" and e.path.startswith("/api/v1/sessions")]
    return [f"{entry.method} {entry.path.replace(session, 'S')}" for entry in entries]


async def test_lab_that_stops_in_a_session_is_started_as_it_was(
    world: World, lds: LdsSimulator, simulator: CmlSimulator
) -> None:
    """R000-021, C48: three times, then a person must look; session and user are kept, also through a reset."""
    running = await start(world, lds, SOON)
    lablet = await lend(world, simulator, restartPolicy="Never")
    [session] = lds.world.sessions
    await report(running, lds, lablet, "started")
    await lablet.until(is_in("RUNNING"))
    for times in (1, 2, 3):
        crash(simulator, lablet.uid, "r1")
        await lablet.until(
            lambda pod, n=times: is_in("RUNNING")(pod) and f"(number {n})" in str(pod["status"]["containerStatuses"])  # type: ignore[misc]
        )
        assert history(simulator, lablet.uid) == MADE + ["start"] * times, "neither wiped nor imported again"
    crash(simulator, lablet.uid, "r1")
    await lablet.waits("NeedsAttention")
    await lablet.annotate(reset="2026-01-01T00:00:00Z")
    expected = [*MADE, *["start"] * 3, "wipe", "DELETE", *MADE]
    await when(lambda: history(simulator, lablet.uid) == expected, "the lab is imported and started afresh")
    pod = await lablet.until(lambda pod: is_in("RUNNING")(pod) and not waiting(pod))
    annotations = pod["metadata"]["annotations"]
    assert (annotations["vkprovider.io/username"], annotations["vkprovider.io/lds-session-id"]) == ("alice", session)
    assert [*lds.world.sessions] == [session]


async def test_passes_without_change_do_nothing(world: World, lds: LdsSimulator, simulator: CmlSimulator) -> None:
    """R000-014 to R000-016, R000-022: READY and RUNNING are converged; nothing is made twice."""
    running = await start(world, lds, WITH_PASSES)
    queue = running.replica.queues.lablets

    async def pass_by() -> None:
        await when(lambda: not queue.depth, "nothing is under way")
        turns = queue.runs_total
        await when(lambda: queue.runs_total >= turns + 2, "two passes were made")

    lablet = await lend(world, simulator)
    made = ["POST /api/v1/sessions", "PUT /api/v1/sessions/S/devices"]
    assert written(lds) == made
    ports = await world.ports(lablet.worker)
    await pass_by()
    await lablet.until(is_in("READY"))
    await report(running, lds, lablet, "started")
    await lablet.until(is_in("RUNNING"))
    await pass_by()
    await lablet.until(is_in("RUNNING"))
    assert written(lds) == made
    assert history(simulator, lablet.uid) == MADE
    assert await world.ports(lablet.worker) == ports


async def test_stopped_lablet_keeps_its_session(world: World, lds: LdsSimulator, simulator: CmlSimulator) -> None:
    """R000-019, C33: STOPPED is on request, and RUNNING follows it."""
    running = await start(world, lds)
    lablet = await lend(world, simulator)
    [session] = lds.world.sessions
    await report(running, lds, lablet, "started")
    await lablet.until(is_in("RUNNING"))
    await lablet.annotate(desired_state="STOPPED")
    stopped = await lablet.until(is_in("STOPPED"))
    assert (waiting(stopped)["reason"], condition(stopped, "Ready")["status"]) == ("LabStopped", "False")
    await when(lambda: history(simulator, lablet.uid) == [*MADE, "stop"], "the lab is stopped")
    await lablet.annotate(desired_state=None)
    again = await lablet.until(is_in("RUNNING"))
    assert again["metadata"]["annotations"]["vkprovider.io/lds-session-id"] == session
    assert history(simulator, lablet.uid) == [*MADE, "stop", "start"]


async def test_deleted_lablet_archives_its_session_then_removes_the_lab(
    world: World, lds: LdsSimulator, simulator: CmlSimulator
) -> None:
    """R000-020, C13: archived, stopped, wiped, deleted, in this order."""
    await start(world, lds)
    lablet = await lend(world, simulator)
    await lablet.delete()
    await lablet.gone()
    [session] = lds.world.sessions
    [archive] = [e for e in lds.log.since(0) if e.path == f"/api/v1/sessions/{session}/archive"]
    assert history(simulator, lablet.uid) == [*MADE, *TAKEN_DOWN]
    [stop] = requests(simulator, "PUT", "/stop")
    assert archive.arrived_s < stop.arrived_s
    assert lds.world.sessions[session].archived


@pytest.mark.parametrize(("status", "lacking"), [(500, {"h0", "h1"}), (503, set())], ids=["its own", "passing"])
async def test_collecting_goes_on_when_one_device_cannot_be_read(
    world: World, lds: LdsSimulator, simulator: CmlSimulator, status: int, lacking: set[str]
) -> None:
    """R000-017, R000-018: one failing device stops nothing; it is asked again where CML was away for a moment."""
    running = await start(world, lds)
    text = topology({"h0": "alpine", "h1": "alpine"}, {"h0": ["serial:5001"]})
    lablet = await lend(world, simulator, text, restartPolicy="Never")
    simulator.faults.add(Fault(kind="status", status=status, route="extract_configuration$", count=1), simulator.now())
    await report(running, lds, lablet, "started")
    await report(running, lds, lablet, "ended")
    await lablet.until(lambda pod: pod["status"]["phase"] in {"Succeeded", "Failed"})
    asked = [entry.status for entry in simulator.log.entries if entry.path.endswith("/extract_configuration")]
    assert asked.count(status) == 1, "the fault was met"
    collected = (await world.until_event("Collected", lablet.name))["message"]
    whole = "kept the configurations of 2 devices"
    assert collected in ({f"kept the configurations of 1 device; none of {h}" for h in lacking} or {whole})
    assert bool(await world.events("NotKept", lablet.name)) == bool(lacking)
    left = await running.replica.archive.find(lablet.uid)
    assert left is not None
    assert left.grade is not None
    assert set(left.faults) | set(left.configs) == {"h0", "h1"}, "the grade leaves the reasons as they are"
    assert set(left.faults) <= lacking
