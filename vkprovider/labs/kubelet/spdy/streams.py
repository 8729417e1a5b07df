"""The streams of a SPDY connection."""

import asyncio
from collections.abc import Mapping
from typing import Final

from tunnels.base import ConnectionLost
from vkprovider.labs.kubelet.spdy import session as wire
from vkprovider.labs.kubelet.spdy.frames import CANCEL, PROTOCOL_ERROR, ping
from vkprovider.labs.kubelet.streams.inlets import Inlet, SessionLimits
from vkprovider.labs.kubelet.streams.links import Link
from vkprovider.labs.kubelet.streams.reading import SessionReading
from vkprovider.labs.kubelet.wire import ProtocolError

_PIECE_BYTES: Final = 64 * 1024
"""The size of a data frame, small enough that streams take turns."""
_OWN_PING: Final = 2


class SpdySession(SessionReading):
    """A SPDY connection whose streams the client opens."""

    def __init__(self, link: Link, limits: SessionLimits) -> None:
        self.wire: Final = wire.SpdyProtocol(limits.streams_max)
        self._streams: dict[int, SpdyStream] = {}
        self._opened: asyncio.Queue[SpdyStream | None] = asyncio.Queue(limits.streams_max)
        self._last_opened = False
        super().__init__(link, limits)

    async def opened(self) -> "SpdyStream | None":
        """Return the next stream that the client opens, for `accept` or `refuse`; None: there will be none."""
        if self._last_opened and self._opened.empty():
            return None
        return await self._opened.get()

    async def handle(self, message: bytes | str) -> None:
        """See `SessionReading`."""
        if isinstance(message, str):
            raise ProtocolError("a text message; SPDY is agreed on")
        events, replies = self.wire.receive(message)
        if replies:
            await self.link.send(replies)
        for event in events:
            match event:
                case wire.Received(number, data):
                    self.touch()
                    if (stream := self._streams.get(number)) is not None:
                        stream.inlet.feed(data)
                case wire.StreamOpened(number, headers):
                    self.touch()
                    stream = self._streams[number] = SpdyStream(self, number, headers)
                    await self._opened.put(stream)
                case wire.Finished(number):
                    if (stream := self._streams.get(number)) is not None:
                        stream.inlet.end()
                case wire.Aborted(number):
                    if (stream := self._streams.pop(number, None)) is not None:
                        stream.inlet.lose()
                case wire.ClientLeaving():
                    self._no_more()

    async def beat(self) -> None:
        """See `SessionReading`."""
        await self.link.send(ping(_OWN_PING))

    def lose(self) -> None:
        """See `SessionReading`."""
        for stream in self._streams.values():
            stream.inlet.lose()
        self._streams.clear()
        self._no_more()

    def forget(self, number: int) -> None:
        """Drop a stream that nobody reads any longer."""
        if (stream := self._streams.pop(number, None)) is not None:
            stream.inlet.lose()

    async def leave(self) -> None:
        """See `SessionReading`."""
        await self.link.send(self.wire.go_away(PROTOCOL_ERROR if self.why is not None else 0))

    def _no_more(self) -> None:
        self._last_opened = True
        if not self._opened.full():
            self._opened.put_nowait(None)  # for its waiters


class SpdyStream:
    """See `Stream`."""

    def __init__(self, session: SpdySession, number: int, headers: Mapping[str, str]) -> None:
        self.number: Final = number
        self.headers: Final = headers
        self.inlet: Final = Inlet(session.room)
        self._session: Final = session

    async def accept(self) -> None:
        """Let the client use it.

        Raises:
            ConnectionLost: The client left.
        """
        if reply := self._session.wire.accept(self.number):
            await self._session.link.send(reply)

    async def refuse(self) -> None:
        """Do not accept it.

        Raises:
            ConnectionLost: The client left.
        """
        await self._reset(PROTOCOL_ERROR)

    async def read(self) -> bytes:
        """See `Stream`."""
        return await self.inlet.read()

    async def write(self, data: bytes) -> None:
        """See `Stream`."""
        for start in range(0, len(data), _PIECE_BYTES):
            if not self._session.wire.writable(self.number):
                raise ConnectionLost("the stream is closed")
            piece = data if len(data) <= _PIECE_BYTES else data[start : start + _PIECE_BYTES]
            self._session.touch()
            await self._session.link.send(self._session.wire.head(self.number, len(piece)), piece)

    async def finish(self) -> None:
        """See `Stream`."""
        if self._session.wire.writable(self.number):
            await self._session.link.send(self._session.wire.head(self.number, 0, fin=True))

    async def drop(self) -> None:
        """See `Stream`."""
        await self._reset(CANCEL)

    async def _reset(self, status: int) -> None:
        self._session.forget(self.number)
        if frame := self._session.wire.reset(self.number, status):
            await self._session.link.send(frame)
