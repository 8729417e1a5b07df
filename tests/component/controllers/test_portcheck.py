"""Whether the console ports of a ready lablet open on its worker: a condition, and never a reason to be unready."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import condition, is_ready
from tests.component.controllers.podhandle import Lablet
from tests.support.topologies import topology

PORT = topology({"r1": "iosv"}, {"r1": ["serial:4000"]})
OPEN = "vkprovider.io/PortsOpen"


@pytest.fixture
def held() -> Iterator[socket.socket]:
    """A port of the simulators' address on which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held


async def lend(world: World, held: socket.socket) -> Lablet:
    """Make a lablet whose only console has the port that is held."""
    port = held.getsockname()[1]
    simulator = await world.simulator()
    worker = await world.worker(simulator.url, portRange={"start": port, "end": port})
    lablet = await world.pod(await world.define(PORT), worker)
    await lablet.ready()
    return lablet


async def test_port_that_opens_late_is_found_open(world: World, held: socket.socket) -> None:
    await world.replica(VKPROVIDER_PORT_CHECK_SECONDS="600")
    lablet = await lend(world, held)
    assert condition(await lablet.ready(), OPEN)["status"] == ""
    async with await asyncio.start_server(lambda _, writer: writer.close(), sock=held):
        pod = await lablet.until(lambda pod: condition(pod, OPEN)["status"] == "True")
        assert is_ready(pod)


async def test_ports_that_do_not_open_are_reported_on_pod_and_worker_and_the_lablet_stays_ready(
    world: World, held: socket.socket
) -> None:
    await world.replica(VKPROVIDER_PORT_CHECK_SECONDS="0.1")
    lablet = await lend(world, held)
    port = held.getsockname()[1]
    pod = await lablet.until(lambda pod: condition(pod, OPEN)["status"] == "False")
    assert condition(pod, OPEN)["reason"] == "PortsNotOpened"
    assert f"its range is not {port}-{port}" in condition(pod, OPEN)["message"]
    assert is_ready(pod)
    worker = await world.cmlworker(lablet.worker, lambda found: condition(found, "PortsOpen")["status"] == "False")
    assert is_ready(worker)
    await world.until_event("PortsNotOpened", lablet.worker)
