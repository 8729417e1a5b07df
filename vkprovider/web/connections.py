"""Limits on the connections of the page: how many there are, and how long one may wait for a reader.

The page is reached before it is known who asks, so that nothing here may cost much. A new connection is always
accepted, because a probe may be behind it; of too many the one that has been silent for longest is closed.
"""

import asyncio
import ssl
from collections import OrderedDict
from typing import Final, cast

from aiohttp import web

from vkprovider.settings.services import HttpSettings

CONNECTIONS_MAX: Final = 256
KEEPALIVE_S: Final = 15.0
"""How long a connection may take for the head of a request, from the answer before or from its beginning."""
LINGERING_S: Final = 5.0
HANDSHAKE_S: Final = 10.0
_LINE_BYTES_MAX: Final = 4096
_FIELD_BYTES_MAX: Final = 20 * 1024
"""Of one header; a token may have 16 KiB."""
_STUCK_S: Final = 30.0
"""How long an answer may wait for its reader."""


def uncount(request: web.Request) -> None:
    """Stop counting the connection of a request among those that may be closed: its client is known, and bounded."""
    transport = request.transport
    protocol = transport.get_protocol() if transport is not None else None
    if isinstance(protocol, _Connection):
        protocol.uncount()


def runner_of(app: web.Application) -> web.AppRunner:
    """Return the runner of an application, with limits on the head of requests."""
    return web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=KEEPALIVE_S,
        lingering_time=LINGERING_S,
        max_line_size=_LINE_BYTES_MAX,
        max_field_size=_FIELD_BYTES_MAX,
        auto_decompress=False,  # a small body must not become a large one
    )


async def listen(runner: web.AppRunner, settings: HttpSettings, tls: ssl.SSLContext | None) -> asyncio.Server:
    """Begin to listen for connections to an application.

    Raises:
        OSError: The port is taken.
    """
    assert runner.server is not None  # noqa: S101 (it is set up)
    connections = Connections(runner.server, connections_max=CONNECTIONS_MAX)
    handshake_s = HANDSHAKE_S if tls is not None else None
    loop = asyncio.get_running_loop()
    return await loop.create_server(
        connections.protocol, settings.host, settings.port, ssl=tls, ssl_handshake_timeout=handshake_s
    )


class Connections:
    """The open connections of a listener, the one that has been silent for longest first."""

    def __init__(self, server: web.Server, *, connections_max: int) -> None:
        """Create an empty collection.

        Args:
            server: Serves each connection.
            connections_max: How many may be open.
        """
        self._server = server
        self._max = connections_max
        self._open: OrderedDict[asyncio.Transport, None] = OrderedDict()

    def protocol(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return _Connection(self, self._server())

    def __len__(self) -> int:
        return len(self._open)

    def opened(self, transport: asyncio.Transport) -> None:
        """Add a connection; close the most silent one if there are too many."""
        self._open[transport] = None
        if len(self._open) > self._max:
            oldest, _ = self._open.popitem(last=False)
            oldest.abort()

    def heard(self, transport: asyncio.Transport) -> None:
        """Note that a connection is not silent."""
        if transport in self._open:
            self._open.move_to_end(transport)

    def closed(self, transport: asyncio.Transport) -> None:
        """Remove a connection."""
        self._open.pop(transport, None)


class _Connection(asyncio.Protocol):
    """Passes the events of a connection on to aiohttp's protocol, and closes one whose answer is not read."""

    def __init__(self, connections: Connections, served: asyncio.Protocol) -> None:
        self._connections = connections
        self._served = served
        self._transport: asyncio.Transport | None = None
        self._stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass
        self._connections.opened(self._transport)
        self._served.connection_made(transport)

    def uncount(self) -> None:
        """Leave the collection, for good."""
        if self._transport is not None:
            self._connections.closed(self._transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None:
            self._connections.heard(self._transport)
        self._served.data_received(data)

    def eof_received(self) -> bool | None:
        return self._served.eof_received()

    def pause_writing(self) -> None:
        if self._transport is not None and self._stuck is None:
            self._stuck = asyncio.get_running_loop().call_later(_STUCK_S, self._transport.abort)
        self._served.pause_writing()

    def resume_writing(self) -> None:
        self._read()
        self._served.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._read()
        if self._transport is not None:
            self._connections.closed(self._transport)
        self._served.connection_lost(exc)

    def _read(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
