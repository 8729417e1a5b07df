"""The streams of a session whose WebSocket has channels."""

from collections.abc import Iterable
from typing import Final

from tunnels.base import ConnectionLost
from vkprovider.labs.kubelet.streams.inlets import Inlet, SessionLimits
from vkprovider.labs.kubelet.streams.links import WebSocketLink
from vkprovider.labs.kubelet.streams.reading import SessionReading
from vkprovider.labs.kubelet.wire import ChannelCodec, HalfClose, Payload

_PIECE_BYTES: Final = 32 * 1024
"""The size of a message's pieces: kubectl buffers as much."""


class ChannelSession(SessionReading):
    """A WebSocket with channels.

    Args:
        link: The WebSocket.
        limits: What it may use.
        codec: Of its messages.
        read: The channels that the client may write to; bytes on others are dropped.
    """

    def __init__(self, link: WebSocketLink, limits: SessionLimits, codec: ChannelCodec, read: Iterable[int]) -> None:
        super().__init__(link, limits)
        self._socket: Final = link
        self._codec: Final = codec
        self._inlets: Final = {number: Inlet(self.room) for number in read}

    def stream(self, number: int) -> "ChannelStream":
        """Return the stream of a channel."""
        return ChannelStream(self, number, self._inlets.get(number))

    async def handle(self, message: bytes | str) -> None:
        """See `SessionReading`."""
        match self._codec.decode(message):
            case Payload(number, data) if number in self._inlets:
                self.touch()
                self._inlets[number].feed(data)
            case HalfClose(number) if number in self._inlets:
                self._inlets[number].end()

    async def beat(self) -> None:
        """See `SessionReading`."""
        await self._socket.pong()

    async def leave(self) -> None:
        """See `SessionReading`: the WebSocket's own close says it."""

    def lose(self) -> None:
        """See `SessionReading`."""
        for inlet in self._inlets.values():
            inlet.lose()

    async def send(self, number: int, data: bytes) -> None:
        """Send a message on a channel.

        Raises:
            ConnectionLost: The client left.
        """
        self.touch()
        message = self._codec.encode(number, data)
        if isinstance(message, str):
            await self._socket.send_text(message)
        else:
            await self._socket.send(message)


class ChannelStream:
    """See `Stream`; the protocol has no half-close of the server, so that `finish` ends both directions."""

    def __init__(self, session: ChannelSession, number: int, inlet: Inlet | None) -> None:
        self._session: Final = session
        self._number: Final = number
        self._inlet: Final = inlet
        self._finished = False

    async def read(self) -> bytes:
        """See `Stream`."""
        return b"" if self._inlet is None else await self._inlet.read()

    async def write(self, data: bytes) -> None:
        """See `Stream`."""
        for start in range(0, len(data), _PIECE_BYTES):
            if self._finished:
                raise ConnectionLost("the stream is closed")
            await self._session.send(self._number, data[start : start + _PIECE_BYTES])

    async def finish(self) -> None:
        """See `Stream`."""
        self._finished = True
        if self._inlet is not None:
            self._inlet.end()

    async def drop(self) -> None:
        """See `Stream`."""
        self._finished = True
        if self._inlet is not None:
            self._inlet.lose()
