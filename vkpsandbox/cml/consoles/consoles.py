"""Serial consoles for people: over the web socket of CML's user interface, and for `patty` over plain TCP."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

from aiohttp import WSMsgType, web

from vkpsandbox.cml.consoles import console
from vkpsandbox.cml.world.model import Node
from vkpsandbox.cml.world.states import RUNNING
from vkpsandbox.cml.world.world import World

FOLLOW_S: Final = 0.1
"""How often a terminal looks for lines that appeared by themselves."""


class Consoles:
    """The consoles of one controller."""

    def __init__(self, world: World, now: Callable[[], float], changed: Callable[[], None]) -> None:
        self._world = world
        self._now = now
        self._changed = changed
        self._sockets: set[web.WebSocketResponse] = set()

    async def close(self) -> None:
        """End all web sockets."""
        for socket in list(self._sockets):
            await socket.close()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve `GET /ws/dispatch/frontend/console?uuid=<console key>`: the key is the credential.

        Binary frames carry the console's output, text frames what is typed.
        """
        self._world.advance(self._now())
        found = self._find(request.query.get("uuid", ""))
        if found is None:
            raise web.HTTPNotFound
        node, line = found
        terminal = console.Terminal(node, line)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets.add(socket)

        async def lines() -> None:
            typed = ""
            async for message in socket:
                if message.type is not WSMsgType.TEXT:
                    continue
                *whole, typed = (typed + message.data).replace("\r\n", "\n").replace("\r", "\n").split("\n")
                for text in whole:
                    await socket.send_bytes(self._enter(terminal, text))

        try:
            await self._follow(terminal, node, socket.send_bytes, lines())
        finally:
            self._sockets.discard(socket)
            await socket.close()
        return socket

    async def serve_stream(
        self, node: Node, line: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve a serial port over a plain connection, line by line."""
        terminal = console.Terminal(node, line)

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        async def lines() -> None:
            while raw := await reader.readline():
                await send(self._enter(terminal, raw.decode(errors="replace").strip("\r\n\0")))

        await self._follow(terminal, node, send, lines())

    def _find(self, key: str) -> tuple[Node, int] | None:
        for lab in self._world.labs.values():
            for node in lab.nodes.values():
                if key in node.console_keys and node.state in RUNNING:
                    return node, node.console_keys.index(key)
        return None

    def _enter(self, terminal: console.Terminal, text: str) -> bytes:
        echo = terminal.enter(self._now(), text)
        self._changed()
        return echo.encode()

    async def _follow(
        self,
        terminal: console.Terminal,
        node: Node,
        send: Callable[[bytes], Awaitable[None]],
        lines: Coroutine[None, None, None],
    ) -> None:
        """Send the output while `lines` reads the input, until the client disconnects or the node stops."""
        typing = asyncio.create_task(lines, name="sim-console")
        try:
            await send(terminal.greet(self._now()).encode())
            while not typing.done() and node.state in RUNNING:
                await asyncio.wait([typing], timeout=FOLLOW_S)
                self._world.advance(self._now())
                if news := terminal.news(self._now()):
                    await send(news.encode())
        finally:
            typing.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError, ValueError):
                await typing
