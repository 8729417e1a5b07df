"""A lablet whose consoles and ports a test uses, on a simulator in the same loop."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import SHORT, Groups, Running
from tests.support import topologies
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.terminals import Terminal
from tunnels.base import ByteChannel
from vkprovider.labs.controllers.console.devices import LabletDevices
from vkprovider.labs.kubelet.spi import Exit, LogLine, LogOptions, Target
from vkprovider.platform.errors import InputError, Unavailable
from vkpsim.cml.consoles.patty import PattySettings
from vkpsim.cml.world.model import Node

DEVICES = {"r1": "iosv", "h0": "alpine", "h1": "alpine", "fw": "acme-fw", "sw": "unmanaged_switch"}
TAGS = {
    "r1": ["serial:5000", "pat:5001:80"],
    "h0": ["vnc:5002", "pat:5003:80", "pat:udp:5004:53", "http:5005", "pat:5006:22"],
}
NINE = 9


@dataclass
class Site:
    """A lablet that runs."""

    world: World
    running: Running
    simulator: CmlSimulator
    worker: str
    lablet: Lablet

    @property
    def devices(self) -> LabletDevices:
        return self.running.replica.devices

    def target(self, container: str) -> Target:
        return Target(self.lablet.namespace, self.lablet.name, self.lablet.uid, container)

    def node(self, label: str) -> Node:
        [lab] = self.simulator.simulation.world.labs.values()
        return next(node for node in lab.nodes.values() if node.label == label)

    def sockets(self) -> int:
        return len(self.simulator.consoles._sockets)

    async def log(self, container: str, **options: object) -> list[LogLine]:
        lines = self.devices.log(self.target(container), LogOptions(**options))  # type: ignore[arg-type]
        return [line async for line in lines]

    async def run(self, container: str, *words: str, **how: bool) -> tuple[Exit, Terminal]:
        terminal = Terminal(**{"tty": False, "stdin": False, **how})
        return await self.devices.execute(self.target(container), words, terminal), terminal

    def attach(self, person: Terminal, container: str = "r1", **how: bool) -> asyncio.Task[Exit]:
        return asyncio.create_task(self.devices.attach(self.target(container), person, **how))

    async def until_on(self, container: str) -> None:
        """Wait until a device that has just stopped runs again, and the replica knows."""

        async def look() -> bool:
            if len(self.node(container).boots) == 1 or self.node(container).state != "BOOTED":
                return False
            try:
                await self.devices._finder.running(self.target(container))
            except InputError:
                return False
            return True

        await eventually(look, f"{container} runs")

    async def port(self, name: str) -> int:
        [ports] = (await self.world.ports(self.worker)).values()
        return ports[name]


def free_range() -> int:
    """Return the first of nine ports of which none is in use, among those of this process of pytest."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for first in range(21_000 + 1_000 * process, 22_000 + 1_000 * process, 10):
        try:
            for port in range(first, first + NINE):
                socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return first
    raise AssertionError("no ports")


async def open_site(
    world: World, *, patty: bool = False, intervals: Groups = SHORT, console_baud: int = 0, **env: str
) -> Site:
    first = free_range()
    opens = PattySettings(first_port=first, last_port=first + NINE, poll_s=0.05) if patty else None
    simulator = await world.simulator(patty=opens, console_baud=console_baud)
    running = await world.replica({**intervals, "consoles": {"exec_timeout_s": 3.0}}, **env)
    worker = await world.worker(simulator.url, portRange={"start": first, "end": first + NINE})
    given = "node_definition: acme-fw\n  cpus: 4\n  ram: 8192"
    topology = topologies.topology(DEVICES, TAGS).replace("node_definition: acme-fw", given)
    lablet = await world.pod(await world.define(topology), worker, devices=["r1", "h0", "fw", "sw"], typed=True)
    await lablet.ready()
    return Site(world, running, simulator, worker, lablet)


async def eventually_no_sockets(site: Site) -> None:
    async def look() -> bool:
        return not site.sockets()

    await eventually(look, "no connection")


async def until_line(log: AsyncIterator[LogLine], text: str) -> LogLine:
    async with asyncio.timeout(60):
        async for line in log:
            if line.text == text:
                return line
    raise AssertionError(f"{text!r} did not come")


async def until_open(site: Site, port: int) -> ByteChannel:
    async with asyncio.timeout(60):
        while True:
            try:
                return await site.devices.dial(site.lablet.namespace, site.lablet.name, port)
            except Unavailable:
                await asyncio.sleep(0.05)


async def read_all(channel: ByteChannel) -> bytes:
    said = b""
    while data := await channel.read():
        said += data
    return said


async def collect(log: AsyncIterator[LogLine]) -> list[LogLine]:
    return [line async for line in log]
