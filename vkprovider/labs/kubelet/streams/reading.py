"""The task that reads a session's connection."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from tunnels.base import ConnectionLost
from vkprovider.labs.kubelet.spi import Exit
from vkprovider.labs.kubelet.streams.inlets import InletRoom, SessionLimits
from vkprovider.labs.kubelet.streams.links import Link
from vkprovider.labs.kubelet.wire import ProtocolError

_BEAT_S: Final = 20.0
"""kubectl leaves after 61 s without a sign of life."""
_GOODBYE_S: Final = 5.0
"""What a client may need to close when the session was ended here, because it was idle or wrong."""
_PRECISION: Final = 16
"""The end of an idle session comes at most this part of the time too early, so that not every byte moves a timer."""


class Stream(Protocol):
    """One stream of a session, such as stdin; one that the client only reads ends at once."""

    async def read(self) -> bytes:
        """Return the next bytes; none at the end.

        Raises:
            ConnectionLost: The client left, or has reset the stream.
        """

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait while the client is slow.

        Raises:
            ConnectionLost: The client left, or has reset the stream; or it has ended.
        """

    async def finish(self) -> None:
        """Say that no bytes follow, where the protocol can; nothing if it is said already."""

    async def drop(self) -> None:
        """End both directions, and forget what waits."""


class SessionReading(ABC):
    """A session as its connection has it.

    Args:
        link: The connection.
        limits: What it may use.
    """

    def __init__(self, link: Link, limits: SessionLimits) -> None:
        self.link: Final = link
        self.limits: Final = limits
        self.room: Final = InletRoom(limits.buffered_bytes)
        self._left = asyncio.Event()
        self._why: Exit | None = None
        self._idle: asyncio.Timeout | None = None
        self._touch_at = 0.0
        self._task = asyncio.create_task(self._run(), name="kubelet-session")

    @property
    def why(self) -> Exit | None:
        """Why the session has ended although the client is still there, if so."""
        return self._why

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self._left.is_set()

    async def gone(self) -> None:
        """Return when the session has ended."""
        await self._left.wait()

    def touch(self) -> None:
        """Note that bytes have gone either way."""
        now = asyncio.get_running_loop().time()
        if now >= self._touch_at and self._idle is not None and not self._idle.expired():
            self._idle.reschedule(now + self.limits.idle_s)
            self._touch_at = now + self.limits.idle_s / _PRECISION

    async def stop(self) -> None:
        """Read nothing more; readers learn that it is over."""
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()

    async def close(self, *, in_order: bool) -> None:
        """End the connection: after the client has read everything, or at once."""
        try:
            await self.stop()
            if in_order:
                within_s = self.limits.closing_s if self._why is None else min(_GOODBYE_S, self.limits.closing_s)
                async with asyncio.timeout(within_s):
                    await self.link.finish()
        except TimeoutError:
            pass
        finally:
            self.link.abort()

    async def end(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Read nothing more, tell the client, and end the connection: at once if it cannot be told in time.

        Args:
            tell: Tells the client; called when nothing is read any more. It may raise `ConnectionLost`.
        """
        await self.stop()
        told = False
        with contextlib.suppress(ConnectionLost, TimeoutError):
            async with asyncio.timeout(self.limits.closing_s):
                await tell()
            told = True
        await self.close(in_order=told)

    @abstractmethod
    async def handle(self, message: bytes | str) -> None:
        """Handle what has arrived.

        Raises:
            ProtocolError: It breaks the protocol.
            ConnectionLost: The client left.
        """

    @abstractmethod
    async def beat(self) -> None:
        """Show a sign of life; called while nothing is read.

        Raises:
            ConnectionLost: The client left.
        """

    @abstractmethod
    async def leave(self) -> None:
        """Tell the client that the session ends, where the protocol can.

        Raises:
            ConnectionLost: The client left.
        """

    @abstractmethod
    def lose(self) -> None:
        """Let all readers know that the session has ended."""

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(self.limits.idle_s) as self._idle:
                while (message := await self.link.receive()) is not None:
                    await self.handle(message)
                    while self.room.full and not await self.room.freed(_BEAT_S):
                        await self.beat()
        except TimeoutError:
            self._why = Exit(1, f"the session was idle for {self.limits.idle_s:g} s", "Timeout")
            if self.link.stuck:  # the writer waits for a client that will never read
                self.link.abort()
        except ProtocolError as error:
            self._why = Exit(1, f"the client broke the protocol: {error}", "BadRequest")
        except ConnectionLost:
            pass
        finally:
            self._idle = None
            self._left.set()
            self.lose()
