"""The connection of a session: which protocol both agree on, then raw after an upgrade."""

import asyncio
import contextlib
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from aiohttp import WSMsgType, web

from tunnels.base import ConnectionLost

_WEBSOCKET: Final = "websocket"
_SPDY: Final = "spdy/3.1"


@dataclass(frozen=True, slots=True)
class Agreement:
    """What both speak.

    Attributes:
        spdy: SPDY on the raw connection; otherwise a WebSocket.
        protocol: Within it; empty: the client of a WebSocket names none.
    """

    spdy: bool
    protocol: str


def agree(request: web.Request, *, websocket: Sequence[str], spdy: Sequence[str]) -> Agreement:
    """Choose the first protocol of the client that the server has.

    Raises:
        HTTPBadRequest: The request is not an upgrade, or an upgrade to something else.
        HTTPForbidden: There is no common protocol.
    """
    wanted = request.headers.get("Upgrade", "").strip().lower()
    if "upgrade" not in request.headers.get("Connection", "").lower() or wanted not in {_WEBSOCKET, _SPDY}:
        raise web.HTTPBadRequest(text="the request must upgrade the connection to a WebSocket, or to SPDY/3.1")
    if wanted == _WEBSOCKET:
        offered = _names(request.headers.getall("Sec-WebSocket-Protocol", ())) or [""]
        return Agreement(spdy=False, protocol=_common(offered, websocket))
    offered = _names(request.headers.getall("X-Stream-Protocol-Version", ()))
    if not offered:
        raise web.HTTPBadRequest(text="the header X-Stream-Protocol-Version is missing")
    return Agreement(spdy=True, protocol=_common(offered, spdy))


def _names(values: Iterable[str]) -> list[str]:
    return [name for value in values for part in value.split(",") if (name := part.strip())]


def _common(offered: Sequence[str], supported: Sequence[str]) -> str:
    for name in offered:
        if name in supported:
            return name
    known = ", ".join(name for name in supported if name)
    headers = {"X-Accepted-Stream-Protocol-Versions": known}
    raise web.HTTPForbidden(text=f"none of the offered protocols is supported: {known} are", headers=headers)


_READ_BYTES: Final = 256 * 1024
_WRITE_BYTES: Final = 256 * 1024
"""What may wait for a slow client before a writer has to."""
_MESSAGE_BYTES_MAX: Final = 1024 * 1024
"""The longest message of a WebSocket; kubectl's have 32 KiB."""
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 4}
"""A host that has vanished is noticed within about a minute, in seconds and probes."""


class Link(Protocol):
    """A connection to a client."""

    @property
    def response(self) -> web.StreamResponse:
        """What the handler of the request returns in the end."""

    async def receive(self) -> bytes | str | None:
        """Return the next bytes or message; None: the client has closed.

        Raises:
            ConnectionLost: The connection broke.
        """

    async def send(self, *pieces: bytes) -> None:
        """Send bytes, one message of a WebSocket, and wait while the client is slow.

        Raises:
            ConnectionLost: The client left.
        """

    async def finish(self) -> None:
        """Close in order: let the client read everything; nobody may `receive` at the same time."""

    @property
    def stuck(self) -> bool:
        """Whether bytes wait for a client that does not read."""

    def abort(self) -> None:
        """Drop the connection."""


class _Switched(web.StreamResponse):
    """The answer to a request whose connection is not HTTP any longer: it is written already."""

    def __init__(self) -> None:
        super().__init__(status=101)

    async def prepare(self, request: web.BaseRequest) -> None:
        """Write nothing."""

    async def write_eof(self, data: bytes = b"") -> None:
        """Write nothing."""


class _Taken(asyncio.StreamReaderProtocol):
    """Reads a connection that aiohttp has accepted, and lets aiohttp know when it ends."""

    def __init__(self, reader: asyncio.StreamReader, http: asyncio.BaseProtocol) -> None:
        super().__init__(reader, loop=asyncio.get_running_loop())
        self._http: Final = http

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        super().connection_lost(exc)
        self._http.connection_lost(exc)


