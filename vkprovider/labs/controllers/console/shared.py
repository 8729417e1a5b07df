"""One connection to a console, shared by all who watch it; one of them types, as `labs.pure.console.writers` decides.

The connection is opened for the first watcher and closed with the last. A watcher that is slow loses output, and is
shown that it did; it never holds up the others.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from tunnels.base import ByteChannel, ConnectionLost
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.labs.pure.console.writers import Writer, Writers, notices, refusal
from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.errors import InputError, Unavailable

BEHIND_BYTES_MAX: Final = 256 * 1024
"""Output that is kept for a slow watcher."""
SCREEN_BYTES: Final = 4 * 1024
"""Output that is kept for later watchers."""
WATCHERS_MAX: Final = 32
"""The most watchers of one console."""
SKIPPED: Final = b"\r\n[output was skipped: this session reads too slowly]\r\n"


class Watcher:
    """Somebody who sees the output of a console.

    Attributes:
        person: Whether it is a person; else a program reads the output.
        ended: Why there is no more output; None while there may be.
    """

    def __init__(self, *, person: bool) -> None:
        self.person = person
        self.ended: str | None = None
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._changed = asyncio.Event()

    async def read(self) -> bytes:
        """Return all output that has come; none at the end."""
        while not self._parts:
            if self.ended is not None:
                return b""
            self._changed.clear()
            await self._changed.wait()
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return data

    def feed(self, data: bytes) -> None:
        """Note output."""
        if self._size + len(data) > BEHIND_BYTES_MAX:
            self._parts.clear()
            self._parts.append(SKIPPED)
            self._size = 0
        self._parts.append(data)
        self._size += len(data)
        self._changed.set()

    def tell(self, text: str) -> None:
        """Note a line between the output, which the device does not see."""
        self.feed(f"\r\n[{text}]\r\n".encode())

    def end(self, why: str) -> None:
        """Note that nothing more comes."""
        if self.ended is None:
            self.ended = why
            self._changed.set()


class Console:
    """The console of one device.

    Args:
        label: The device's.
        pod: The name of its Pod, for messages.
        connect: Connects to it.
        check: Raises `Unavailable` unless this replica acts for the worker.
        typed: Called after keys were passed on to the device.
    """

    def __init__(
        self,
        label: str,
        pod: str,
        connect: Callable[[], Awaitable[ByteChannel]],
        check: Callable[[], None],
        typed: Callable[[], None],
    ) -> None:
        self.label = label
        self._pod = pod
        self._connect = connect
        self._check = check
        self._typed = typed
        self._watchers: set[Watcher] = set()
        self._writers: Writers[Watcher] = Writers()
        self._writers_changed = asyncio.Event()
        self._opening = asyncio.Lock()
        self._channel: ByteChannel | None = None
        self._pump: asyncio.Task[None] | None = None
        self._screen = b""

    @property
    def is_watched(self) -> bool:
        """Whether anybody watches it."""
        return bool(self._watchers)

    @contextlib.asynccontextmanager
    async def watching(self, *, person: bool = False) -> AsyncIterator[Watcher]:
        """Watch the console while the block runs.

        Args:
            person: Show first what was printed last, and announcements; a program reads only what comes.

        Raises:
            InputError: `TooManySessions`.
            OutsideError: The connection did not come about.
        """
        if len(self._watchers) >= WATCHERS_MAX:
            text = f"{WATCHERS_MAX} sessions watch the console of {self.label} already"
            raise InputError(ConsoleReason.TOO_MANY_SESSIONS, text)
        watcher = Watcher(person=person)
        self._watchers.add(watcher)
        try:
            await self._open()
            if person and self._screen:
                watcher.feed(self._screen)
            yield watcher
        finally:
            self._watchers.discard(watcher)
            self.release(watcher)
            if not self._watchers:
                await self._close()

    async def claim(self, watcher: Watcher, *, attached: bool, take_over: bool = False) -> Writer[Watcher] | None:
        """Become the one who types; a command that is being typed is waited for.

        Returns:
            The one it was taken over from.

        Raises:
            InputError: `ConsoleInUse`: a person types.
        """
        while True:
            before = self._writers.writer
            found = self._writers.claimed(Writer(watcher, attached, time.time()), take_over=take_over)
            if isinstance(found, Writers):
                self._become(found)
                return before
            if found.attached:
                raise InputError(ConsoleReason.CONSOLE_IN_USE, refusal(found, self.label, self._pod))
            self._writers_changed.clear()
            await self._writers_changed.wait()

    def types(self, watcher: Watcher) -> bool:
        """Return whether a watcher is the one who types."""
        writer = self._writers.writer
        return writer is not None and writer.session is watcher

    def release(self, watcher: Watcher) -> None:
        """Let others type: those from whom it was taken over, if there are."""
        self._become(self._writers.without(watcher))

    def _become(self, writers: Writers[Watcher]) -> None:
        people = [watcher for watcher in self._watchers if watcher.person and watcher.ended is None]
        for watcher, text in notices(self._writers, writers, people):
            watcher.tell(text)
        self._writers = writers
        self._writers_changed.set()

    async def write(self, data: bytes) -> None:
        """Press keys.

        Raises:
            Unavailable: The connection broke, or this replica does not act for the worker any more.
        """
        self._check()
        if self._channel is None:
            raise Unavailable(f"the console of {self.label} is closed")
        try:
            await self._channel.write(data)
        except ConnectionLost as error:
            raise Unavailable(f"the console of {self.label}: {error}") from error
        self._typed()

    def announce(self, text: str) -> None:
        """Show a line to the people who watch."""
        for watcher in self._watchers:
            if watcher.person:
                watcher.tell(text)

    def end(self, why: str) -> None:
        """End all sessions; each closes what is its own."""
        for watcher in self._watchers:
            watcher.end(why)

    async def _open(self) -> None:
        async with self._opening:
            if self._pump is not None and not self._pump.done():
                return
            await self._close()
            self._check()
            self._screen = b""
            channel = self._channel = await self._connect()
            self._pump = asyncio.create_task(self._run(channel), name=f"console of {self.label}")

    async def _close(self) -> None:
        pump, self._pump = self._pump, None
        channel, self._channel = self._channel, None
        if pump is not None:
            await end_tasks((pump,))
        if channel is not None:
            await channel.close()

    async def _run(self, channel: ByteChannel) -> None:
        why = f"the console of {self.label} has ended: the device was stopped, or CML closed it"
        try:
            while data := await channel.read():
                self._screen = (self._screen + data)[-SCREEN_BYTES:]
                for watcher in self._watchers:
                    watcher.feed(data)
        except ConnectionLost as error:
            why = f"the console of {self.label} broke off: {error}"
        self.end(why)
