"""Marked labs that no claim names are reported and left alone (C10, C31); see also `test_saved_copies`."""

import asyncio
import json

from tests.component.controllers.harness import World
from tests.component.controllers.looking import labs, requests
from tests.component.controllers.running import Running
from tests.support.apiserver import CONFIG_MAPS
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology


async def import_lab(running: Running, worker: str, title: str, notes: str) -> str:
    """Import a lab as another client would; return its id."""
    text = topology({"h0": "alpine"}, title=title).replace("notes: ''", f"notes: {json.dumps(notes)}")
    lab_id: str = (await running.replica.fleet.items[worker].labs.import_lab(text, title)).id
    return lab_id


def start(simulator: CmlSimulator, lab_id: str) -> None:
    world = simulator.simulation.world
    world.start_lab(simulator.now(), world.lab(lab_id))


def ids(simulator: CmlSimulator) -> set[str]:
    return set(simulator.simulation.world.labs)


async def test_marked_lab_without_a_claim_is_reported_and_left_alone(world: World) -> None:
    """A saved copy, or what a restored etcd has forgotten."""
    running = await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    title = "netlab-0a1b2c3d-a-saved-copy"
    saved = await import_lab(running, worker, title, f"vkprovider installation={running.ctx.installation}")
    start(simulator, saved)
    message = (await world.until_event("UnclaimedLab", worker))["message"]
    for words in (title, saved, "left alone"):
        assert words in message
    await asyncio.sleep(1)  # two more looks at the worker
    assert ids(simulator) == {saved}
    touched = [entry for entry in simulator.log.entries if saved in entry.path and entry.method != "GET"]
    assert touched == []


async def test_claims_that_were_deleted_are_written_again(world: World) -> None:
    """R000-067: the rows are what the owner knows; a deleted object makes no lab foreign."""
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define()
    first = await world.pod(definition, worker)
    await first.ready()
    await first.claim()
    await world.admin.delete(f"{CONFIG_MAPS}/{worker}-port-allocations")
    second = await world.pod(definition, worker)
    await second.ready()
    await second.claim()
    await first.claim()
    for lablet in (first, second):
        await lablet.delete()
        await lablet.gone()
    assert labs(simulator) == {}
    assert len(requests(simulator, "PUT", "/start")) == 2
