"""Bytes of the kubelet API's streams, and what they mean. Pure: no I/O, no clock.

What a client sends is bounded everywhere, whatever it announces: heads of frames, headers, streams, messages.

Sources. Of channels: `k8s.io/streaming/pkg/httpstream/wsstream`. A binary message begins with the number of a channel
as a byte, a text message with its digit, before base64.

Of how a command ended: cri-streaming `pkg/streaming/remotecommand`, client-go `tools/remotecommand/v4.go`.
"""

import base64
import binascii
from typing import Any, Final, Protocol

import msgspec

from vkprovider.labs.kubelet.spi import Exit


class ProtocolError(Exception):
    """The client broke the protocol, or a bound: the connection cannot be used any longer."""


_HALF_CLOSE: Final = 255
_HALF_CLOSE_BYTES: Final = 2
_ZERO: Final = ord("0")

V5: Final = "v5.channel.k8s.io"
COMMANDS: Final = (V5, "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "base64.channel.k8s.io", "")
"""What exec and attach are offered in; empty: the client names none, and means `channel.k8s.io`."""
FORWARDS: Final = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io", "")
TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
"""A WebSocket whose messages are slices of a SPDY connection."""

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
"""The channels of an exec or attach session. Sizes of the terminal are not read: a serial console has none."""


class Payload(msgspec.Struct, frozen=True):
    """Bytes on a channel."""

    channel: int
    data: bytes


class HalfClose(msgspec.Struct, frozen=True):
    """The client sends nothing more on a channel."""

    channel: int


class ChannelCodec(Protocol):
    """One way to write channels."""

    def encode(self, channel: int, data: bytes) -> bytes | str:
        """Return a message."""

    def decode(self, message: bytes | str) -> Payload | HalfClose | None:
        """Return the content of a message; None if it has none.

        Raises:
            ProtocolError: It is not of this codec.
        """


class BinaryCodec:
    """Binary messages.

    Args:
        half_close: Whether the client may say that it sends nothing more on a channel.
    """

    def __init__(self, *, half_close: bool) -> None:
        self._half_close: Final = half_close

    def encode(self, channel: int, data: bytes) -> bytes:
        """See `ChannelCodec`."""
        return bytes((channel,)) + data

    def decode(self, message: bytes | str) -> Payload | HalfClose | None:
        """See `ChannelCodec`."""
        if isinstance(message, str):
            raise ProtocolError("a text message; binary ones are agreed on")
        if not message:
            return None
        if self._half_close and message[0] == _HALF_CLOSE:
            if len(message) != _HALF_CLOSE_BYTES:
                raise ProtocolError("a half-close that does not name one channel")
            return HalfClose(message[1])
        return Payload(message[0], message[1:])


class Base64Codec:
    """Text messages."""

    def encode(self, channel: int, data: bytes) -> str:
        """See `ChannelCodec`."""
        return chr(_ZERO + channel) + base64.b64encode(data).decode()

    def decode(self, message: bytes | str) -> Payload | None:
        """See `ChannelCodec`."""
        if isinstance(message, bytes):
            raise ProtocolError("a binary message; base64 is agreed on")
        if not message:
            return None
        try:
            return Payload(ord(message[0]) - _ZERO, base64.b64decode(message[1:], validate=True))
        except (binascii.Error, ValueError):
            raise ProtocolError("not base64") from None


def codec_of(protocol: str) -> ChannelCodec:
    """Return the codec of one of `COMMANDS` or `FORWARDS`."""
    return Base64Codec() if "base64" in protocol else BinaryCodec(half_close=protocol == V5)


def has_json_status(protocol: str) -> bool:
    """Return whether a protocol, of WebSockets or of SPDY, ends with a `metav1.Status`, not with plain text."""
    return protocol.startswith(("v4.", "v5."))


_CODE_MAX: Final = 255
"""kubectl reads the exit code as a byte."""


def status_json(status: Exit) -> bytes:
    """Return a `metav1.Status`."""
    return msgspec.json.encode({"metadata": {}, **_fields(status)})


def status_text(status: Exit) -> bytes:
    """Return plain text; none for success."""
    return b"" if _is_success(status) else str(_fields(status)["message"]).encode()


def _is_success(status: Exit) -> bool:
    return not status.code and not status.reason


def _fields(status: Exit) -> dict[str, Any]:
    if _is_success(status):
        return {"status": "Success"}
    if status.reason or not 0 < status.code <= _CODE_MAX:
        message = status.message or f"the command ended with {status.code}"
        return {"status": "Failure", "reason": status.reason or "InternalError", "message": message, "code": 500}
    return {
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": status.message or f"command terminated with non-zero exit code: {status.code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(status.code)}]},
    }
