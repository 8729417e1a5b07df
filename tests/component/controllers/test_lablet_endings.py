"""The end of a lablet at any moment, while the worker answers, refuses or is away: no lab and no row are left."""

import asyncio
import itertools
from typing import Any

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.labhistory import MADE, TAKEN_DOWN, history, lab_of, refused
from tests.component.controllers.looking import condition, is_ready, requests, waiting, when
from tests.component.controllers.podhandle import Lablet
from tests.support import topologies
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology
from vkpsim.http.faults import Fault

ROUTER = topology({"r1": "iosv"})
TWO = topology({"h0": "alpine", "R 1": "alpine"})
SLOW = {"iosv": (86400.0, 86400.0)}
"""Routers never boot."""


def fault(simulator: CmlSimulator, kind: str, route: str = "", **how: Any) -> None:
    """Put a fault in force."""
    simulator.faults.add(Fault(kind=kind, route=route, **how), simulator.now())  # type: ignore[arg-type]  # (a word)


async def until_done(simulator: CmlSimulator, lablet: Lablet, *expected: str) -> None:
    """Wait until exactly this was done to a lablet's lab."""
    await when(lambda: history(simulator, lablet.uid) == [*expected], f"{expected} of {lablet.name}")


def message(pod: dict[str, Any]) -> str:
    return str(waiting(pod).get("message", ""))


@pytest.mark.parametrize("grace_s", [None, 0], ids=["graceful", "forced"])
async def test_deletion_of_a_ready_lablet_extracts_stops_wipes_and_deletes(world: World, grace_s: int | None) -> None:
    """C10, C13: a Pod that is gone at once, without anybody being asked, takes its lab along too."""
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(TWO)
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    await lablet.delete(grace_s=grace_s)
    await lablet.gone()
    await until_done(simulator, lablet, *MADE, *TAKEN_DOWN)
    extractions = requests(simulator, "PUT", "/extract_configuration")
    [stop] = requests(simulator, "PUT", "/stop")
    assert len(extractions) == 2
    assert max(entry.answered_s for entry in extractions) <= stop.arrived_s


@pytest.mark.parametrize("grace_s", [None, 0], ids=["graceful", "forced"])
async def test_deletion_while_importing(world: World, grace_s: int | None) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    fault(simulator, "delay", "/import$", delay_s=7.0)
    lablet = await world.pod(definition, worker)
    await lablet.waits("ImportingLab")
    await lablet.delete(grace_s=grace_s)
    await lablet.gone()
    await until_done(simulator, lablet, "import", "DELETE")
    await asyncio.sleep(0.5)  # the time of five observations
    assert lab_of(simulator, lablet.uid) is None


async def test_deletion_while_booting(world: World) -> None:
    await world.replica()
    simulator = await world.simulator(boot_seconds_by_definition=SLOW)
    worker, definition = await world.worker(simulator.url), await world.define(ROUTER)
    lablet = await world.pod(definition, worker)
    await lablet.waits("StartingNodes")
    await lablet.delete()
    await lablet.gone()
    assert history(simulator, lablet.uid) == [*MADE, *TAKEN_DOWN]


async def test_forced_deletion_while_starting_leaves_no_lab_and_no_row(world: World) -> None:
    """One lab boots; of another the start is still being carried out."""
    await world.replica()
    simulator = await world.simulator(boot_seconds_by_definition=SLOW)
    worker, definition = await world.worker(simulator.url), await world.define(ROUTER)
    boots = await world.pod(definition, worker)
    await until_done(simulator, boots, *MADE)
    fault(simulator, "delay", "/start$", delay_s=1.5)
    starts = await world.pod(definition, worker)
    await until_done(simulator, starts, "import")
    for lablet in (boots, starts):
        await lablet.delete(grace_s=0)
    for lablet in (boots, starts):
        await until_done(simulator, lablet, *MADE, *TAKEN_DOWN)
    simulator.faults.clear()
    third = await world.pod(await world.define(), worker)
    await third.ready()
    assert [*await world.claims(worker)] == [third.uid], "with the next write the rows of the others leave"


