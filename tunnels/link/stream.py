"""Streams of bytes for their readers and writers, on the caller's and on the agent's side."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from tunnels.base import ByteChannel, ConnectionLost, DeadlineExceeded, TransportError
from tunnels.protocol.streams import Arrived, Ended, PeerStreams, StreamAccepted, StreamOutput, Tell
from tunnels.wire import PIECE_BYTES, StreamAck, StreamData, StreamOpen

LEFT: Final = "the other side has left"
"""The reason of an end that does not read on either."""


class ByteStream:
    """A `ByteChannel` through a tunnel; made by `StreamPort`."""

    def __init__(self, port: "StreamPort", stream: str) -> None:
        self._port = port
        self._stream: Final = stream
        self._arrived: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._opened = False
        self._ended: Ended | None = None
        self._refused: TransportError | None = None
        self._left = False

    async def read(self) -> bytes:
        """See `ByteChannel`."""
        while not self._arrived:
            if self._left:
                raise ConnectionLost("the stream is closed")
            if self._ended is not None:
                if self._ended.lost or self._ended.reason:
                    raise ConnectionLost(self._ended.reason)
                return b""
            await self._change()
        data = self._arrived.popleft()
        self._port.consumed(self._stream)
        return data

    async def write(self, data: bytes) -> None:
        """See `ByteChannel`."""
        for start in range(0, len(data), PIECE_BYTES):
            while not self._port.writable(self._stream):
                if self._left or self._port.is_over(self._stream):
                    raise ConnectionLost(self._ended.reason if self._ended is not None else "the stream is closed")
                await self._change()
            self._port.write(self._stream, data[start : start + PIECE_BYTES])

    async def end(self) -> None:
        """See `ByteChannel`."""
        self._port.close(self._stream)

    async def close(self) -> None:
        """See `ByteChannel`; what arrives afterwards is thrown away."""
        if not self._left:
            self._left = True
            self._port.close(self._stream, "" if self._ended is not None else LEFT)
            for _ in range(len(self._arrived)):
                self._port.consumed(self._stream)
            self._arrived.clear()
            self._changed.set()

    async def opened(self) -> None:
        """Wait until the other end has accepted the stream.

        Raises:
            TransportError: It has not.
        """
        while not self._opened:
            if self._refused is not None:
                raise self._refused
            if self._ended is not None:
                raise ConnectionLost(self._ended.reason)
            await self._change()

    def note(self, output: StreamAccepted | Arrived | Ended | TransportError | None) -> None:
        """Note what happened to the stream; None: something else, perhaps it is writable again."""
        match output:
            case StreamAccepted():
                self._opened = True
            case Arrived():
                self._opened = True
                if self._left:
                    self._port.consumed(self._stream)
                else:
                    self._arrived.append(output.data)
            case Ended():
                self._ended = output
            case TransportError():
                self._refused = output
            case None:
                pass
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class StreamPort:
    """All streams of one caller or agent.

    Args:
        send: Sends a message to a peer; what it drops is repeated.
    """

    def __init__(self, send: Callable[[str, StreamOpen | StreamData | StreamAck], None]) -> None:
        self._send = send
        self._streams = PeerStreams()
        self._ends: dict[str, ByteStream] = {}

    async def open(self, peer: str, opening: StreamOpen, deadline_s: float) -> ByteStream:
        """Open a stream to a peer.

        Raises:
            DeadlineExceeded: It was not accepted in time.
            TransportError: It was refused.
        """
        end = self._ends[opening.stream] = ByteStream(self, opening.stream)
        self._handle(self._streams.open(peer, opening, opens=True, now_s=_now_s()))
        try:
            async with asyncio.timeout(deadline_s):
                await end.opened()
        except TimeoutError:
            await end.close()
            raise DeadlineExceeded(f"{peer}: the stream was not opened within {deadline_s:.3g} s") from None
        except asyncio.CancelledError:
            await end.close()
            raise
        return end

    def __len__(self) -> int:
        return len(self._ends)

    def accept(self, peer: str, opening: StreamOpen) -> ByteStream:
        """Accept a stream that a peer opens."""
        end = self._ends[opening.stream] = ByteStream(self, opening.stream)
        self._handle(self._streams.open(peer, opening, opens=False, now_s=_now_s()))
        return end

    def received(self, peer: str, message: StreamData | StreamAck) -> None:
        """Handle a message."""
        self._handle(self._streams.received(peer, message, _now_s()))
        if (end := self._ends.get(message.stream)) is not None:
            end.note(None)
        self._sweep(message.stream)

    def again(self, stream: str) -> None:
        """Acknowledge an opening that came twice."""
        self._handle(self._streams.again(stream, _now_s()))

    def refused(self, peer: str, stream: str, error: TransportError) -> bool:
        """End a stream that a peer did not accept; False if there is none to that peer."""
        end = self._ends.get(stream)
        if end is None or not self._streams.leads_to(stream, peer):
            return False
        end.note(error)
        self._handle(self._streams.refused(stream, str(error)))
        self._sweep(stream)
        return True

    def vanished(self, peer: str) -> None:
        """End the streams with a peer that does not exist any longer."""
        self._handle(self._streams.vanished(peer))
        self._sweep_all()

    def connected(self, peer: str) -> None:
        """Repeat what a peer, or any of `ALL`, has not acknowledged."""
        self._handle(self._streams.connected(_now_s(), peer))

    def tick(self) -> None:
        """Let time pass."""
        if self._ends:
            self._handle(self._streams.tick(_now_s()))
            self._sweep_all()

    def writable(self, stream: str) -> bool:
        """Return whether a stream accepts a `write` now."""
        return self._streams.writable(stream)

    def is_over(self, stream: str) -> bool:
        """Return whether a stream accepts nothing more."""
        return self._streams.is_over(stream)

    def write(self, stream: str, data: bytes) -> None:
        """Send up to a piece of bytes."""
        self._handle(self._streams.write(stream, data, _now_s()))

    def consumed(self, stream: str) -> None:
        """Acknowledge what the reader has read."""
        self._handle(self._streams.consumed(stream, _now_s()))

    def close(self, stream: str, reason: str = "") -> None:
        """Say that nothing follows; with a reason, that nothing is read any more either."""
        self._handle(self._streams.close(stream, reason, _now_s()))

    def _handle(self, outputs: Iterable[StreamOutput]) -> None:
        for output in outputs:
            if isinstance(output, Tell):
                self._send(output.peer, output.message)
            elif (end := self._ends.get(output.stream)) is not None:
                end.note(output)

    def _sweep(self, stream: str) -> None:
        if not self._streams.knows(stream):
            self._ends.pop(stream, None)

    def _sweep_all(self) -> None:
        for stream in list(self._ends):
            self._sweep(stream)


async def join(one: ByteChannel, other: ByteChannel) -> None:
    """Copy bytes both ways until both have ended or either has broken, then close both."""

    async def copy(source: ByteChannel, sink: ByteChannel) -> None:
        while data := await source.read():
            await sink.write(data)
        await sink.end()

    tasks = [asyncio.ensure_future(copy(one, other)), asyncio.ensure_future(copy(other, one))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await one.close()
        await other.close()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
