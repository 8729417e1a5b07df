"""Messages to frames and back."""

from typing import Final, TypeVar

import msgspec

from tunnels.wire import limits
from tunnels.wire.messages import AgentMessage, CallerMessage, Message, Request

_ENCODER: Final = msgspec.msgpack.Encoder()
_FROM_AGENT: Final[msgspec.msgpack.Decoder[AgentMessage]] = msgspec.msgpack.Decoder(AgentMessage)
_FROM_CALLER: Final[msgspec.msgpack.Decoder[CallerMessage]] = msgspec.msgpack.Decoder(CallerMessage)
_VERSION: Final = bytes((limits.VERSION,))

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
    if len(frame) > limits.FRAME_BYTES_MAX - limits.PIECE_BYTES - 64:
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
    if len(frame) > limits.FRAME_BYTES_MAX:
        raise MalformedFrame(f"{len(frame)} bytes, more than {limits.FRAME_BYTES_MAX}")
    if frame[:1] != _VERSION:
        said = f"version {frame[0]}" if frame else "an empty frame"
        raise MalformedFrame(f"{said}, not version {limits.VERSION}")
    try:
        return decoder.decode(memoryview(frame)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MemoryError, OverflowError) as error:
        raise MalformedFrame(str(error)) from None
