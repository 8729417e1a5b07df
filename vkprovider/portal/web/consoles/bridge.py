"""Consoles of browsers: each is a WebSocket of a page, and behind it a session of `exec` with the person's own token.

A browser says how much of the output its terminal has shown, and gets little more before it has. A device that prints
faster loses output, as it does for every session that reads too slowly, and never fills the browser or this process.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import structlog
from aiohttp import WSMsgType, web

from vkprovider.lablet import names
from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.errors import DeadlineExceeded, OutsideError, Unavailable
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.http.connections import uncount
from vkprovider.platform.http.open import Places
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.http.websockets import KubeWebSocket
from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.frames import (
    Backlog,
    BytesShown,
    ConsoleEnd,
    FrameError,
    Mode,
    OutputWindow,
    SessionRenewed,
    Typed,
    end_of,
)
from vkprovider.portal.web.consoles.opening import ConsoleTarget, Opening
from vkprovider.portal.web.consoles.typists import BrowserSession, Typists

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _STDOUT, _STDERR, _ERROR = range(4)
"""The first byte of a message: its channel (`k8s.io/kubernetes`, `wsstream`)."""
_TYPED_BYTES_MAX: Final = 32 * 1024
"""The longest message with keys: the buffer of the reference kubelet."""

_COMMAND_S_MAX: Final = 120.0
_OUTPUT_BYTES_MAX: Final = 4 * 1024 * 1024


class UpstreamConsole:
    """An open session of `exec`."""

    def __init__(self, socket: KubeWebSocket, device: str) -> None:
        """Take over a WebSocket."""
        self._socket = socket
        self._device = device
        self._status = b""

    async def read(self) -> bytes:
        """Return what the device prints next; none at the end."""
        while (message := await self._socket.receive()) is not None:
            if not message:
                continue
            channel, data = message[0], message[1:]
            if channel in {_STDOUT, _STDERR} and data:
                return data
            if channel == _ERROR:
                self._status += data
        return b""

    async def write(self, keys: bytes) -> None:
        """Press keys.

        Raises:
            Unavailable: The connection is lost.
        """
        for start in range(0, len(keys), _TYPED_BYTES_MAX):
            await self._socket.send(bytes((_STDIN,)) + keys[start : start + _TYPED_BYTES_MAX])

    @property
    def end(self) -> ConsoleEnd:
        """Why it has ended, after `read` has returned nothing."""
        return end_of(self._status, self._device)


@contextlib.asynccontextmanager
async def upstream(kube: KubeClient, target: ConsoleTarget, mode: Mode) -> AsyncIterator[UpstreamConsole]:
    """Open a console while the block runs.

    Who watches sends no input at all, as `kubectl lablet console --watch` does not, so that nothing can be typed.

    Args:
        kube: A client with the credentials of the person.
        target: The console.
        mode: Whether they type, watch, or take over.
    """
    words = names.console_command(target.device, take_over=mode is Mode.TAKE_OVER)
    async with executing(kube, target, words, stdin=mode is not Mode.WATCH, tty=True) as console:
        yield console


@contextlib.asynccontextmanager
async def executing(
    kube: KubeClient, target: ConsoleTarget, words: Sequence[str], *, stdin: bool, tty: bool, stderr: bool = True
) -> AsyncIterator[UpstreamConsole]:
    """Execute words in the container of the lablet as a whole while the block runs.

    Raises:
        OutsideError: The API server refuses, or does not answer.
    """
    socket = await kube.websocket(target.path(), target.command(words, stdin=stdin, tty=tty, stderr=stderr), PROTOCOLS)
    try:
        yield UpstreamConsole(socket, target.device)
    finally:
        await socket.close()


async def printed(kube: KubeClient, target: ConsoleTarget, command: Sequence[str]) -> tuple[bytes, ConsoleEnd]:
    """Run a command of the lablet as a whole, such as `config r1`; return what it prints, and how it ended.

    Raises:
        OutsideError: The API server refuses, or does not answer, or the output is too long.
    """
    output = bytearray()
    async with executing(kube, target, command, stdin=False, tty=False) as session:
        try:
            async with asyncio.timeout(_COMMAND_S_MAX):
                while data := await session.read():
                    output += data
                    if len(output) > _OUTPUT_BYTES_MAX:
                        raise Unavailable(f"{target.device} prints more than {_OUTPUT_BYTES_MAX} bytes")
        except TimeoutError:
            raise DeadlineExceeded(f"{target.device} did not answer within {_COMMAND_S_MAX:.0f} s") from None
        return bytes(output), session.end


_log: Final = structlog.get_logger(__name__)
CONSOLES_MAX: Final = 500
"""The most consoles of a replica."""
OF_CALLER_MAX: Final = 24
"""The most consoles of one person: those of a class, watched side by side."""
_TOO_MANY: Final = "too many consoles are open here: close others, or try again"
_PING_S: Final = 10.0
"""The pause between two pings of a browser; one that does not answer within half of it has gone."""
ALIVE_S: Final = 4.0
"""The longest silence: pings do not reach a page, which takes ten seconds without a word for a broken connection."""
_SAY_S: Final = 5.0
_REASON_BYTES_MAX: Final = 123
"""RFC 6455, 5.5: the most bytes of the reason of a close."""


SocketRun = Callable[[web.WebSocketResponse, asyncio.Event], Awaitable[ConsoleEnd]]
"""Called once with the WebSocket of a browser, and an event that is set when the replica ends."""


class TooManyConsoles(Refused):
    """So many consoles are open already."""

    status_code = HTTPStatus.TOO_MANY_REQUESTS
    remedy = "Close other consoles, or try again."
    retry_s = 5


class BrowserConsoles:
    """The open consoles of a replica.

    Attributes:
        typists: Who types at them.
    """

    def __init__(self, wall: Callable[[], float]) -> None:
        """Begin without consoles; `wall` returns Unix seconds."""
        self._places = Places(CONSOLES_MAX, OF_CALLER_MAX, lambda _: TooManyConsoles(_TOO_MANY))
        self.typists = Typists(wall)

    def __len__(self) -> int:
        """Count the consoles."""
        return len(self._places)

    def close(self) -> None:
        """End all consoles, and those that begin later at once: their pages go to another replica."""
        self._places.close()

    @contextlib.contextmanager
    def place(self, caller: str) -> Iterator[asyncio.Event]:
        """Take the place of a console while the block runs; the event is set when the replica ends.

        Raises:
            Refused: There are too many.
        """
        leaving = asyncio.Event()
        with self._places.taken(caller, leaving):
            yield leaving

    async def serve(
        self,
        request: web.Request,
        opening: Opening,
        kube: KubeClient,
        target: ConsoleTarget,
        withdrawn: asyncio.Event,
        renewed: Callable[[str], None],
    ) -> web.StreamResponse:
        """Serve the console of a browser until either side ends it.

        Args:
            request: Opens the WebSocket; a page of the site made it, and its sender may see the lab.
            opening: Who its sender is, and what they want.
            kube: A client with the token of its sender, and no other credentials.
            target: The console.
            withdrawn: Is set when they may not use it any more.
            renewed: Called with the ticket of their session when it goes on with another token.

        Raises:
            Refused: There are too many.
        """

        async def run(socket: web.WebSocketResponse, leaving: asyncio.Event) -> ConsoleEnd:
            return await self._run(socket, opening, kube, target, withdrawn, leaving, renewed)

        return await self.carried(request, opening.caller, run)

    async def carried(self, request: web.Request, caller: str, run: SocketRun) -> web.StreamResponse:
        """Open the WebSocket of a browser, run what it carries, and close it with the reason why that has ended.

        Args:
            request: Opens the WebSocket.
            caller: The username of its sender.
            run: Called with the WebSocket, and an event that is set when the replica ends.

        Raises:
            Refused: There are too many.
        """
        with self.place(caller) as leaving:
            uncount(request)
            socket = web.WebSocketResponse(
                compress=False, heartbeat=_PING_S, max_msg_size=frames.TYPED_BYTES_MAX + 1, timeout=_SAY_S
            )
            await socket.prepare(request)
            end = await run(socket, leaving)
            with suppress(ConnectionResetError, TimeoutError):
                async with asyncio.timeout(_SAY_S):
                    await socket.send_str(frames.ended(end))
                    await socket.close(code=frames.CLOSE_CODES[end.why], message=_cut(end.text))
            return socket

    async def _run(
        self,
        socket: web.WebSocketResponse,
        opening: Opening,
        kube: KubeClient,
        target: ConsoleTarget,
        withdrawn: asyncio.Event,
        leaving: asyncio.Event,
        renewed: Callable[[str], None],
    ) -> ConsoleEnd:
        """Pass on what comes both ways; return why it has ended."""
        if self.typists.has_moved(target, opening):
            return frames.MOVED
        about = {"user": opening.caller, "namespace": target.namespace, "pod": target.pod, "device": target.device}
        _log.info("a console begins", mode=opening.mode, **about)
        async with self.typists.session(target, opening) as session:
            bridge = Bridge(socket, target, self.typists, session, withdrawn, leaving, renewed)
            end = await bridge.run(kube)
        _log.info("a console has ended", why=end.why, bytes=bridge.sent_bytes, **about)
        return end


class Bridge:
    """One console: what it passes on, and how much the browser has not shown."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        target: ConsoleTarget,
        typists: Typists,
        session: BrowserSession,
        withdrawn: asyncio.Event,
        leaving: asyncio.Event,
        renewed: Callable[[str], None],
    ) -> None:
        """Create it.

        Args:
            socket: To the browser.
            target: The console.
            typists: Of the replica.
            session: What the person wants, and whether they type.
            withdrawn: Is set when the person may not use it any more.
            leaving: Is set when the replica ends.
            renewed: Called with the ticket of their session when it goes on with another token.
        """
        self._socket = socket
        self._target = target
        self._typists = typists
        self._session = session
        self._mode = session.opening.mode
        self._withdrawn = withdrawn
        self._leaving = leaving
        self._renewed = renewed
        self._window = OutputWindow()
        self._backlog = Backlog()
        self._changed = asyncio.Event()
        self._sent = asyncio.Event()

    @property
    def sent_bytes(self) -> int:
        """How much output the browser has got."""
        return self._window.sent

    async def run(self, kube: KubeClient) -> ConsoleEnd:
        """Open the console and pass on what comes both ways; return why it has ended."""
        try:
            async with upstream(kube, self._target, self._mode) as console:
                end = await self._pass_on(console)
        except OutsideError as error:
            return frames.refusal(error, self._target.device)
        except ConnectionResetError:
            return frames.ENDED  # the browser has left
        other = self._typists.other(self._target, self._session)
        return end.by(other.opening.name) if other is not None else end

    async def _pass_on(self, console: UpstreamConsole) -> ConsoleEnd:
        await self._socket.send_str(frames.opened(watches=self._mode is Mode.WATCH, began=self._session.began))
        return await first_end(
            output=self._read(console),
            sending=self._send(),
            input=self._input(console),
            right=after(self._withdrawn, frames.WITHDRAWN),
            elsewhere=after(self._session.moved, frames.MOVED),
            typist=self._tell(),
            leaving=after(self._leaving, frames.LEAVING),
        )

    async def _read(self, console: UpstreamConsole) -> ConsoleEnd:
        """Read what the device prints, whether the browser keeps up or not; at the end, wait until it has got all."""
        while data := await console.read():
            self._typists.feed(self._target, self._session, data)
            self._backlog.feed(data)
            self._changed.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(_SAY_S):
                while self._backlog:
                    await self._sent.wait()
                    self._sent.clear()
        return console.end

    async def _send(self) -> ConsoleEnd:
        """Send the browser as much as it may have, for ever.

        Raises:
            ConnectionResetError: The browser has left.
        """
        while True:
            if piece := self._backlog.take(min(self._window.room, frames.OUTPUT_BYTES_MAX)):
                self._window = self._window.after_sending(len(piece))
                await self._socket.send_bytes(piece)
                self._sent.set()
            else:
                self._changed.clear()
                try:
                    async with asyncio.timeout(ALIVE_S):
                        await self._changed.wait()
                except TimeoutError:
                    await self._socket.send_str(frames.ALIVE)

    async def _tell(self) -> ConsoleEnd:
        """Tell the page who types, for ever.

        Raises:
            ConnectionResetError: The browser has left.
        """
        while True:
            await self._session.changed.wait()
            self._session.changed.clear()
            if message := self._typists.message(self._target, self._session):
                await self._socket.send_str(message)

    async def _input(self, console: UpstreamConsole) -> ConsoleEnd:
        async for message in self._socket:
            if message.type not in {WSMsgType.BINARY, WSMsgType.TEXT}:
                break
            try:
                match frames.parse(message.data):
                    case Typed(data) if self._mode is not Mode.WATCH:
                        await console.write(data)
                    case BytesShown() as shown:
                        self._window = self._window.after(shown)
                        self._changed.set()
                    case SessionRenewed(ticket):
                        self._renewed(ticket)
                    case Typed():
                        pass  # who watches types nothing
            except FrameError:
                return frames.NONSENSE
            except Unavailable:
                return frames.BROKEN
        return frames.ENDED


async def first_end(**each: Coroutine[Any, Any, ConsoleEnd]) -> ConsoleEnd:
    """Return the first end that comes about, in the order given; the others are cancelled."""
    tasks = [asyncio.create_task(one, name=f"console: {name}") for name, one in each.items()]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task.done()).result()
    finally:
        await end_tasks(tasks)


async def after(happened: asyncio.Event, end: ConsoleEnd) -> ConsoleEnd:
    """Return an end once it has happened."""
    await happened.wait()
    return end


def _cut(text: str) -> bytes:
    """Return as much of a text as the reason of a close may have."""
    return text.encode()[:_REASON_BYTES_MAX].decode(errors="ignore").encode()
