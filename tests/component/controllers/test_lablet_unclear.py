"""Labs that show nothing to go by: their devices are gone, in an unknown state, or on a compute host that is away."""

from typing import Any

from aiohttp import web

from tests.component.controllers.harness import PASSWORD, World
from tests.component.controllers.looking import imports, labs, requests, waiting, when
from tests.component.controllers.podhandle import Lablet
from vkpsim.cml import server
from vkpsim.cml.simulation import Settings as CmlSettings


async def lab_in_use(world: World, url: str) -> Lablet:
    """Make a lablet whose learner may have worked in its lab, and that no recovery may touch."""
    await world.replica(LAB_START_TIMEOUT="8")
    worker, definition = await world.worker(url), await world.define()
    lablet = await world.pod(definition, worker, restartPolicy="Never")
    await lablet.ready()
    await lablet.claim(lambda row: row.get("readyAt"))
    return lablet


async def kept(lablet: Lablet, reason: str) -> None:
    """Wait until it says why it waits, and that a person has to look."""
    await lablet.waits(reason)
    said = await lablet.waits("NeedsAttention")
    assert "for more than 8 s" in said["message"]
    assert "kubectl lablet reset" in said["message"]


async def test_lab_whose_compute_host_is_away_is_kept_and_comes_back_with_it(world: World) -> None:
    """R000-021."""
    simulator = await world.simulator()
    lablet = await lab_in_use(world, simulator.url)
    simulator.simulation.world.set_connected(simulator.now(), connected=False)
    await kept(lablet, "ComputeDisconnected")
    simulator.simulation.world.set_connected(simulator.now(), connected=True)
    pod = await lablet.ready()
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0


async def test_lab_without_devices_is_kept_and_imported_again_by_reset(world: World) -> None:
    """R000-021: someone removed its devices on CML's own page."""
    simulator = await world.simulator()
    lablet = await lab_in_use(world, simulator.url)
    for lab in simulator.simulation.world.labs.values():
        lab.nodes.clear()
    await kept(lablet, "LabEmpty")
    assert len(labs(simulator)) == 1
    await lablet.annotate(reset="now")
    await lablet.until(lambda pod: waiting(pod).get("reason") != "NeedsAttention")
    await lablet.ready()
    assert len(imports(simulator)) == 2
    assert len(labs(simulator)) == 1


async def test_state_that_nobody_knows_is_no_success_and_is_not_waited_for_for_ever(world: World) -> None:
    """R000-021, R000-035: another release of CML may have another word for a state."""
    words: dict[bytes, bytes] = {}

    @web.middleware
    async def renaming(request: web.Request, handler: Any) -> web.StreamResponse:
        response: web.StreamResponse = await handler(request)
        if isinstance(response, web.Response) and isinstance(response.body, bytes):
            for word, other in words.items():
                response.body = response.body.replace(word, other)
        return response

    settings = CmlSettings(password=PASSWORD, boot_seconds=(0.0, 0.0))
    simulator = await world.stack.enter_async_context(server.CmlSimulator(settings, middlewares=[renaming]))
    lablet = await lab_in_use(world, simulator.url)
    words[b'"BOOTED"'] = b'"PAUSED"'
    await kept(lablet, "UnknownState")
    words.clear()
    await lablet.ready()


async def test_lab_in_which_nobody_worked_follows_restart_policy(world: World) -> None:
    """R000-021: with `Never` the lablet fails, and its lab goes."""
    await world.replica(LAB_START_TIMEOUT="2")
    simulator = await world.simulator(boot_seconds=(600.0, 600.0))
    worker, definition = await world.worker(simulator.url), await world.define()
    lablet = await world.pod(definition, worker, restartPolicy="Never")
    await when(lambda: requests(simulator, "PUT", "/start"), "the lab is started")
    simulator.simulation.world.set_connected(simulator.now(), connected=False)
    pod = await lablet.until(lambda pod: pod["status"]["phase"] == "Failed")
    assert pod["status"]["reason"] == "ComputeDisconnected"
    assert "is away" in pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    assert labs(simulator) == {}
