"""Serial consoles and screens for people: over web sockets of CML's user interface, and for `patty` over plain TCP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Final

from aiohttp import WSMsgType, web

from vkpsim.cml.consoles import console
from vkpsim.cml.consoles.screen import Screen
from vkpsim.cml.consoles.shell import ENDLESS, Shell
from vkpsim.cml.world.model import Node
from vkpsim.cml.world.states import RUNNING
from vkpsim.cml.world.world import World

FOLLOW_S: Final = 0.1
"""How often a terminal looks for lines that appeared by themselves."""
NOISY_S: Final = 0.01
"""How often a device prints that prints without end."""
SCREEN_KEPT: Final = 64 * 1024
"""Characters of a line's output that a new terminal is shown."""
CARRIED_S: Final = 0.01
"""How often a device looks whether the line has carried keys, where it has a speed."""
INPUT_CHARS: Final = 128
"""The keys that wait at a device whose line has a speed; it drops those that find no room."""
_BITS: Final = 10
"""Of a key: start, eight, stop."""

Send = Callable[[bytes], Awaitable[None]]


class Line:
    """One serial line of one run of a node, with all terminals that are connected to it.

    Args:
        node: The node.
        line: The number of the line.
        baud: Its speed in bit/s, at which the device reads; 0: it reads at once.
    """

    def __init__(self, node: Node, line: int, baud: int = 0) -> None:
        self._node = node
        self._baud = baud
        self._waiting = ""
        self._carried_at = 0.0
        self._shell = Shell(node, line)
        self._run_at = node.boots[-1].started_at
        self._seen = -1.0
        self._awake = False
        self._noisy_at = 0.0
        self.output = ""
        self.printed = 0
        """Characters ever printed; `output` holds the last ones."""

    @property
    def is_current(self) -> bool:
        """Whether the run is still going on."""
        return bool(self._node.boots) and self._node.boots[-1].started_at == self._run_at

    def look(self, now: float) -> None:
        """Print what has appeared by itself."""
        for at, text in console.boot_lines(self._node, now):
            if self._seen < at <= now:
                self._print(f"{text}\r\n")
        self._seen = now
        if not self._awake and now >= self._node.done_at:
            self._awake = True
            self._print(self._shell.wake())
        if self._shell.is_endless and now >= self._noisy_at + NOISY_S:
            self._noisy_at = now
            self._print(ENDLESS)
        self._carry(now)

    @property
    def follow_s(self) -> float:
        """How often a terminal looks for what appears by itself."""
        if self._waiting:
            return CARRIED_S
        return NOISY_S if self._shell.is_endless else FOLLOW_S

    def press(self, now: float, keys: str) -> None:
        """Press keys; before it has booted a device does not listen, and it drops those for which it has no room."""
        self.look(now)
        if not self._awake:
            return
        if not self._baud:
            self._print(self._shell.press(now, keys))
            return
        if not self._waiting:
            self._carried_at = now
        self._waiting = (self._waiting + keys)[:INPUT_CHARS]

    def _carry(self, now: float) -> None:
        """Have the device read the keys that the line has carried by now."""
        count = min(len(self._waiting), int((now - self._carried_at) * self._baud / _BITS))
        if count > 0:
            self._carried_at += count * _BITS / self._baud
            keys, self._waiting = self._waiting[:count], self._waiting[count:]
            self._print(self._shell.press(now, keys))

    def since(self, printed: int) -> str:
        """Return the output after so many characters, as far as it is kept."""
        missing = self.printed - printed
        return self.output[-missing:] if missing > 0 else ""

    def _print(self, text: str) -> None:
        self.output = (self.output + text)[-SCREEN_KEPT:]
        self.printed += len(text)


