"""`Node.status.images`: the image definitions of a worker with `images: On`, asked for every 5 minutes."""

from typing import Any

from tests.component.controllers.harness import World
from tests.component.controllers.looking import is_ready, when
from tests.component.controllers.running import Running
from tests.support.apiserver import GROUP, NODES
from tests.support.cmlapi.simulator import CmlSimulator
from vkprovider.lablet.observations import WorkerUsage
from vkpsim.cml.world.definitions import image_id
from vkpsim.cml.world.platforms import DEFINITIONS
from vkpsim.http.access_log import Entry
from vkpsim.http.faults import Fault

NEW = {"id": "acme-os-1", "node_definition_id": "iosv", "label": "Acme", "disk_image": "a.qcow2", "read_only": False}
FIVE_MINUTES_S = 300.0


def images_of(node: dict[str, Any]) -> list[str]:
    return [name for image in node["status"].get("images", ()) for name in image["names"]]


def asked(simulator: CmlSimulator) -> list[Entry]:
    return [entry for entry in simulator.log.entries if entry.path.endswith("/image_definitions")]


def add(simulator: CmlSimulator, number: int = 1) -> str:
    """Add an image definition to the worker; return its name on the Node."""
    one = f"acme-os-{number}"
    simulator.simulation.system.image_definitions[one] = {**NEW, "id": one}
    return f"cml/{one}"


async def probed(simulator: CmlSimulator, times: int = 3) -> None:
    """Wait until the worker has been observed some times."""
    before = len(simulator.log.entries)

    def looks() -> int:
        return sum(entry.path.endswith("/labs") for entry in list(simulator.log.entries)[before:])

    await when(lambda: looks() >= times, "the worker is observed")


def later(running: Running, worker: str) -> None:
    """Let five minutes have passed since the worker was asked."""
    running.replica.fleet.items[worker].seen.images_at -= FIVE_MINUTES_S


async def test_nothing_is_asked_and_nothing_shown_unless_it_is_on(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, stats="On")
    await probed(simulator)
    assert asked(simulator) == []
    assert "images" not in (await world.node(worker))["status"]


async def test_the_node_shows_what_the_worker_has_and_asks_once_in_five_minutes(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, images="On")
    shown = images_of(await world.node(worker, images_of))
    assert shown == sorted(shown)
    assert set(shown) == {f"cml/{image_id(each)}" for each in DEFINITIONS.values() if image_id(each)}
    added = add(simulator)
    await probed(simulator)
    await world.admin.patch(f"{GROUP}/cmlworkers/{worker}", {"spec": {"address": "198.51.100.77"}})
    await probed(simulator)
    assert len(asked(simulator)) == 1, "also if another field of the CMLWorker changes"
    writes = running.api.matching(rf"^PATCH .*/nodes/vnode.{worker}/status")
    later(running, worker)
    await world.node(worker, lambda node: added in images_of(node))
    assert len(asked(simulator)) == 2
    assert len(running.api.matching(rf"^PATCH .*/nodes/vnode.{worker}/status")) == len(writes) + 1
    later(running, worker)
    await when(lambda: len(asked(simulator)) == 3, "it is asked again")
    await probed(simulator)
    assert len(running.api.matching(rf"^PATCH .*/nodes/vnode.{worker}/status")) == len(writes) + 1, "nothing is new"


async def test_a_null_worker_has_no_images_and_no_statistics(world: World) -> None:
    running = await world.replica()
    worker = await world.worker(stats="On", images="On")
    assert images_of(await world.node(worker, is_ready)) == []
    connection = running.replica.fleet.items[worker].connection
    assert connection.stats is not None
    assert connection.images is not None
    assert await connection.stats.usage() == WorkerUsage()
    assert await connection.images.ids() == []


async def test_a_list_that_does_not_come_is_not_an_empty_one(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, images="On")
    shown = images_of(await world.node(worker, images_of))
    for fault in (
        Fault(kind="status", status=503, route="/image_definitions", count=1),
        Fault(kind="drop", route="/image_definitions", count=1),
    ):
        simulator.faults.add(fault, simulator.now())
        before = len(asked(simulator))
        later(running, worker)
        await probed(simulator, 5)
        assert images_of(await world.node(worker, is_ready)) == shown
        assert len(asked(simulator)) <= before + 2, "not asked more often for it"


async def test_the_next_owner_keeps_the_list_until_it_has_its_own(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, images="On")
    shown = images_of(await world.node(worker, images_of))
    simulator.faults.add(Fault(kind="status", status=503, route="image_definitions"), simulator.now())
    await running.crash()
    await world.replica()
    await world.lease(worker, lambda spec: spec["leaseTransitions"] >= 1)
    await probed(simulator, 5)
    assert images_of(await world.node(worker, is_ready)) == shown


async def test_the_field_goes_when_it_is_off_again(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, images="On")
    await world.node(worker, images_of)
    await world.admin.patch(f"{GROUP}/cmlworkers/{worker}", {"spec": {"images": "Off"}})
    await world.node(worker, lambda node: "images" not in node["status"])
    before = len(asked(simulator))
    await probed(simulator)
    assert len(asked(simulator)) == before


async def test_too_many_are_unknown_and_not_a_part_of_them(world: World) -> None:
    running = await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, images="On")
    await world.node(worker, images_of)
    for number in range(1001):
        add(simulator, number)
    later(running, worker)
    await world.node(worker, lambda node: "images" not in node["status"])
    assert is_ready(await world.node(worker))


async def test_an_image_list_that_somebody_changes_is_repaired(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, images="On")
    shown = images_of(await world.node(worker, images_of))
    await world.admin.patch(f"{NODES}/vnode.{worker}/status", {"status": {"images": [{"names": ["cml/forged"]}]}})
    await world.node(worker, lambda node: images_of(node) == shown)
    assert len(asked(simulator)) == 1