class RawLink:
    """A connection that carries SPDY; made by `switch`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader: Final = reader
        self._writer: Final = writer
        self._response: Final = _Switched()

    @property
    def response(self) -> web.StreamResponse:
        """See `Link`."""
        return self._response

    async def receive(self) -> bytes | None:
        """See `Link`."""
        try:
            return await self._reader.read(_READ_BYTES) or None
        except OSError as error:
            raise ConnectionLost(f"the client's connection broke: {error}") from None

    async def send(self, *pieces: bytes) -> None:
        """See `Link`."""
        if self._writer.is_closing():
            raise ConnectionLost("the client has left")
        try:
            self._writer.writelines(pieces)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost(f"the client has left: {error}") from None

    async def finish(self) -> None:
        """See `Link`: kubectl closes when it has read to the end of all streams."""
        with contextlib.suppress(OSError):
            await self._writer.drain()
            while await self._reader.read(_READ_BYTES):
                pass
        self._writer.close()

    @property
    def stuck(self) -> bool:
        """See `Link`."""
        return self._writer.transport.get_write_buffer_size() > 0

    def abort(self) -> None:
        """See `Link`."""
        self._writer.transport.abort()


def switch(request: web.Request, protocol: str) -> RawLink:
    """Answer an upgrade to SPDY, and read its connection from now on.

    The client sends nothing before it has the answer, so that no byte is lost to aiohttp's parser.

    Raises:
        ConnectionLost: The client has left.
    """
    transport = request.transport
    if transport is None:
        raise ConnectionLost("the client has left")
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(_READ_BYTES // 2, loop)
    taken = _Taken(reader, transport.get_protocol())
    transport.set_protocol(taken)
    taken.connection_made(transport)
    transport.set_write_buffer_limits(_WRITE_BYTES)
    _notice_dead_hosts(transport)
    head = f"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: {protocol}\r\n\r\n"
    transport.write(b"HTTP/1.1 101 Switching Protocols\r\n" + head.encode())
    return RawLink(reader, asyncio.StreamWriter(transport, taken, reader, loop))


class WebSocketLink:
    """A WebSocket; made by `upgrade`."""

    def __init__(self, request: web.Request, answer: web.WebSocketResponse) -> None:
        self._request: Final = request
        self._socket: Final = answer

    @property
    def response(self) -> web.StreamResponse:
        """See `Link`."""
        return self._socket

    async def receive(self) -> bytes | str | None:
        """See `Link`; pings are answered here."""
        try:
            message = await self._socket.receive()
        except OSError as error:  # of the answer to a ping
            raise ConnectionLost(f"the client has left: {error}") from None
        if message.type in {WSMsgType.BINARY, WSMsgType.TEXT}:
            data: bytes | str = message.data
            return data
        return None

    async def send(self, *pieces: bytes) -> None:
        """See `Link`."""
        try:
            await self._socket.send_bytes(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        except OSError as error:
            raise ConnectionLost(f"the client has left: {error}") from None

    async def send_text(self, text: str) -> None:
        """Send a text message, as `send` does."""
        try:
            await self._socket.send_str(text)
        except OSError as error:
            raise ConnectionLost(f"the client has left: {error}") from None

    async def pong(self) -> None:
        """Show a sign of life that nobody has asked for.

        kubectl waits a minute for the answer to a ping, which stands behind what we do not read for the moment; any
        pong will do (RFC 6455, section 5.5.3).

        Raises:
            ConnectionLost: The client left.
        """
        try:
            await self._socket.pong()
        except OSError as error:
            raise ConnectionLost(f"the client has left: {error}") from None

    async def finish(self) -> None:
        """See `Link`: close with 1000, which kubectl takes for the end, and wait for the client's answer."""
        await self._socket.close()

    @property
    def stuck(self) -> bool:
        """See `Link`."""
        transport = self._request.transport
        return transport is not None and transport.get_write_buffer_size() > 0

    def abort(self) -> None:
        """See `Link`."""
        if (transport := self._request.transport) is not None:
            transport.abort()


async def upgrade(request: web.Request, protocol: str, closing_s: float) -> WebSocketLink:
    """Answer an upgrade to a WebSocket of a protocol, empty for none.

    Raises:
        HTTPBadRequest: The request is not such an upgrade.
        ConnectionLost: The client has left.
    """
    answer = web.WebSocketResponse(
        protocols=(protocol,) if protocol else (),
        compress=False,
        timeout=closing_s,
        max_msg_size=_MESSAGE_BYTES_MAX,
    )
    try:
        await answer.prepare(request)
    except OSError as error:
        raise ConnectionLost(f"the client has left: {error}") from None
    if (transport := request.transport) is not None:
        transport.set_write_buffer_limits(_WRITE_BYTES)
        _notice_dead_hosts(transport)
    return WebSocketLink(request, answer)


def _notice_dead_hosts(transport: asyncio.Transport) -> None:
    """Let TCP probe a silent connection."""
    connection = transport.get_extra_info("socket")
    if connection is None:
        return
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if (option := getattr(socket, name, None)) is not None:  # macOS has not all of them
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
