"""Streams of bytes over connections of their own: WebSockets of a server, and TCP ports of its host."""

import asyncio
import codecs
import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from tunnels.base import AllowList, ByteChannel, ConnectFailed, ConnectionLost, RequestRefused
from tunnels.direct import Tls, system_tls, translated, why
from tunnels.outgoing import Guard, guarded_by, open_session, proxy_of

PORTS: Final = "/tcp/"
"""The prefix of the TCP ports of the server's host: `/tcp/5041`. Any other path is that of a WebSocket."""
READ_BYTES: Final = 64 * 2**10
HEARTBEAT_S: Final = 30.0
"""A WebSocket that has been quiet for this long is asked whether the other side is there."""


class DirectStreams:
    """A `StreamOpener` over connections to the server itself.

    Args:
        base_url: `https://host[:port]` or `http://host[:port]`, without a path.
        tls: How the server's certificate is verified, where the URL is one of HTTPS.
        allow: The paths that may be opened, with the method `OPEN`.
        may_dial: Returns whether a port of the host may be connected to.
        texts: Paths of WebSockets that want what is written as text.
        guard: Called in the same step of the event loop in which the connection is asked for.
    """

    def __init__(
        self,
        base_url: str,
        *,
        tls: Tls = system_tls,
        allow: AllowList,
        may_dial: Callable[[int], bool],
        texts: frozenset[str] = frozenset(),
        guard: Guard | None = None,
    ) -> None:
        self._base = base_url.rstrip("/")
        parts = urlsplit(self._base)
        self._host = parts.hostname or ""
        self._where = f"{self._host}:{URL(self._base).port}"
        self._tls = tls if parts.scheme == "https" else None
        self._allow = allow
        self._may_dial = may_dial
        self._texts = texts
        self._guard = guard
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def open_stream(
        self, path: str, *, params: Mapping[str, str] | None = None, deadline_s: float
    ) -> ByteChannel:
        """Open a stream; see `StreamOpener`.

        Raises:
            RequestRefused: The allow-list does not name it, or the port may not be dialled.
            ConnectFailed: No connection came about.
            CertificateInvalid: The certificate cannot be trusted.
            ConnectionLost: The connection ended while it was being opened.
            DeadlineExceeded: It was not open within `deadline_s`.
        """
        self._allow.check("OPEN", path)
        if self._closed:
            raise ConnectFailed(f"{self._where}: the transport is closed")
        if path.startswith(PORTS):
            return await self._dial(path.removeprefix(PORTS), deadline_s)
        return await self._connect(path, params or {}, deadline_s)

    async def close(self) -> None:
        """Close all WebSockets; connections to ports are their readers' to close."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _dial(self, text: str, deadline_s: float) -> ByteChannel:
        if not (text.isascii() and text.isdecimal() and self._may_dial(int(text))):
            raise RequestRefused(f"port {text} of {self._host} is none that may be dialled")
        where = f"{self._host}:{text}"
        if self._guard is not None:
            self._guard()
        try:
            with translated(where, deadline_s):
                async with asyncio.timeout(deadline_s):
                    reader, writer = await asyncio.open_connection(self._host, int(text))
        except ConnectionLost as error:
            cause = error.__cause__
            raise ConnectFailed(f"{where}: {why(cause) if isinstance(cause, OSError) else cause}") from cause
        return TcpChannel(where, reader, writer)

    async def _connect(self, path: str, params: Mapping[str, str], deadline_s: float) -> ByteChannel:
        session = self._open_session()
        try:
            with translated(self._where, deadline_s), guarded_by(self._guard):
                async with asyncio.timeout(deadline_s):
                    socket = await session.ws_connect(
                        URL(self._base + path, encoded=True).with_query(params),
                        ssl=self._tls() if self._tls is not None else True,
                        proxy=proxy_of(self._base, os.environ),
                        heartbeat=HEARTBEAT_S,
                        compress=0,
                    )
        except ConnectionLost as error:
            if isinstance(error.__cause__, aiohttp.WSServerHandshakeError):
                raise ConnectFailed(f"{self._where}: {path} answered {error.__cause__.status}") from error
            raise
        return WebSocketChannel(self._where, socket, text=path in self._texts)

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_session(aiohttp.TCPConnector(limit=0))
        return self._session


class TcpChannel:
    """A `ByteChannel` over a TCP connection."""

    def __init__(self, where: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._where = where
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        """See `ByteChannel`."""
        try:
            return await self._reader.read(READ_BYTES)
        except OSError as error:
            raise ConnectionLost(f"{self._where}: {why(error)}") from error

    async def write(self, data: bytes) -> None:
        """See `ByteChannel`."""
        if self._writer.is_closing():
            raise ConnectionLost(f"{self._where}: the connection is closed")
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise ConnectionLost(f"{self._where}: {why(error)}") from error

    async def end(self) -> None:
        """See `ByteChannel`."""
        with contextlib.suppress(OSError):
            if not self._writer.is_closing():
                self._writer.write_eof()

    async def close(self) -> None:
        """See `ByteChannel`."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class WebSocketChannel:
    """A `ByteChannel` over a WebSocket, which cannot be ended in one direction.

    Args:
        where: Host and port, for messages.
        socket: The WebSocket.
        text: Whether the server wants text; bytes that are not UTF-8 arrive as U+FFFD then.
    """

    def __init__(self, where: str, socket: aiohttp.ClientWebSocketResponse, *, text: bool) -> None:
        self._where = where
        self._socket = socket
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace") if text else None

    async def read(self) -> bytes:
        """See `ByteChannel`."""
        while True:
            message = await self._socket.receive()
            match message.type:
                case aiohttp.WSMsgType.BINARY:
                    data = bytes(message.data)
                case aiohttp.WSMsgType.TEXT:
                    data = str(message.data).encode()
                case aiohttp.WSMsgType.ERROR:
                    raise ConnectionLost(f"{self._where}: {message.data}")
                case _:
                    if self._socket.close_code == aiohttp.WSCloseCode.ABNORMAL_CLOSURE:
                        raise ConnectionLost(f"{self._where}: the connection broke")
                    return b""
            if data:
                return data

    async def write(self, data: bytes) -> None:
        """See `ByteChannel`."""
        try:
            if self._decoder is None:
                await self._socket.send_bytes(data)
            elif text := self._decoder.decode(data):
                await self._socket.send_str(text)
        except (OSError, aiohttp.ClientError) as error:
            raise ConnectionLost(f"{self._where}: the connection is closed") from error

    async def end(self) -> None:
        """Do nothing; see `ByteChannel`."""

    async def close(self) -> None:
        """See `ByteChannel`."""
        await self._socket.close()
