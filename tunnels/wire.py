"""The messages between a caller and an agent: by who sends them, as frames and back, with the bounds of each.

    agent to all callers        Hello  Heartbeat  Goodbye
    agent to one caller         Response  Refusal  Event
    caller to agents            Probe  Request  Cancel  StreamOpen  Refusal
    either to the other         Piece  Want  StreamData  StreamAck

Who sent a message, and for whom it is, is the carrier's knowledge: an agent has a name and a *boot*, a random word of
each of its processes, so that what was meant for one process never reaches its successor.

Times of requests are of the agent's own clock, which it announces: only it decides whether a message is late.
"""

from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Struct

VERSION: Final = 1
"""The first byte of every frame. It changes only when an older peer could misunderstand a message."""

PIECE_BYTES: Final = 64 * 2**10
"""A longer body travels in pieces of this length; only the last one may be shorter."""

FRAME_BYTES_MAX: Final = 160 * 2**10
"""A frame: a piece, and parameters and headers at their longest."""

REQUEST_BYTES_MAX: Final = 32 * 2**20
"""The body of a request; CML itself refuses more than 20 MB."""

PARTS_MAX: Final = 1024
"""Pieces of a body: those of `direct.BODY_BYTES_MAX`."""

RESPONSE_BYTES_MAX: Final = PARTS_MAX * PIECE_BYTES
"""The body of a response."""

WANT_MAX: Final = 32
"""Pieces that one `Want` names."""

FACTS_BYTES_MAX: Final = 64 * 2**10
"""Facts of a hello or heartbeat, and the data of an event."""

DEADLINE_S_MAX: Final = 900.0
"""The longest that a request may be valid."""


READS: Final = frozenset({"GET", "HEAD"})
"""The methods that change nothing. Any other is a command: it needs an epoch, and only one boot is asked for it."""

Id = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[0-9A-Za-z_-]+\Z")]
"""An operation or a stream: unique among all callers."""

Count = Annotated[int, Meta(ge=0, le=2**53)]
Word = Annotated[str, Meta(max_length=64)]
Text = Annotated[str, Meta(max_length=1024)]
Facts = Annotated[bytes, Meta(max_length=FACTS_BYTES_MAX)]
Data = Annotated[bytes, Meta(max_length=PIECE_BYTES)]
Part = Annotated[int, Meta(ge=1, lt=PARTS_MAX)]
Fields = Annotated[
    dict[Annotated[str, Meta(max_length=128)], Annotated[str, Meta(max_length=8192)]], Meta(max_length=32)
]


class Message(Struct, frozen=True, omit_defaults=True, tag_field="t", tag=lambda name: name.lower()):
    """What all messages share: a frozen struct whose field `t` is its name."""


class Hello(Message, frozen=True):
    """An agent presents itself: after every connect, and as the answer to `Probe`.

    Attributes:
        clock_ms: The agent's clock; it starts anywhere and runs with its boot.
        silence_ms: The agent counts as silent when nothing was heard of it for this long.
        epoch: The newest epoch that it has seen.
        events: The number of its newest event.
        version: Of its software.
        facts: What the embedder adds.
    """

    clock_ms: Count
    silence_ms: Annotated[int, Meta(ge=100, le=600_000)]
    epoch: Count = 0
    events: Count = 0
    version: Word = ""
    facts: Facts = b""


class Heartbeat(Message, frozen=True):
    """An agent is alive; see `Hello` for the attributes. Empty facts: the last ones still hold."""

    clock_ms: Count
    epoch: Count = 0
    events: Count = 0
    facts: Facts = b""


class Goodbye(Message, frozen=True):
    """An agent leaves.

    Attributes:
        reason: For people.
        lost: Whether its carrier says so in its place (MQTT's last will): it may be back in a moment.
    """

    reason: Text = ""
    lost: bool = False


class Probe(Message, frozen=True):
    """A caller asks for a `Hello`."""


class Request(Message, frozen=True):
    """An HTTP request to the server beside the agent.

    Attributes:
        op: The operation; the same in every repetition.
        epoch: Of the caller's ownership; 0: it owns nothing, and may only read.
        expires_ms: By the agent's clock; the same in every repetition. Later it is not carried out.
        method: `GET`, `POST`, …
        path: Without query.
        params: The query.
        headers: Few.
        size: Of the whole body.
        body: Its first piece.
    """

    op: Id
    epoch: Count
    expires_ms: Count
    method: Annotated[str, Meta(min_length=1, max_length=16, pattern=r"^[A-Z]+\Z")]
    path: Annotated[str, Meta(min_length=1, max_length=2048, pattern=r"^/[!-~]*\Z")]
    params: Fields = {}
    headers: Fields = {}
    size: Annotated[int, Meta(ge=0, le=REQUEST_BYTES_MAX)] = 0
    body: Data = b""


