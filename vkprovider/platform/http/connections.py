"""Limits on the connections of a server: how many there are, and how long one may wait for a reader.

A server is reached before it is known who asks, so that nothing here may cost much. A new connection is always
accepted, because a probe may be behind it; of too many the one that has been silent for longest is closed.
"""

import asyncio
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar, cast

import structlog
from aiohttp import web, web_protocol, web_response, web_server

from vkprovider.platform.concurrency import end_tasks

T = TypeVar("T")
CONNECTIONS_MAX: Final = 256
KEEPALIVE_S: Final = 15.0
"""How long a connection may take for the head of a request, from the answer before or from its beginning."""
LINGERING_S: Final = 5.0
HANDSHAKE_S: Final = 10.0
LINE_BYTES_MAX: Final = 4096
FIELD_BYTES_MAX: Final = 20 * 1024
"""The longest header; a token may have 16 KiB."""
STUCK_S: Final = 30.0
"""How long an answer may wait for its reader."""
SERVER: Final = "vkprovider"
"""The header `Server` of every answer: it names no version, of which a known fault could be looked up."""
web_response.SERVER_SOFTWARE = SERVER  # type: ignore[attr-defined]  # (no hook sees the answers to requests that are no HTTP)
_log: Final = structlog.get_logger(__name__)
_NO_REQUEST: Final = (
    f"This request cannot be read: it is no HTTP, or a header has more than {FIELD_BYTES_MAX // 1024} KiB. If you see "
    "this in a browser, have it delete the cookies of this site, and load the page again.\n"
)


class _Quiet(web_protocol.RequestHandler):
    """Refuses what is no request without a word of it: a header that is too long is a cookie, as a rule."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or request.writer.output_size > 0:
            return super().handle_error(request, status, exc, message)
        _log.info("no request", status=status, error=type(exc).__name__)
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        response = web.Response(status=status, text=_NO_REQUEST, headers=headers)
        response.force_close()
        return response


web_server.RequestHandler = _Quiet  # type: ignore[attr-defined]  # (as above: nothing else makes them)


def uncount(request: web.Request, *, stuck_s: float = STUCK_S) -> None:
    """Stop counting the connection of a request among those that may be closed: its client is known, and bounded.

    Args:
        request: The client's.
        stuck_s: How long what is sent may wait for its reader from now on.
    """
    connection = _connection_of(request)
    if connection is not None:
        connection.uncount(stuck_s)


def listener_of(request: web.Request) -> object:
    """Return the purpose for which a request's listener was opened; None if the client has left."""
    connection = _connection_of(request)
    return connection.listener if connection is not None else None


async def unless_left(request: web.Request, work: Coroutine[Any, Any, T]) -> T | None:
    """Do work for the client of a request, and return its result; None if the client leaves, which cancels the work.

    A handler that waits does not notice by itself that its client leaves.
    """
    connection = _connection_of(request)
    if connection is None:
        work.close()
        return None
    doing = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(connection.left.wait())
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        await end_tasks((doing, leaving))


def _connection_of(request: web.Request) -> "_Connection | None":
    transport = request.transport
    protocol = transport.get_protocol() if transport is not None else None
    return protocol if isinstance(protocol, _Connection) else None


def runner_of(
    app: web.Application,
    *,
    handler_cancellation: bool = False,
    keepalive_s: float | None = None,
    shutdown_s: float = 60.0,
) -> web.AppRunner:
    """Return the runner of an application, with limits on the head of requests.

    Args:
        app: The application.
        handler_cancellation: Cancel a handler whose client leaves; else a handler that waits does not notice it.
        keepalive_s: How long a connection may be silent; by default `KEEPALIVE_S`.
        shutdown_s: How long handlers may go on when it ends.
    """
    return web.AppRunner(
        app,
        handler_cancellation=handler_cancellation,
        access_log=None,
        keepalive_timeout=keepalive_s or KEEPALIVE_S,
        shutdown_timeout=shutdown_s,
        lingering_time=LINGERING_S,
        max_line_size=LINE_BYTES_MAX,
        max_field_size=FIELD_BYTES_MAX,
        auto_decompress=False,  # a small body must not become a large one
    )


def hosts_of(host: str) -> list[str]:
    """Return the addresses to listen on for a setting: "" means all, of IPv6 as well if this machine has it.

    Each is a socket of its own: one for both would name clients of IPv4 by addresses of IPv6.
    """
    if host:
        return [host]
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.bind(("::", 0))
        return ["0.0.0.0", "::"]  # noqa: S104 (probes come from the node)
    return ["0.0.0.0"]  # noqa: S104 (as above)


