"""Bytes that have arrived and wait for their reader, and what a session may use."""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from tunnels.base import ConnectionLost


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Limits of one session.

    Attributes:
        idle_s: A session ends when no bytes have gone either way for so long.
        opening_s: A client may need so long to open the streams of an exec or attach session.
        closing_s: A client may need so long to read the rest and close, after the session has ended.
        buffered_bytes: When so much has arrived that nobody has read, the client has to wait.
        streams_max: Streams of SPDY at a time; a forwarded connection has two.
    """

    idle_s: float = 4 * 3600.0
    opening_s: float = 30.0
    closing_s: float = 300.0
    buffered_bytes: int = 256 * 1024
    streams_max: int = 512


class InletRoom:
    """How much may wait in all inlets of a session.

    Args:
        limit_bytes: When so much waits, it is full.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes: Final = limit_bytes
        self._used_bytes = 0
        self._freed = asyncio.Event()
        self._freed.set()

    @property
    def full(self) -> bool:
        """Whether nothing more should be read from the client."""
        return self._used_bytes >= self._limit_bytes

    def take(self, count: int) -> None:
        """Count bytes that have arrived."""
        self._used_bytes += count
        if self.full:
            self._freed.clear()

    def release(self, count: int) -> None:
        """Free the room of bytes that were read or discarded."""
        self._used_bytes -= count
        if not self.full:
            self._freed.set()

    async def freed(self, within_s: float) -> bool:
        """Wait until it is not full; return whether it came to that."""
        try:
            async with asyncio.timeout(within_s):
                await self._freed.wait()
        except TimeoutError:
            return False
        return True


class Inlet:
    """One direction of a stream: bytes of the client, for one reader."""

    def __init__(self, room: InletRoom) -> None:
        self._room: Final = room
        self._arrived: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._ended = False
        self._lost = False

    def feed(self, data: bytes) -> None:
        """Add bytes; after the end they are dropped. None say nothing, and are no end."""
        if data and not self._ended and not self._lost:
            self._room.take(len(data))
            self._arrived.append(data)
            self._changed.set()

    def end(self) -> None:
        """Say that nothing follows."""
        self._ended = True
        self._changed.set()

    def lose(self) -> None:
        """Say that the client has left or broken off, and drop what waits."""
        self._lost = True
        self._room.release(sum(map(len, self._arrived)))
        self._arrived.clear()
        self._changed.set()

    async def read(self) -> bytes:
        """Return all bytes that wait, or the next ones; none at the end.

        Raises:
            ConnectionLost: The client has left or broken off.
        """
        while not self._arrived:
            if self._lost:
                raise ConnectionLost("the client has left")
            if self._ended:
                return b""
            self._changed.clear()
            await self._changed.wait()
        data = self._arrived.popleft() if len(self._arrived) == 1 else b"".join(self._arrived)
        self._arrived.clear()
        self._room.release(len(data))
        return data
