"""Marked labs that no claim names are reported and left alone (C10, C31); see also `test_saved_copies`."""

import asyncio
import json

from tests.component.cml.conftest import Secret
from tests.component.controllers.harness import PASSWORD, World
from tests.component.controllers.looking import labs, requests
from tests.component.controllers.running import MORTAL, Running
from tests.support.apiserver import CONFIG_MAPS, GROUP
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology
from vkprovider.cml.factory import open_labs


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


async def test_ports_of_many_unclaimed_labs_are_given_to_no_lablet_at_a_start(world: World) -> None:
    """More than are looked at in one pass; after a change of the CMLWorker none of them is read again."""
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    definition = await world.define(topology({"r1": "iosv"}, {"r1": ["serial:4000"]}))
    await first.stop()
    cml, notes = simulator.simulation.world, f"vkprovider installation={first.ctx.installation}"
    client = open_labs(simulator.url, Secret(password=PASSWORD).read)
    copies = 40
    for port in range(2000, 2000 + copies):
        text = topology({"r1": "iosv"}, {"r1": [f"serial:{port}"]}).replace("notes: ''", f"notes: {notes}")
        saved = (await client.import_lab(text, f"copy {port}")).id
        cml.start_lab(simulator.now(), cml.lab(saved))
    await client.close()
    worker = await world.worker(simulator.url, ready=False)
    lablet = await world.pod(definition, worker)
    await world.replica(MORTAL)
    await lablet.ready()
    assert (await world.ports(worker))[lablet.name] == {"r1_serial": 2000 + copies}
    read = len(requests(simulator, "GET", "/nodes"))
    await world.admin.patch(f"{GROUP}/cmlworkers/{worker}", {"spec": {"capacity": {"labs": 100}}})
    await world.node(worker, lambda node: node["status"]["capacity"]["pods"] == "100")
    late = await world.pod(definition, worker)
    await late.ready()
    assert (await world.ports(worker))[late.name] == {"r1_serial": 2001 + copies}
    nodes = [entry.path for entry in requests(simulator, "GET", "/nodes")[read:]]
    assert {path for path in nodes if "/labs/" in path} == set()


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