async def listen(runner: web.AppRunner, host: str, port: int, tls: ssl.SSLContext | None = None) -> asyncio.Server:
    """Begin to listen for connections to an application; for `host` see `hosts_of`.

    Raises:
        OSError: The port is taken.
    """
    assert runner.server is not None  # noqa: S101 (it is set up)
    connections = Connections(runner.server, connections_max=CONNECTIONS_MAX)
    hosts = hosts_of(host) if port else hosts_of(host)[:1]  # two free ports would differ
    return await connections.listen(hosts, port, tls)


class Connections:
    """The open connections of one or several listeners, the one that has been silent for longest first."""

    def __init__(self, server: web.Server, *, connections_max: int) -> None:
        """Create an empty collection.

        Args:
            server: Serves each connection.
            connections_max: How many may be open.
        """
        self._server = server
        self._max = connections_max
        self._open: OrderedDict[asyncio.Transport, None] = OrderedDict()
        self._of: dict[object, set[asyncio.Transport]] = {}

    async def listen(
        self, host: str | Sequence[str], port: int, tls: ssl.SSLContext | None, listener: object = None
    ) -> asyncio.Server:
        """Begin to listen on one or more hosts; `listener` is what `listener_of` returns for those that come there.

        Raises:
            OSError: The port is taken.
        """
        handshake_s = HANDSHAKE_S if tls is not None else None
        factory: Callable[[], asyncio.Protocol] = partial(self._protocol, listener)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            factory, host, port, ssl=tls, ssl_handshake_timeout=handshake_s, start_serving=False
        )
        try:
            await server.start_serving()
        except asyncio.CancelledError:
            server.close()  # nobody else can
            raise
        return server

    def _protocol(self, listener: object) -> asyncio.Protocol:
        return _Connection(self, self._server(), listener)

    def __len__(self) -> int:
        return len(self._open)

    def abort(self, listener: object) -> None:
        """Close every connection of a listener, whatever is still to be sent."""
        for transport in list(self._of.get(listener, ())):
            transport.abort()

    def opened(self, transport: asyncio.Transport, listener: object) -> None:
        """Add a connection; close the most silent one if there are too many."""
        self._open[transport] = None
        self._of.setdefault(listener, set()).add(transport)
        if len(self._open) > self._max:
            oldest, _ = self._open.popitem(last=False)
            oldest.abort()

    def heard(self, transport: asyncio.Transport) -> None:
        """Note that a connection is not silent."""
        if transport in self._open:
            self._open.move_to_end(transport)

    def uncount(self, transport: asyncio.Transport) -> None:
        """Exempt a connection from the limit, for good."""
        self._open.pop(transport, None)

    def closed(self, transport: asyncio.Transport, listener: object) -> None:
        """Remove a connection."""
        self._open.pop(transport, None)
        known = self._of.get(listener, set())
        known.discard(transport)
        if not known:
            self._of.pop(listener, None)


class _Connection(asyncio.Protocol):
    """Passes the events of a connection on to aiohttp's protocol, and closes one whose answer is not read."""

    def __init__(self, connections: Connections, served: asyncio.Protocol, listener: object) -> None:
        self.listener = listener
        self.left = asyncio.Event()
        self._connections = connections
        self._served = served
        self._stuck_s = STUCK_S
        self._transport: asyncio.Transport | None = None
        self._stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass
        self._connections.opened(self._transport, self.listener)
        self._served.connection_made(transport)

    def uncount(self, stuck_s: float) -> None:
        """Leave the limit, for good, with another time for which what is sent may wait."""
        self._stuck_s = stuck_s
        if self._transport is not None:
            self._connections.uncount(self._transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None:
            self._connections.heard(self._transport)
        self._served.data_received(data)

    def eof_received(self) -> bool | None:
        return self._served.eof_received()

    def pause_writing(self) -> None:
        if self._transport is not None and self._stuck is None:
            self._stuck = asyncio.get_running_loop().call_later(self._stuck_s, self._transport.abort)
        self._served.pause_writing()

    def resume_writing(self) -> None:
        self._read()
        self._served.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.left.set()
        self._read()
        if self._transport is not None:
            self._connections.closed(self._transport, self.listener)
        self._served.connection_lost(exc)

    def _read(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
