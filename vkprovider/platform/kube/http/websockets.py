"""A WebSocket through the API server, such as a session of `exec`: binary messages, and what it says of a refusal."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp
from yarl import URL

from vkprovider.platform.errors import Invalid, OutsideError, Unavailable
from vkprovider.platform.kube.http import answers
from vkprovider.platform.kube.http.answers import FAILURES, broken
from vkprovider.platform.kube.http.credentials import ClusterAccess

_SWITCHING: Final = 101
_MESSAGE_BYTES_MAX: Final = 1024 * 1024
_CLOSE_S_MAX: Final = 2.0
_PING_EVERY_S: Final = 20.0
"""Proxies end a connection that is silent for 30 to 60 s."""


class KubeWebSocket:
    """An open WebSocket, which waits for its reader: what nobody reads stays with the sender."""

    def __init__(self, session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Take over an open socket and its session."""
        self._session = session
        self._socket = socket
        self._pinging = asyncio.create_task(self._ping(), name="pings of a WebSocket")

    @property
    def protocol(self) -> str:
        """The subprotocol that the server has chosen; "" for none."""
        return self._socket.protocol or ""

    async def receive(self) -> bytes | None:
        """Return the next binary message; None at the end, however it came."""
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.BINARY:
                data: bytes = message.data
                return data
            if message.type is not aiohttp.WSMsgType.TEXT:
                return None

    async def send(self, data: bytes) -> None:
        """Send a binary message, and wait while the server is slow.

        Raises:
            Unavailable: The connection is lost.
        """
        try:
            await self._socket.send_bytes(data)
        except (OSError, aiohttp.ClientError) as error:
            raise Unavailable(f"the connection with the API server is lost: {error}") from None

    async def close(self) -> None:
        """Close it, and its connection; a server that goes on sending is not waited for."""
        self._pinging.cancel()
        await asyncio.wait([self._pinging])
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_S_MAX):
                    await self._socket.close()
        finally:
            await self._session.close()

    async def _ping(self) -> None:
        while not self._socket.closed:
            await asyncio.sleep(_PING_EVERY_S)
            try:
                await self._socket.ping()
            except (OSError, aiohttp.ClientError):
                return


class _HandshakeRefusedError(Exception):
    """The server answers a handshake as any other request."""

    def __init__(self, error: OutsideError) -> None:
        super().__init__(error.message)
        self.error = error


async def open_websocket(
    session: aiohttp.ClientSession,
    access: ClusterAccess,
    url: URL,
    headers: Mapping[str, str],
    protocols: Sequence[str],
) -> KubeWebSocket:
    """Open a WebSocket; the session is closed with it, also if it is refused.

    Args:
        session: For this connection alone, with `keep_refusal` among its middlewares.
        access: How the server is reached.
        url: Of the API server, `https://…`.
        headers: With the credentials.
        protocols: The subprotocols that the caller speaks, the best one first.

    Raises:
        OutsideError: The server refuses, or does not answer; the message is the server's.
    """
    what = f"GET {url.path}"
    try:
        socket = await session.ws_connect(
            url,
            protocols=protocols,
            headers=headers,
            ssl=access.tls if access.tls is not None else True,
            server_hostname=access.tls_server_name,
            proxy=access.proxy,
            max_msg_size=_MESSAGE_BYTES_MAX,
            timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S_MAX),
        )
    except _HandshakeRefusedError as refused:
        await session.close()
        raise refused.error from None
    except aiohttp.WSServerHandshakeError as error:
        await session.close()
        raise Invalid(f"{what}: no WebSocket comes about: {error.message}") from None
    except FAILURES as error:
        await session.close()
        raise broken(error, what, access.server) from error
    except BaseException:
        await session.close()
        raise
    return KubeWebSocket(session, socket)


async def keep_refusal(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a handshake; if it is refused read why, which aiohttp would drop.

    Raises:
        _HandshakeRefusedError: It is refused.
    """
    response = await handler(request)
    if response.status == _SWITCHING:
        return response
    async with response:
        body = await response.read()
    what = f"{request.method} {request.url.path}"
    raise _HandshakeRefusedError(answers.refusal(response.status, body, response.headers, what))
