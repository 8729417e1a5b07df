"""Callers that agents dial: each is a server with a route for WebSockets, and a hub behind it."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from aiohttp import web

from tests.support.mosquitto import free_port
from tests.support.tunnels import HABITS, Heard, running
from tunnels.agent.core import Agent, Habits, new_boot
from tunnels.agent.epochs import EpochFile
from tunnels.base import AllowList, StreamOpener, Transport
from tunnels.direct import DirectTransport
from tunnels.link.carrier import Address, parse_address
from tunnels.link.hub import Hub, TunnelTransport
from tunnels.outgoing import Guard
from tunnels.websocket.dialing import DialCredentials, Dialing
from tunnels.websocket.listening import Listening, NoRoomError
from tunnels.websocket.socket import PATH

TOKEN: Final = "token-of-all-agents"


class Caller:
    """A caller with its server.

    Args:
        name: Its identity.
        callers: Returns the addresses of all callers; by default there is this one alone.
        tls: Of the server.
    """

    def __init__(
        self,
        name: str = "replica-0",
        callers: Callable[[], Mapping[str, str]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.name = name
        self.port = free_port()
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.heard = Heard()
        self.tokens: list[str] = []
        self._callers = callers or (lambda: {name: self.url})
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._running: asyncio.Task[None] | None = None
        self.listening = Listening(name, self._callers)
        self.hub = Hub(self.listening, self.heard)

    async def start(self) -> None:
        """Listen, as a new process would that has heard of nobody."""
        self.heard = Heard()
        self.listening = Listening(self.name, self._callers)
        self.hub = Hub(self.listening, self.heard)
        app = web.Application()
        app.router.add_get(PATH, self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls).start()
        self._running = asyncio.create_task(self.hub.run(), name=self.name)

    async def stop(self) -> None:
        """End as a process does."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def transport(self, allow: AllowList, name: str = "w1", *, guard: Guard | None = None, epoch: int = 1) -> Transport:
        """Return the transport to the server beside an agent."""
        return TunnelTransport(self.hub, name, allow=allow, guard=guard, epoch=lambda: epoch)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("Authorization", ""))
        address = parse_address(request.query["agent"])
        if address is None or self.tokens[-1] != f"Bearer {TOKEN}":
            raise web.HTTPUnauthorized
        try:
            return await self.listening.accept(request, address)
        except NoRoomError as error:
            raise web.HTTPServiceUnavailable(text=str(error)) from None


@contextlib.asynccontextmanager
async def started(*callers: Caller) -> AsyncIterator[None]:
    """Run callers beside the test."""
    for caller in callers:
        await caller.start()
    try:
        yield
    finally:
        await asyncio.gather(*(caller.stop() for caller in callers))


def dialing_agent(
    urls: Sequence[str],
    transport: Transport,
    *,
    allow: AllowList,
    name: str = "w1",
    token: str = TOKEN,
    epochs: Path | None = None,
    habits: Habits = HABITS,
    tls: ssl.SSLContext | None = None,
    streams: StreamOpener | None = None,
) -> tuple[Agent, Dialing]:
    """Return an agent, and its carrier."""
    carrier = Dialing(urls, Address(name, new_boot()), lambda: DialCredentials(token, tls))
    kept = EpochFile(epochs) if epochs is not None else None
    agent = Agent(
        name,
        carrier,
        transport,
        allow=allow,
        streams=streams,
        facts=lambda: b"{}",
        epochs=kept,
        version="1.0",
        habits=habits,
    )
    return agent, carrier


@contextlib.asynccontextmanager
async def over_http(
    url: str, *, allow: AllowList, guard: Guard | None, agent_allow: AllowList
) -> AsyncIterator[Transport]:
    """A transport through an agent that is there."""
    direct = DirectTransport(url, allow=agent_allow)
    caller = Caller()
    agent, _ = dialing_agent([caller.url], direct, allow=agent_allow)
    async with started(caller), running(agent.run):
        await caller.heard.until(lambda: caller.heard.views)
        transport = caller.transport(allow, guard=guard)
        yield transport
        await transport.close()
    await direct.close()


class Balancer:
    """A proxy in front of several servers: each connection goes to the next one.

    Args:
        ports: Returns the ports of the servers.
    """

    def __init__(self, ports: Callable[[], Sequence[int]]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.accepted = 0
        self._ports = ports
        self._pipes: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Accept connections until cancelled."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            for pipe in list(self._pipes):
                pipe.cancel()
            await asyncio.gather(*self._pipes, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports = self._ports()
        port = ports[self.accepted % len(ports)] if ports else 0
        self.accepted += 1
        try:
            there, back = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        for source, sink in ((reader, back), (there, writer)):
            pipe = asyncio.create_task(_copy(source, sink))
            self._pipes.add(pipe)
            pipe.add_done_callback(self._pipes.discard)


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()
