"""The streams of one SPDY connection, on the side that serves, and the pairs of a port-forward session.

Source: client-go `tools/portforward`, cri-streaming `pkg/streaming/portforward`. Each connection has a stream for its
bytes and one for an error, which bear the same number in the header `requestid`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from vkprovider.labs.kubelet.spdy import frames
from vkprovider.labs.kubelet.wire import ProtocolError


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
        self._decoder: Final = frames.FrameDecoder()
        self._encoder: Final = frames.Encoder()
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
        return frames.data_head(stream, length, fin=fin)

    def writable(self, stream: int) -> bool:
        """Return whether bytes may be sent on a stream."""
        return (halves := self._streams.get(stream)) is not None and halves.ours

    def reset(self, stream: int, status: int) -> bytes:
        """Abort a stream, or refuse it; nothing to send if it has ended."""
        return b"" if self._streams.pop(stream, None) is None else frames.rst_stream(stream, status)

    def go_away(self, status: int = 0) -> bytes:
        """Say that no further stream is accepted."""
        return frames.go_away(self._last_stream, status)

    def _handle(self, frame: frames.Frame, events: list[Event]) -> None:
        match frame:
            case frames.Data():
                self._handle_data(frame, events)
            case frames.SynStream():
                self._handle_opening(frame, events)
            case frames.RstStream(stream):
                if self._streams.pop(stream, None) is not None:
                    events.append(Aborted(stream))
            case frames.Ping(number):
                if number % 2:  # an even number answers one of ours
                    self._replies += frames.ping(number)
            case frames.GoAway():
                events.append(ClientLeaving())
            case frames.SynReply():
                raise ProtocolError("a reply to a stream that was never opened")

    def _handle_data(self, frame: frames.Data, events: list[Event]) -> None:
        """Pass bytes on; those for a stream that has ended are dropped, as the client may not know it yet."""
        halves = self._streams.get(frame.stream)
        if halves is None or not halves.theirs:
            return
        if frame.data:
            events.append(Received(frame.stream, frame.data))
        if frame.fin:
            self._finish(frame.stream, halves, events)

    def _handle_opening(self, frame: frames.SynStream, events: list[Event]) -> None:
        if frame.stream % 2 == 0 or frame.stream <= self._last_stream:
            raise ProtocolError(f"stream {frame.stream} after {self._last_stream}")
        self._last_stream = frame.stream
        if len(self._streams) >= self._streams_max:
            self._replies += frames.rst_stream(frame.stream, frames.REFUSED_STREAM)
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


PAIRING_S: Final = 30.0
"""How long a stream may wait for the other one of its pair."""
CHANNEL_PORTS_MAX: Final = 127
"""Ports of a WebSocket with channels: two channels each, numbered by one byte."""
_PORT_MAX: Final = 65535
_ERROR, _DATA = "error", "data"


class Pair(msgspec.Struct, frozen=True):
    """A connection: its port, the stream of its bytes, and the stream of its error."""

    port: int
    data: int
    error: int


class _Half(msgspec.Struct, frozen=True):
    kind: str
    port: int
    stream: int
    since_s: float


class Pairs:
    """Streams that wait for the other one of their pair."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Half] = {}

    def add(self, stream: int, headers: Mapping[str, str], now_s: float) -> Pair | None:
        """Return the pair that a stream completes, if it does.

        Raises:
            ProtocolError: The headers are missing or wrong, or such a stream is waiting already: reset the stream.
        """
        kind, port = headers.get("streamtype", ""), parse_port(headers.get("port", ""))
        if kind not in {_ERROR, _DATA}:
            raise ProtocolError(f"streamtype {kind[:20]!r}")
        # Clients without `requestid` open both streams one after the other.
        request = headers.get("requestid") or str(stream if kind == _ERROR else stream - 2)
        half, other = _Half(kind, port, stream, now_s), self._waiting.get(request)
        if other is None:
            self._waiting[request] = half
            return None
        if other.kind == kind or other.port != port:
            raise ProtocolError(f"requestid {request[:20]} is in use")
        del self._waiting[request]
        by_kind = {kind: stream, other.kind: other.stream}
        return Pair(port, by_kind[_DATA], by_kind[_ERROR])

    def expire(self, now_s: float) -> list[int]:
        """Return, and forget, the streams that have waited too long: reset them."""
        late = {request: half for request, half in self._waiting.items() if now_s - half.since_s >= PAIRING_S}
        for request in late:
            del self._waiting[request]
        return [half.stream for half in late.values()]


def parse_port(text: str) -> int:
    """Parse the number of a port.

    Raises:
        ProtocolError: It is not a number of 1 … 65535.
    """
    port = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(_PORT_MAX)) else 0
    if not 1 <= port <= _PORT_MAX:
        raise ProtocolError(f"port {text[:20]!r}")
    return port


def parse_ports(values: Iterable[str]) -> tuple[int, ...]:
    """Parse the ports of a WebSocket with channels, from its query: `port=80,443`, `port=80&port=443`.

    Raises:
        ProtocolError: There are none, too many, or one is wrong.
    """
    ports = tuple(parse_port(text) for value in values for text in value.split(","))
    if not 1 <= len(ports) <= CHANNEL_PORTS_MAX:
        raise ProtocolError(f"{len(ports)} ports; 1 to {CHANNEL_PORTS_MAX} are allowed")
    return ports
