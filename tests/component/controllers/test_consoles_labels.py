"""A device is found by its label, also if another one's container has that name."""

import asyncio

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.running import SHORT
from tests.support.terminals import Terminal
from tests.support.topologies import topology
from vkprovider.labs.kubelet.spi import Exit, Target
from vkprovider.platform.errors import InputError


async def test_a_label_goes_before_the_name_of_a_container(world: World) -> None:
    """`H1` has the container h1, and `h1` has h1-2."""
    running = await world.replica(SHORT)
    simulator = await world.simulator()
    worker, definition = (
        await world.worker(simulator.url),
        await world.define(topology({"H1": "alpine", "h1": "alpine"})),
    )
    lablet = await world.pod(definition, worker, devices=["h1", "h1-2"], typed=True)
    await lablet.ready()
    devices = running.replica.devices

    async def opened(container: str, *named: str) -> str:
        """Return the label of the device whose console a command opens."""
        person, target = Terminal(), Target(lablet.namespace, lablet.name, lablet.uid, container)
        session = asyncio.create_task(devices.execute(target, ["console", *named], person))
        await person.shows("Connected to the console of ")
        label = person.out.split(" ")[0]
        await person.shows("Escape character")
        person.type("\x1d")
        assert await asyncio.wait_for(session, 60) == Exit(0)
        return label

    assert [await opened("lab", name) for name in ("h1", "H1", "h1-2")] == ["h1", "H1", "h1"]
    assert [await opened(container) for container in ("h1", "h1-2")] == ["H1", "h1"], "a container is a container"
    with pytest.raises(InputError, match="device 'h-1' of pod"):
        await devices.execute(Target(lablet.namespace, lablet.name, lablet.uid, "lab"), ["console", "h-1"], Terminal())
