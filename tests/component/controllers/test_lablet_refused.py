"""Pods that ask for what is not there: they stay Pending with a reason, and CML hears nothing of them."""

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import imports
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology

PORT = topology({"r1": "iosv"}, {"r1": ["serial:4000"]})


@pytest.fixture
async def simulator(world: World) -> CmlSimulator:
    return await world.simulator()


async def test_pod_without_a_definition_is_not_a_lablet(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define()
    other = await world.pod(definition, worker, version="7.7.7")
    assert "7.7.7" in (await other.waits("UnknownVersion"))["message"]
    device = await world.pod(definition, worker, devices=["r9"])
    await device.waits("UnknownDevice")
    mismatch = await world.pod(definition, worker, containers=[{"name": "lab", "image": "other"}])
    await mismatch.waits("DefinitionMismatch")
    strange = await world.pod(definition, worker, runtimeClassName=None)
    ended = await strange.until(lambda pod: pod["status"]["phase"] == "Failed")
    assert ended["status"]["reason"] == "NotALablet"
    assert imports(simulator) == []
    await other.delete()
    await other.gone()


async def test_lablet_of_another_environment_is_refused(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define(environment="exam")
    lablet = await world.pod(definition, worker)
    await lablet.waits("EnvironmentMismatch")
    assert imports(simulator) == []


async def test_full_worker_takes_the_next_lablet_when_one_leaves(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    capacity = {"cpu": "64", "memory": "256Gi", "labs": 1, "labNodes": 400}
    worker, definition = await world.worker(simulator.url, capacity=capacity), await world.define()
    first = await world.pod(definition, worker)
    await first.ready()
    second = await world.pod(definition, worker)
    await second.waits("OutOfpods")
    await first.delete()
    await second.ready()
    await first.gone()


async def test_exhausted_ports_are_named_and_the_next_free_one_is_used(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    worker = await world.worker(simulator.url, portRange={"start": 2000, "end": 2000})
    definition = await world.define(PORT)
    first = await world.pod(definition, worker)
    await first.ready()
    second = await world.pod(definition, worker)
    await second.until(lambda pod: pod["status"].get("containerStatuses"))
    assert len(imports(simulator)) == 1
    await first.delete()
    await second.ready()
    assert list((await world.ports(worker))[second.name].values()) == [2000]


async def test_too_many_ports_for_one_lablet(world: World, simulator: CmlSimulator) -> None:
    await world.replica(PORTS_PER_INSTANCE_MAX="0")
    worker, definition = await world.worker(simulator.url), await world.define(PORT)
    lablet = await world.pod(definition, worker)
    await lablet.waits("TooManyPorts")
    assert imports(simulator) == []


async def test_lablet_waits_for_a_definition_that_comes_later(world: World, simulator: CmlSimulator) -> None:
    await world.replica()
    worker, definition = await world.worker(simulator.url), await world.define()
    pinned = await world.pod(definition, worker, version="2.0.0")
    await pinned.waits("UnknownVersion")
    await world.change_definition(definition, version="2.0.0")
    await pinned.ready()
    assert len(imports(simulator)) == 1