class Consoles:
    """The consoles of one controller, whose lines have a speed in bit/s; 0: none."""

    def __init__(self, world: World, now: Callable[[], float], changed: Callable[[], None], baud: int = 0) -> None:
        self._world = world
        self._baud = baud
        self._now = now
        self._changed = changed
        self._sockets: set[web.WebSocketResponse] = set()
        self._lines: dict[tuple[str, int], Line] = {}
        self._screens: dict[str, tuple[float, Screen]] = {}
        self._news = asyncio.Condition()

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
        async with self._socket(request) as socket:

            async def typing() -> None:
                async for message in socket:
                    if message.type is WSMsgType.TEXT:
                        await self._press(node, line, message.data)

            await self._follow(node, line, socket.send_bytes, typing())
            return socket

    async def serve_screen(self, request: web.Request) -> web.StreamResponse:
        """Serve `GET /ws/dispatch/frontend/vnc?uuid=<VNC key>`: the key is the credential."""
        self._world.advance(self._now())
        key = request.query.get("uuid", "")
        nodes = (node for lab in self._world.labs.values() for node in lab.nodes.values())
        shown = next((node for node in nodes if key and node.vnc_key == key and node.state in RUNNING), None)
        if shown is None:
            raise web.HTTPNotFound
        async with self._socket(request) as socket:
            reader = asyncio.StreamReader()
            serving = asyncio.create_task(self.screen(shown).serve(reader, socket.send_bytes), name="sim-screen")
            ending = asyncio.create_task(self._close_when_off(shown, socket), name="sim-screen: end")
            async for message in socket:
                reader.feed_data(message.data)
            reader.feed_eof()
            ending.cancel()
            await serving
            return socket

    async def _close_when_off(self, node: Node, socket: web.WebSocketResponse) -> None:
        run_at = node.boots[-1].started_at
        while node.state in RUNNING and node.boots[-1].started_at == run_at:
            await asyncio.sleep(FOLLOW_S)
            self._world.advance(self._now())
        await socket.close()

    def screen(self, node: Node) -> Screen:
        """Return the screen of the present run of a node."""
        run_at = node.boots[-1].started_at
        if node.id not in self._screens or self._screens[node.id][0] != run_at:
            self._screens[node.id] = run_at, Screen(node.label)
        return self._screens[node.id][1]

    async def serve_stream(
        self, node: Node, line: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Serve a serial port over a plain connection."""

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        async def typing() -> None:
            while raw := await reader.read(1024):
                await self._press(node, line, raw.decode(errors="replace").replace("\0", ""))

        await self._follow(node, line, send, typing())

    @contextlib.asynccontextmanager
    async def _socket(self, request: web.Request) -> AsyncIterator[web.WebSocketResponse]:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self._sockets.add(socket)
        try:
            yield socket
        finally:
            self._sockets.discard(socket)
            await socket.close()

    def _find(self, key: str) -> tuple[Node, int] | None:
        for lab in self._world.labs.values():
            for node in lab.nodes.values():
                if key in node.console_keys and node.state in RUNNING:
                    return node, node.console_keys.index(key)
        return None

    def _line(self, node: Node, number: int) -> Line:
        found = self._lines.get((node.id, number))
        if found is None or not found.is_current:
            found = self._lines[node.id, number] = Line(node, number, self._baud)
        return found

    async def _press(self, node: Node, number: int, keys: str) -> None:
        if node.state in RUNNING:
            self._line(node, number).press(self._now(), keys)
            self._changed()
            async with self._news:
                self._news.notify_all()

    async def _follow(self, node: Node, number: int, send: Send, typing: Coroutine[None, None, None]) -> None:
        """Send the output while `typing` reads the input, until the client disconnects or the node stops."""
        task = asyncio.create_task(typing, name="sim-console")
        line = self._line(node, number)
        seen = 0
        try:
            while node.state in RUNNING and line.is_current:
                line.look(self._now())
                if text := line.since(seen):
                    seen = line.printed
                    await send(text.encode())
                if task.done():
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(line.follow_s), self._news:
                        await self._news.wait()
                self._world.advance(self._now())
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError, ValueError):
                await task
