"""One end of a stream of bytes: ordered, complete, with a bounded buffer in each direction."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tunnels.wire import PIECE_BYTES, StreamAck, StreamData, StreamOpen

WINDOW: Final = 16
"""Messages on the way in one direction; a console's or a screen's are far shorter than a piece."""
RESEND_S: Final = 2.0
ALIVE_S: Final = 15.0
"""Each end says at least this often that it is there."""
DEAD_S: Final = 60.0
"""An end from which nothing was heard for this long is gone."""


@dataclass(frozen=True, slots=True)
class Tell:
    """A message for the other end."""

    peer: str
    message: StreamOpen | StreamData | StreamAck


@dataclass(frozen=True, slots=True)
class StreamAccepted:
    """The other end has accepted the stream."""

    stream: str


@dataclass(frozen=True, slots=True)
class Arrived:
    """Bytes for the reader, in order; to be acknowledged with `consumed`."""

    stream: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more arrives.

    Attributes:
        stream: The stream.
        reason: What the other end said; empty for an ordinary end.
        lost: Whether the other end has vanished.
    """

    stream: str
    reason: str = ""
    lost: bool = False


StreamOutput = Tell | StreamAccepted | Arrived | Ended


class StreamEnd:
    """One end of a stream.

    What the other end has not acknowledged is kept and repeated; what arrives out of order waits for its turn. The
    reader acknowledges what it has consumed, so a slow reader slows the writer down. The opening is number 0 of the
    caller's messages.

    Args:
        peer: The other end.
        opening: The message that opens the stream.
        opens: Whether this end sends it.
        now_s: The time.
    """

    def __init__(self, peer: str, opening: StreamOpen, *, opens: bool, now_s: float) -> None:
        self.peer: Final = peer
        self.ended = self.left = False
        self._stream: Final = opening.stream
        self._unacked: deque[StreamOpen | StreamData] = deque([opening] if opens else [])
        self._sent = 1 if opens else 0
        self._acked = 0
        self._closed = self._left = False
        self._early: dict[int, StreamData] = {}
        self._expected = self._consumed = 0 if opens else 1
        self._heard_s = self._said_s = now_s
        self._resend_s = now_s + RESEND_S

    @property
    def writable(self) -> bool:
        """Whether `write` accepts more."""
        return not self.finished and len(self._unacked) < WINDOW

    @property
    def finished(self) -> bool:
        """Whether `write` will accept nothing more: this end is closed, or the other one does not read on."""
        return self._closed or self.left

    @property
    def over(self) -> bool:
        """Whether both directions have ended and nothing has to be repeated."""
        return self.ended and self._closed and not self._unacked

    def write(self, data: bytes, now_s: float) -> Iterator[StreamOutput]:
        """Send up to a piece of bytes; only while `writable`."""
        yield self._put(StreamData(self._stream, self._sent, data[:PIECE_BYTES]), now_s)

    def close(self, reason: str, now_s: float) -> Iterator[StreamOutput]:
        """Say that nothing follows; with a reason, also after it was said without: nothing is read any more either."""
        if not self._closed or (reason and not self._left and not self.ended):
            yield self._put(StreamData(self._stream, self._sent, b"", last=True, reason=reason[:1024]), now_s)
            self._closed, self._left = True, bool(reason)

    def received(self, message: StreamData | StreamAck, now_s: float) -> Iterator[StreamOutput]:
        """Handle a message of the other end."""
        self._heard_s = now_s
        if isinstance(message, StreamAck):
            while self._unacked and self._acked < message.next:
                opened = isinstance(self._unacked.popleft(), StreamOpen)
                self._acked += 1
                self._resend_s = now_s + RESEND_S
                if opened:
                    yield StreamAccepted(self._stream)
            return
        if message.seq < self._expected:
            yield self._ack(now_s)  # a repetition: the acknowledgement was lost
        elif message.seq < self._consumed + WINDOW:
            self._early[message.seq] = message
        while (turn := self._early.pop(self._expected, None)) is not None:
            self._expected += 1
            if turn.last:
                self.ended = True
                self.left = self.left or bool(turn.reason)
                self._consumed = self._expected
                yield self._ack(now_s)
                yield Ended(self._stream, turn.reason)
            else:
                yield Arrived(self._stream, turn.data)

    def consumed(self, now_s: float) -> Iterator[StreamOutput]:
        """Note that the reader has consumed one `Arrived`."""
        self._consumed = min(self._consumed + 1, self._expected)
        yield self._ack(now_s)

    def connected(self, now_s: float) -> Iterator[StreamOutput]:
        """Repeat what is not acknowledged: the carrier came back."""
        self._resend_s = now_s + RESEND_S
        for message in self._unacked:
            yield Tell(self.peer, message)
        if not self._unacked or self._expected:
            yield self._ack(now_s)

    def tick(self, now_s: float) -> Iterator[StreamOutput]:
        """Let time pass."""
        if now_s - self._heard_s >= DEAD_S:
            yield from self.vanished("the other end has vanished")
        elif self._unacked and now_s >= self._resend_s:
            yield from self.connected(now_s)
        elif now_s - self._said_s >= ALIVE_S:
            yield self._ack(now_s)

    def due_s(self) -> float:
        """Return when `tick` has something to do."""
        resend_s = self._resend_s if self._unacked else float("inf")
        return min(self._heard_s + DEAD_S, self._said_s + ALIVE_S, resend_s)

    def vanished(self, reason: str) -> Iterator[StreamOutput]:
        """Give up: the other end does not exist any longer."""
        self._unacked.clear()
        self._closed = True
        if not self.ended:
            self.ended = True
            yield Ended(self._stream, reason, lost=True)

    def _put(self, message: StreamData, now_s: float) -> Tell:
        if not self._unacked:
            self._resend_s = now_s + RESEND_S
        self._unacked.append(message)
        self._sent += 1
        self._said_s = now_s
        return Tell(self.peer, message)

    def _ack(self, now_s: float) -> Tell:
        self._said_s = now_s
        return Tell(self.peer, StreamAck(self._stream, self._consumed))


