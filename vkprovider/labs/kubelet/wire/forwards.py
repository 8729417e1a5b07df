"""The connections of a port-forward session: pairs of SPDY streams, or of channels of a WebSocket.

Source: client-go `tools/portforward`, cri-streaming `pkg/streaming/portforward`. Each connection has a stream for its
bytes and one for an error, which bear the same number in the header `requestid`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from vkprovider.labs.kubelet.wire.errors import ProtocolError

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
