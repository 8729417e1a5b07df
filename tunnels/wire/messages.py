"""The messages, by who sends them.

    agent to all callers        Hello  Heartbeat  Goodbye
    agent to one caller         Response  Refusal  Event
    caller to agents            Probe  Request  Cancel  StreamOpen  Refusal
    either to the other         Piece  Want  StreamData  StreamAck

Who sent a message, and for whom it is, is the carrier's knowledge: an agent has a name and a *boot*, a random word of
each of its processes, so that what was meant for one process never reaches its successor.

Times of requests are of the agent's own clock, which it announces: only it decides whether a message is late.
"""

from typing import Annotated, Final

from msgspec import Meta, Struct

from tunnels.wire import limits

READS: Final = frozenset({"GET", "HEAD"})
"""The methods that change nothing. Any other is a command: it needs an epoch, and only one boot is asked for it."""

Id = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[0-9A-Za-z_-]+\Z")]
"""An operation or a stream: unique among all callers."""

Count = Annotated[int, Meta(ge=0, le=2**53)]
Word = Annotated[str, Meta(max_length=64)]
Text = Annotated[str, Meta(max_length=1024)]
Facts = Annotated[bytes, Meta(max_length=limits.FACTS_BYTES_MAX)]
Data = Annotated[bytes, Meta(max_length=limits.PIECE_BYTES)]
Part = Annotated[int, Meta(ge=1, lt=limits.PARTS_MAX)]
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
    size: Annotated[int, Meta(ge=0, le=limits.REQUEST_BYTES_MAX)] = 0
    body: Data = b""


class Cancel(Message, frozen=True):
    """The caller does not wait any longer."""

    op: Id


class Response(Message, frozen=True):
    """The answer to a request: status, headers, the first piece of the body."""

    op: Id
    status: Annotated[int, Meta(ge=100, le=599)]
    headers: Fields = {}
    size: Annotated[int, Meta(ge=0, le=limits.RESPONSE_BYTES_MAX)] = 0
    body: Data = b""


class Piece(Message, frozen=True):
    """A further piece of a body; the first one, part 0, is in the request or response."""

    op: Id
    part: Part
    data: Data


class Want(Message, frozen=True):
    """The receiver of a body asks for pieces: the next ones, or lost ones."""

    op: Id
    parts: Annotated[tuple[Part, ...], Meta(max_length=limits.WANT_MAX)]


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
