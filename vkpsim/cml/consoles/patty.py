"""PATty: tags of running nodes that really open ports, as CML's optional service of that name does.

`serial:<port>[:<line>]` serves a serial console, `vnc:<port>` a VNC server, `pat:[tcp:|udp:]<port>:<inside>` a port of
the device. Tags outside the port range, and all others, are ignored. It polls, so that a port opens a moment after
its node runs; if a port is taken, that is only logged, and the first node keeps it. Unlike in CML, `pat:` needs
no external connector: the simulated device is reachable as soon as it has booted.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, cast

import structlog

from vkpsim.cml.consoles.consoles import Consoles
from vkpsim.cml.consoles.inside import SSH, SshServer, has_ssh, serve_inside
from vkpsim.cml.world.model import Node
from vkpsim.cml.world.states import RUNNING, NodeState
from vkpsim.cml.world.world import World

_LOG: Final = structlog.get_logger(__name__)
LONGEST_LINE_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class PattySettings:
    """Settings of PATty."""

    first_port: int = 2000
    last_port: int = 7999
    poll_s: float = 0.5


@dataclass(frozen=True, slots=True)
class PortTag:
    """The port that a tag requests."""

    kind: Literal["serial", "vnc", "tcp", "udp"]
    port: int
    line: int = 0
    inside: int = 0


def parse_tag(tag: str) -> PortTag | None:
    """Parse a tag; None if PATty ignores it."""
    kind, *parts = tag.split(":")
    match kind, parts:
        case "serial", [port] if port.isdecimal():
            return PortTag("serial", int(port))
        case "serial", [port, line] if port.isdecimal() and line.isdecimal():
            return PortTag("serial", int(port), line=int(line))
        case "vnc", [port] if port.isdecimal():
            return PortTag("vnc", int(port))
        case "pat", [port, inside] if port.isdecimal() and inside.isdecimal():
            return PortTag("tcp", int(port), inside=int(inside))
        case "pat", [("tcp" | "udp") as protocol, port, inside] if port.isdecimal() and inside.isdecimal():
            return PortTag("udp" if protocol == "udp" else "tcp", int(port), inside=int(inside))
        case _:
            return None


def asked_ports(world: World, first_port: int, last_port: int) -> list[tuple[PortTag, Node]]:
    """List the ports that running nodes request, longest-running node first."""
    asked: list[tuple[PortTag, Node]] = []
    for lab in world.labs.values():
        for node in lab.nodes.values():
            if not node.tags or world.state(node) not in RUNNING:
                continue
            for tag in node.tags:
                port = parse_tag(tag)
                if port is not None and first_port <= port.port <= last_port and _serves(world, node, port):
                    asked.append((port, node))
    return sorted(asked, key=lambda ask: ask[1].boots[-1].started_at)


def _serves(world: World, node: Node, port: PortTag) -> bool:
    match port.kind:
        case "serial":
            return port.line < len(node.console_keys)
        case "vnc":
            return node.vnc_key is not None
        case _:
            return world.state(node) is NodeState.BOOTED


_Run = tuple[str, float]
"""A node and the start of its present run: after a restart its connections have broken."""


def _run(node: Node) -> _Run:
    return node.id, node.boots[-1].started_at


class Patty:
    """Opens and closes the ports of one controller."""

    def __init__(
        self,
        world: World,
        now: Callable[[], float],
        host: str,
        settings: PattySettings,
        consoles: Consoles,
    ) -> None:
        self._world = world
        self._now = now
        self._host = host
        self._settings = settings
        self._consoles = consoles
        self._open: dict[tuple[PortTag, _Run], _Listener] = {}
        self._complained: set[tuple[PortTag, _Run]] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def ports(self) -> set[int]:
        """The ports that are open."""
        return {tag.port for tag, _ in self._open}

    def start(self) -> None:
        """Begin to poll."""
        self._task = asyncio.create_task(self._run(), name="sim-patty")

    async def close(self) -> None:
        """Stop, and close all ports."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for listener in self._open.values():
            listener.close()
        self._open.clear()

    async def _run(self) -> None:
        while True:
            await self._poll()
            await asyncio.sleep(self._settings.poll_s)

    async def _poll(self) -> None:
        self._world.advance(self._now())
        asked = asked_ports(self._world, self._settings.first_port, self._settings.last_port)
        wanted: dict[tuple[bool, int], tuple[PortTag, Node]] = {}
        for tag, node in asked:
            holder = wanted.setdefault((tag.kind == "udp", tag.port), (tag, node))
            if holder != (tag, node):
                self._complain(tag, node, f"node {holder[1].label} has it")
        keep = {(tag, _run(node)) for tag, node in wanted.values()}
        for ask, listener in list(self._open.items()):
            if ask not in keep:
                listener.close()
                del self._open[ask]
        for tag, node in wanted.values():
            if (tag, _run(node)) in self._open:
                continue
            listener = _Listener(self._consoles, tag, node)
            try:
                await listener.open(self._host)
            except OSError as error:
                self._complain(tag, node, str(error))
            else:
                self._open[tag, _run(node)] = listener
        self._complained &= {(tag, _run(node)) for tag, node in asked}

    def _complain(self, tag: PortTag, node: Node, reason: str) -> None:
        if (tag, _run(node)) not in self._complained:
            self._complained.add((tag, _run(node)))
            _LOG.warning("port not opened", port=tag.port, kind=tag.kind, node=node.label, reason=reason)


class _Listener:
    """One open port of one node."""

    def __init__(self, consoles: Consoles, tag: PortTag, node: Node) -> None:
        self._consoles = consoles
        self._tag = tag
        self._node = node
        self._server: asyncio.Server | SshServer | None = None
        self._datagrams: asyncio.DatagramTransport | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self, host: str) -> None:
        """Listen."""
        if self._tag.kind == "udp":
            loop = asyncio.get_running_loop()
            self._datagrams, _ = await loop.create_datagram_endpoint(_EchoDatagrams, local_addr=(host, self._tag.port))
        elif self._tag.kind == "tcp" and self._tag.inside == SSH and has_ssh():
            self._server = ssh = SshServer(self._node)
            await ssh.open(host, self._tag.port)
        else:
            self._server = await asyncio.start_server(self._serve, host, self._tag.port, limit=LONGEST_LINE_BYTES)

    def close(self) -> None:
        """Stop listening and break the connections, as a removed forwarding rule does."""
        if self._server is not None:
            self._server.close()
        if self._datagrams is not None:
            self._datagrams.close()
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(ConnectionError, ValueError):
                match self._tag.kind:
                    case "serial":
                        await self._consoles.serve_stream(self._node, self._tag.line, reader, writer)
                    case "vnc":
                        await self._consoles.screen(self._node).serve(reader, partial(_send, writer))
                    case _:
                        await serve_inside(self._node, self._tag.inside, reader, writer)
        finally:
            self._writers.discard(writer)
            writer.close()


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


class _EchoDatagrams(asyncio.DatagramProtocol):
    """Sends every datagram back."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for answers."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer."""
        self._transport.sendto(data, addr)