class PeerStreams:
    """The streams of one caller or agent, by their ids."""

    def __init__(self) -> None:
        self._ends: dict[str, StreamEnd] = {}

    def __len__(self) -> int:
        return len(self._ends)

    def knows(self, stream: str) -> bool:
        """Return whether there is such a stream."""
        return stream in self._ends

    def leads_to(self, stream: str, peer: str) -> bool:
        """Return whether there is such a stream, and it is one with a peer."""
        end = self._ends.get(stream)
        return end is not None and end.peer == peer

    def writable(self, stream: str) -> bool:
        """Return whether a stream accepts a `write` now."""
        end = self._ends.get(stream)
        return end is not None and end.writable

    def is_over(self, stream: str) -> bool:
        """Return whether a stream accepts no `write` any more: it is closed, or the other end has left."""
        end = self._ends.get(stream)
        return end is None or end.finished

    def open(self, peer: str, opening: StreamOpen, *, opens: bool, now_s: float) -> Iterator[StreamOutput]:
        """Open a stream, or accept one."""
        end = self._ends[opening.stream] = StreamEnd(peer, opening, opens=opens, now_s=now_s)
        yield from end.connected(now_s)

    def write(self, stream: str, data: bytes, now_s: float) -> Iterator[StreamOutput]:
        """See `StreamEnd.write`."""
        if (end := self._ends.get(stream)) is not None:
            yield from end.write(data, now_s)

    def consumed(self, stream: str, now_s: float) -> Iterator[StreamOutput]:
        """See `StreamEnd.consumed`."""
        if (end := self._ends.get(stream)) is not None:
            yield from end.consumed(now_s)

    def close(self, stream: str, reason: str, now_s: float) -> Iterator[StreamOutput]:
        """See `StreamEnd.close`."""
        if (end := self._ends.get(stream)) is not None:
            yield from end.close(reason, now_s)

    def received(self, peer: str, message: StreamData | StreamAck, now_s: float) -> Iterator[StreamOutput]:
        """Handle a message; one of an unknown stream, or of another peer than the stream's, is passed over."""
        end = self._ends.get(message.stream)
        if end is not None and end.peer == peer:
            yield from end.received(message, now_s)
            self._sweep(message.stream)

    def refused(self, stream: str, reason: str) -> Iterator[StreamOutput]:
        """End a stream that the other end did not accept."""
        if (end := self._ends.pop(stream, None)) is not None:
            yield from end.vanished(reason)

    def connected(self, now_s: float, peer: str = "") -> Iterator[StreamOutput]:
        """Repeat what a peer, or any of them, has not acknowledged: the carrier came back."""
        for end in list(self._ends.values()):
            if peer in {"", end.peer}:
                yield from end.connected(now_s)

    def again(self, stream: str, now_s: float) -> Iterator[StreamOutput]:
        """Acknowledge an opening that came twice."""
        if (end := self._ends.get(stream)) is not None:
            yield from end.connected(now_s)

    def vanished(self, peer: str) -> Iterator[StreamOutput]:
        """End the streams with a peer that does not exist any longer."""
        for stream, end in list(self._ends.items()):
            if end.peer == peer:
                yield from self.refused(stream, "the other end was restarted")

    def tick(self, now_s: float) -> Iterator[StreamOutput]:
        """Let time pass."""
        for stream, end in list(self._ends.items()):
            yield from end.tick(now_s)
            self._sweep(stream)

    def due_s(self) -> float:
        """Return when `tick` has something to do; infinite if never."""
        return min((end.due_s() for end in self._ends.values()), default=float("inf"))

    def _sweep(self, stream: str) -> None:
        if self._ends[stream].over:
            del self._ends[stream]