class Cancel(Message, frozen=True):
    """The caller does not wait any longer."""

    op: Id


class Response(Message, frozen=True):
    """The answer to a request: status, headers, the first piece of the body."""

    op: Id
    status: Annotated[int, Meta(ge=100, le=599)]
    headers: Fields = {}
    size: Annotated[int, Meta(ge=0, le=RESPONSE_BYTES_MAX)] = 0
    body: Data = b""


class Piece(Message, frozen=True):
    """A further piece of a body; the first one, part 0, is in the request or response."""

    op: Id
    part: Part
    data: Data


class Want(Message, frozen=True):
    """The receiver of a body asks for pieces: the next ones, or lost ones."""

    op: Id
    parts: Annotated[tuple[Part, ...], Meta(max_length=WANT_MAX)]


class Refusal(Message, frozen=True):
    """A request or stream that failed or was not carried out; without `op`, an agent that the caller turns away.

    Attributes:
        code: One of `protocol.refusals`.
        text: For people.
        op: The operation or stream.
        detail: What the code needs further: the fault of a certificate.
    """

    code: Word
    text: Text = ""
    op: Annotated[str, Meta(max_length=64)] = ""
    detail: Word = ""


class Event(Message, frozen=True):
    """Something changed at the server; numbered, so that a caller notices a lost one."""

    seq: Count
    kind: Word
    data: Facts = b""


class StreamOpen(Message, frozen=True):
    """The caller wants a stream of bytes, such as a console; see `Request` for the attributes."""

    stream: Id
    epoch: Count
    expires_ms: Count
    path: Annotated[str, Meta(min_length=1, max_length=2048, pattern=r"^/[!-~]*\Z")]
    params: Fields = {}
    headers: Fields = {}


class StreamData(Message, frozen=True):
    """Bytes of a stream, numbered from 0 in each direction.

    Attributes:
        stream: The stream.
        seq: The number.
        data: The bytes.
        last: Nothing follows: the sender closes the stream.
        reason: Why it does.
    """

    stream: Id
    seq: Count
    data: Data = b""
    last: bool = False
    reason: Text = ""


class StreamAck(Message, frozen=True):
    """Everything before `next` was consumed. Repeated as a sign of life."""

    stream: Id
    next: Count


AgentMessage = Hello | Heartbeat | Goodbye | Response | Refusal | Event | Piece | Want | StreamData | StreamAck
"""What an agent may send."""

CallerMessage = Probe | Request | Cancel | StreamOpen | Refusal | Piece | Want | StreamData | StreamAck
"""What a caller may send."""


_ENCODER: Final = msgspec.msgpack.Encoder()
_FROM_AGENT: Final[msgspec.msgpack.Decoder[AgentMessage]] = msgspec.msgpack.Decoder(AgentMessage)
_FROM_CALLER: Final[msgspec.msgpack.Decoder[CallerMessage]] = msgspec.msgpack.Decoder(CallerMessage)
_VERSION: Final = bytes((VERSION,))

_T = TypeVar("_T")


class MalformedFrame(Exception):  # noqa: N818 (a verdict on a peer, not a fault)
    """The frame is not a message that this peer may send."""


def encode(message: Message) -> bytes:
    """Return the frame of a message."""
    return _VERSION + _ENCODER.encode(message)


def check(head: Request) -> None:
    """Check that a request, to which a piece of its body will be added, can be decoded by an agent.

    Raises:
        MalformedFrame: It cannot.
    """
    frame = encode(head)
    if len(frame) > FRAME_BYTES_MAX - PIECE_BYTES - 64:
        raise MalformedFrame(f"query and headers of {len(frame)} bytes")
    from_caller(frame)


def from_agent(frame: bytes) -> AgentMessage:
    """Decode a frame that an agent sent.

    Raises:
        MalformedFrame: It is too long, of another version, or not a message of an agent.
    """
    return _decode(_FROM_AGENT, frame)


def from_caller(frame: bytes) -> CallerMessage:
    """Decode a frame that a caller sent.

    Raises:
        MalformedFrame: It is too long, of another version, or not a message of a caller.
    """
    return _decode(_FROM_CALLER, frame)


def _decode(decoder: msgspec.msgpack.Decoder[_T], frame: bytes) -> _T:
    if len(frame) > FRAME_BYTES_MAX:
        raise MalformedFrame(f"{len(frame)} bytes, more than {FRAME_BYTES_MAX}")
    if frame[:1] != _VERSION:
        said = f"version {frame[0]}" if frame else "an empty frame"
        raise MalformedFrame(f"{said}, not version {VERSION}")
    try:
        return decoder.decode(memoryview(frame)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MemoryError, OverflowError) as error:
        raise MalformedFrame(str(error)) from None
