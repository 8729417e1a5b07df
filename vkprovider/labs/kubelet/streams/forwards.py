"""Port-forward sessions.

Source: client-go `tools/portforward`, cri-streaming `pkg/streaming/portforward`.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections import deque
from typing import Final, Self

from aiohttp import web

from tunnels.base import ConnectionLost
from vkprovider.labs.kubelet import wire
from vkprovider.labs.kubelet.spdy.session import Pairs, parse_ports
from vkprovider.labs.kubelet.spdy.streams import SpdySession, SpdyStream
from vkprovider.labs.kubelet.spi import ForwardedConnection
from vkprovider.labs.kubelet.streams.channels import ChannelSession
from vkprovider.labs.kubelet.streams.inlets import SessionLimits
from vkprovider.labs.kubelet.streams.links import agree, switch, upgrade
from vkprovider.labs.kubelet.streams.reading import SessionReading, Stream
from vkprovider.labs.kubelet.wire import ProtocolError

_SPDY: Final = ("portforward.k8s.io",)
_WEBSOCKET: Final = (wire.TUNNEL, *wire.FORWARDS)


class PortConnection:
    """See `spi.ForwardedConnection`.

    Args:
        port: The port that the client wants.
        session: Its session.
        data: The stream of its bytes.
        error: The stream of its error, which kubectl waits for in the end.
    """

    def __init__(self, port: int, session: SessionReading, data: Stream, error: Stream) -> None:
        self._port: Final = port
        self._session: Final = session
        self._data: Final = data
        self._error: Final = error
        self._closed = asyncio.Event()

    @property
    def port(self) -> int:
        """See `ForwardedConnection`."""
        return self._port

    async def read(self) -> bytes:
        """See `ForwardedConnection`."""
        return await self._data.read()

    async def write(self, data: bytes) -> None:
        """See `ForwardedConnection`."""
        if self._session.over:
            raise ConnectionLost("the session has ended")
        await self._data.write(data)

    async def half_close(self) -> None:
        """See `ForwardedConnection`."""
        with contextlib.suppress(ConnectionLost):
            await self._data.finish()
            await self._error.finish()

    async def fail(self, message: str) -> None:
        """See `ForwardedConnection`."""
        with contextlib.suppress(ConnectionLost):
            await self._error.write(message.encode())
        await self.close()

    async def close(self) -> None:
        """See `ForwardedConnection`."""
        self._closed.set()
        await self.half_close()
        with contextlib.suppress(ConnectionLost):
            await self._data.drop()
            await self._error.drop()

    async def closed(self) -> None:
        """Return when it was closed here."""
        await self._closed.wait()


class PortForward(ABC):
    """See `spi.Forward`; leave its context in the end, and return `response` to aiohttp."""

    def __init__(self, session: SessionReading) -> None:
        self._session: Final = session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.end()
        else:
            await self._session.close(in_order=False)

    @property
    def response(self) -> web.StreamResponse:
        """What the handler of the request returns."""
        return self._session.link.response

    @abstractmethod
    async def accept(self) -> ForwardedConnection | None:
        """See `Forward`."""

    async def end(self) -> None:
        """End the session: kubectl says that the connection to the pod is lost."""
        await self._session.end(self._session.leave)


class _SpdyForward(PortForward):
    """Connections are pairs of streams of SPDY."""

    def __init__(self, session: SpdySession) -> None:
        super().__init__(session)
        self._spdy: Final = session
        self._pairs: Final = Pairs()
        self._waiting: dict[int, SpdyStream] = {}

    async def accept(self) -> ForwardedConnection | None:
        """See `Forward`."""
        with contextlib.suppress(ConnectionLost):
            while (stream := await self._spdy.opened()) is not None:
                if (connection := await self._add(stream)) is not None:
                    return connection
        return None

    async def _add(self, stream: SpdyStream) -> PortConnection | None:
        now_s = asyncio.get_running_loop().time()
        for late in self._pairs.expire(now_s):
            await self._waiting.pop(late).drop()
        try:
            pair = self._pairs.add(stream.number, stream.headers, now_s)
        except ProtocolError:
            await stream.refuse()
            return None
        self._waiting[stream.number] = stream
        await stream.accept()
        if pair is None:
            return None
        data, error = self._waiting.pop(pair.data), self._waiting.pop(pair.error)
        return PortConnection(pair.port, self._spdy, data, error)


class _ChannelForward(PortForward):
    """Each port has one connection, from the beginning; the session ends with the last of them."""

    def __init__(self, session: ChannelSession, ports: tuple[int, ...]) -> None:
        super().__init__(session)
        self._connections: Final = [
            PortConnection(port, session, session.stream(2 * number), session.stream(2 * number + 1))
            for number, port in enumerate(ports)
        ]
        self._new: Final = deque(self._connections)

    async def accept(self) -> ForwardedConnection | None:
        """See `Forward`."""
        if self._new:
            return self._new.popleft()
        for connection in self._connections:
            await connection.closed()
        return None


async def accept_forward(request: web.Request, limits: SessionLimits) -> PortForward:
    """Answer a port-forward request.

    Raises:
        HTTPException: The request cannot be answered so; nothing was written.
    """
    agreed = agree(request, websocket=_WEBSOCKET, spdy=_SPDY)
    try:
        if agreed.spdy:
            return _SpdyForward(SpdySession(switch(request, agreed.protocol), limits))
        if agreed.protocol == wire.TUNNEL:
            return _SpdyForward(SpdySession(await upgrade(request, agreed.protocol, limits.closing_s), limits))
        return await _over_channels(request, agreed.protocol, limits)
    except ConnectionLost as error:
        raise web.HTTPBadRequest(text=str(error)) from None


async def _over_channels(request: web.Request, protocol: str, limits: SessionLimits) -> PortForward:
    try:
        ports = parse_ports(request.query.getall("port", ()))
    except ProtocolError as error:
        raise web.HTTPBadRequest(text=f"query parameter port: {error}") from None
    link = await upgrade(request, protocol, limits.closing_s)
    session = ChannelSession(link, limits, wire.codec_of(protocol), range(0, 2 * len(ports), 2))
    with contextlib.suppress(ConnectionLost):
        for number, port in enumerate(ports):
            for channel in (2 * number, 2 * number + 1):
                await session.send(channel, port.to_bytes(2, "little"))
    return _ChannelForward(session, ports)
