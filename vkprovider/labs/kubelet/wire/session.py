"""The streams of one SPDY connection, on the side that accepts them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from vkprovider.labs.kubelet.wire import spdy
from vkprovider.labs.kubelet.wire.errors import ProtocolError


class StreamOpened(msgspec.Struct, frozen=True):
    """The client has opened a stream, which waits for `Session.accept` or `Session.reset`."""

    stream: int
    headers: Mapping[str, str]


class Received(msgspec.Struct, frozen=True):
    """Bytes on a stream."""

    stream: int
    data: bytes


class Finished(msgspec.Struct, frozen=True):
    """The client sends nothing more on a stream."""

    stream: int


class Aborted(msgspec.Struct, frozen=True):
    """The client has reset a stream: it neither sends nor reads."""

    stream: int


class ClientLeaving(msgspec.Struct, frozen=True):
    """The client opens no further stream."""


Event = StreamOpened | Received | Finished | Aborted | ClientLeaving


@dataclass(slots=True)
class _Halves:
    """Which directions of a stream are still open."""

    theirs: bool = True
    ours: bool = True


class SpdyProtocol:
    """The state of a connection; bytes in, events and bytes to send out.

    Args:
        streams_max: Streams that may be open at a time; a client that opens more has them refused.
    """

    def __init__(self, streams_max: int) -> None:
        self._streams_max: Final = streams_max
        self._decoder: Final = spdy.FrameDecoder()
        self._encoder: Final = spdy.Encoder()
        self._streams: dict[int, _Halves] = {}
        self._last_stream = 0
        self._replies = bytearray()

    @property
    def open_streams(self) -> int:
        """Count the streams that are open in either direction."""
        return len(self._streams)

    def receive(self, data: bytes) -> tuple[list[Event], bytes]:
        """Return the events in received bytes, and the bytes to send back.

        Raises:
            ProtocolError: The client broke the protocol: send `go_away` and close.
        """
        events: list[Event] = []
        for frame in self._decoder.feed(data):
            self._handle(frame, events)
        replies = bytes(self._replies)
        self._replies.clear()
        return events, replies

    def accept(self, stream: int) -> bytes:
        """Accept a stream; a client sends nothing on it before."""
        return self._encoder.syn_reply(stream) if stream in self._streams else b""

    def head(self, stream: int, length: int, *, fin: bool = False) -> bytes:
        """Return the header to send before bytes of a stream; with `fin` they are the last."""
        if (halves := self._streams.get(stream)) is None or not halves.ours:
            raise ValueError(f"stream {stream} is closed")
        if fin:
            halves.ours = False
            self._sweep(stream, halves)
        return spdy.data_head(stream, length, fin=fin)

    def writable(self, stream: int) -> bool:
        """Return whether bytes may be sent on a stream."""
        return (halves := self._streams.get(stream)) is not None and halves.ours

    def reset(self, stream: int, status: int) -> bytes:
        """Abort a stream, or refuse it; nothing to send if it has ended."""
        return b"" if self._streams.pop(stream, None) is None else spdy.rst_stream(stream, status)

    def go_away(self, status: int = 0) -> bytes:
        """Say that no further stream is accepted."""
        return spdy.go_away(self._last_stream, status)

    def _handle(self, frame: spdy.Frame, events: list[Event]) -> None:
        match frame:
            case spdy.Data():
                self._handle_data(frame, events)
            case spdy.SynStream():
                self._handle_opening(frame, events)
            case spdy.RstStream(stream):
                if self._streams.pop(stream, None) is not None:
                    events.append(Aborted(stream))
            case spdy.Ping(number):
                if number % 2:  # an even number answers one of ours
                    self._replies += spdy.ping(number)
            case spdy.GoAway():
                events.append(ClientLeaving())
            case spdy.SynReply():
                raise ProtocolError("a reply to a stream that was never opened")

    def _handle_data(self, frame: spdy.Data, events: list[Event]) -> None:
        """Pass bytes on; those for a stream that has ended are dropped, as the client may not know it yet."""
        halves = self._streams.get(frame.stream)
        if halves is None or not halves.theirs:
            return
        if frame.data:
            events.append(Received(frame.stream, frame.data))
        if frame.fin:
            self._finish(frame.stream, halves, events)

    def _handle_opening(self, frame: spdy.SynStream, events: list[Event]) -> None:
        if frame.stream % 2 == 0 or frame.stream <= self._last_stream:
            raise ProtocolError(f"stream {frame.stream} after {self._last_stream}")
        self._last_stream = frame.stream
        if len(self._streams) >= self._streams_max:
            self._replies += spdy.rst_stream(frame.stream, spdy.REFUSED_STREAM)
            return
        halves = self._streams[frame.stream] = _Halves()
        events.append(StreamOpened(frame.stream, frame.headers))
        if frame.fin:
            self._finish(frame.stream, halves, events)

    def _finish(self, stream: int, halves: _Halves, events: list[Event]) -> None:
        halves.theirs = False
        events.append(Finished(stream))
        self._sweep(stream, halves)

    def _sweep(self, stream: int, halves: _Halves) -> None:
        if not halves.ours and not halves.theirs:
            del self._streams[stream]