async def test_deletion_while_the_worker_is_away(world: World) -> None:
    """A Pod stays, says why, and goes with its lab when the worker is back; a forced one leaves no lab either."""
    await world.replica()
    simulator = await world.simulator(boot_seconds_by_definition=SLOW)
    worker, definition = await world.worker(simulator.url), await world.define()
    graceful, forced = [await world.pod(definition, worker) for _ in range(2)]
    for lablet in (graceful, forced):
        await lablet.ready()
    boots = await world.pod(await world.define(ROUTER), worker)
    await until_done(simulator, boots, *MADE)
    fault(simulator, "lost_answer", "/import$", count=1)
    fault(simulator, "drop", "", skip=0, seconds=86400.0)
    lost = await world.pod(definition, worker)
    await when(lambda: lab_of(simulator, lost.uid), "the lab whose import was not answered")
    await world.node(worker, lambda node: condition(node, "Ready")["status"] == "False")
    await forced.delete(grace_s=0)
    for lablet in (graceful, boots, lost):
        await lablet.delete()
    for lablet in (graceful, boots, lost):
        assert "the lab is removed as soon as the worker answers" in (await lablet.waits("CleaningUp"))["message"]
        pod = await lablet.until(lambda pod: pod["metadata"].get("deletionTimestamp"))
        assert not is_ready(pod)
    await asyncio.sleep(1)  # more than two probes
    for lablet in (graceful, boots, lost):
        assert await world.admin.get(lablet.path), "a Pod went before its lab"
    simulator.faults.clear()
    for lablet in (graceful, boots, lost):
        await lablet.gone()
    for lablet in (graceful, forced, boots, lost):
        await when(lambda uid=lablet.uid: lab_of(simulator, uid) is None, "a lab stays")  # type: ignore[misc]


async def test_successor_of_the_same_name_gets_a_lab_of_its_own(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    first = await world.pod(definition, worker)
    await first.ready()
    await first.delete(grace_s=0)
    body = topologies.pod(first.name, definition, nodeName=f"vnode.{worker}")
    made = await world.admin.create(first.path.rpartition("/")[0], body)
    second = Lablet(world.admin, world.namespace, worker, first.name, made["metadata"]["uid"])
    await second.ready()
    await when(lambda: lab_of(simulator, first.uid) is None, "the first one's lab stays")
    assert lab_of(simulator, second.uid) is not None
    assert history(simulator, first.uid) == [*MADE, *TAKEN_DOWN]


@pytest.mark.parametrize("outcome", ["Succeeded", "Failed"])
async def test_cleaning_up_comes_before_a_terminal_phase(world: World, outcome: str) -> None:
    """A terminal phase frees the worker at once: it is not written while CML still refuses to take the lab down."""
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    fault(simulator, "status", "^PUT .*/stop$", status=500)
    if outcome == "Succeeded":
        await lablet.annotate(desired_state="TERMINATED")
    else:
        await world.admin.patch(lablet.path, {"spec": {"activeDeadlineSeconds": 1}})
    for _ in range(2):
        await lablet.waits("CleaningUp")
        pod = await lablet.until(bool)
        assert (pod["status"]["phase"], is_ready(pod)) == ("Running", False)
        tried = len(refused(simulator))
        await when(lambda tried=tried: len(refused(simulator)) > tried, "the refused stop is tried again")  # type: ignore[misc]
    assert lab_of(simulator, lablet.uid) is not None
    simulator.faults.clear()
    pod = await lablet.until(lambda pod: pod["status"]["phase"] == outcome)
    assert lab_of(simulator, lablet.uid) is None
    assert history(simulator, lablet.uid) == [*MADE, *TAKEN_DOWN]
    if outcome == "Failed":
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (1, "DeadlineExceeded")
        assert "activeDeadlineSeconds of 1" in ended["message"]


async def test_deadline_passes_while_the_lab_boots(world: World) -> None:
    await world.replica()
    simulator = await world.simulator(boot_seconds_by_definition=SLOW)
    worker, definition = await world.worker(simulator.url), await world.define(ROUTER)
    lablet = await world.pod(definition, worker, activeDeadlineSeconds=15)
    await until_done(simulator, lablet, *MADE)
    pod = await lablet.until(lambda pod: pod["status"].get("phase") == "Failed")
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (pod["status"]["reason"], ended["reason"]) == ("DeadlineExceeded", "DeadlineExceeded")
    assert "activeDeadlineSeconds of 15" in ended["message"]
    assert history(simulator, lablet.uid) == [*MADE, *TAKEN_DOWN]


async def test_refusals_of_cml_are_outlasted(world: World) -> None:
    """R004-033: 500 to start, stop, wipe and delete is said and tried again, not in vain; each is done once."""
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    fault(simulator, "status", "^PUT .*/start$", status=500, count=4)
    lablet = await world.pod(definition, worker)
    assert "/start: 500" in (await lablet.waits("WorkerError"))["message"]
    pod = await lablet.ready()
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    for route, count in (("^PUT .*/stop$", 6), ("^PUT .*/wipe$", 2), ("^DELETE ", 2)):
        fault(simulator, "status", route, status=500, count=count)
    await lablet.delete()
    await lablet.until(lambda pod: "/stop: 500" in message(pod) and waiting(pod)["reason"] == "CleaningUp")
    await lablet.gone()
    assert history(simulator, lablet.uid) == [*MADE, *TAKEN_DOWN]
    attempts = [(word, len([*group])) for word, group in itertools.groupby(refused(simulator))]
    assert attempts == [("start", 4), ("stop", 6), ("wipe", 2), ("DELETE", 2)]
