"""Exec and attach sessions.

Source: client-go `tools/remotecommand`, cri-streaming `pkg/streaming/remotecommand`.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from aiohttp import web

from tunnels.base import ConnectionLost
from vkprovider.labs.kubelet import wire
from vkprovider.labs.kubelet.spdy.streams import SpdySession, SpdyStream
from vkprovider.labs.kubelet.spi import Exit
from vkprovider.labs.kubelet.streams.channels import ChannelSession
from vkprovider.labs.kubelet.streams.inlets import SessionLimits
from vkprovider.labs.kubelet.streams.links import Agreement, agree, switch, upgrade
from vkprovider.labs.kubelet.streams.reading import SessionReading, Stream
from vkprovider.labs.kubelet.wire import status_json, status_text

_SPDY: Final = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
_WITHOUT_RESIZE: Final = _SPDY[2:]
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE = "stdin", "stdout", "stderr", "error", "resize"
_CHANNELS: Final = {
    _STDIN: wire.STDIN,
    _STDOUT: wire.STDOUT,
    _STDERR: wire.STDERR,
    _ERROR: wire.ERROR,
    _RESIZE: wire.RESIZE,
}


@dataclass(frozen=True, slots=True)
class Wants:
    """Which streams a client asks for."""

    tty: bool
    stdin: bool
    stdout: bool
    stderr: bool

    @property
    def streams(self) -> tuple[str, ...]:
        """Name them, in the order in which kubectl opens them."""
        asked = {
            _ERROR: True,
            _STDIN: self.stdin,
            _STDOUT: self.stdout,
            _STDERR: self.stderr,
            _RESIZE: self.tty,
        }
        return tuple(name for name, wanted in asked.items() if wanted)


class Command:
    """See `spi.RemoteCommand`; leave its context in the end, and return `response` to aiohttp.

    Args:
        wants: What the client asks for.
        session: Its session.
        streams: Of the session, by name; one that the client did not open is not there.
        protocol: What was agreed on.
    """

    def __init__(self, wants: Wants, session: SessionReading, streams: Mapping[str, Stream], protocol: str) -> None:
        self._wants: Final = wants
        self._session: Final = session
        self._streams: Final = streams
        self._protocol: Final = protocol
        self._exited = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session.why is not None:
            await self.exit(self._session.why)
        await self._session.close(in_order=False)

    @property
    def tty(self) -> bool:
        """See `RemoteCommand`."""
        return self._wants.tty

    @property
    def stdin(self) -> bool:
        """See `RemoteCommand`."""
        return self._wants.stdin

    @property
    def stdout(self) -> bool:
        """See `RemoteCommand`."""
        return self._wants.stdout

    @property
    def stderr(self) -> bool:
        """See `RemoteCommand`."""
        return self._wants.stderr

    @property
    def response(self) -> web.StreamResponse:
        """What the handler of the request returns."""
        return self._session.link.response

    async def read(self) -> bytes:
        """See `RemoteCommand`."""
        try:
            return await self._streams[_STDIN].read() if _STDIN in self._streams else b""
        except ConnectionLost:
            return b""

    async def write(self, data: bytes) -> None:
        """See `RemoteCommand`."""
        await self._write(_STDOUT, data)

    async def write_error(self, data: bytes) -> None:
        """See `RemoteCommand`."""
        await self._write(_STDERR, data)

    async def gone(self) -> None:
        """See `RemoteCommand`."""
        await self._session.gone()

    async def exit(self, status: Exit) -> None:
        """See `RemoteCommand`; a session that was ended here, because it was idle for example, says that instead."""
        if self._exited:
            return
        self._exited = True
        await self._session.end(lambda: self._tell(self._session.why or status))

    async def _write(self, name: str, data: bytes) -> None:
        if self._exited or self._session.over:
            raise ConnectionLost("the session has ended")
        if (stream := self._streams.get(name)) is not None:
            await stream.write(data)

    async def _tell(self, status: Exit) -> None:
        text = status_json(status) if wire.has_json_status(self._protocol) else status_text(status)
        if text and _ERROR in self._streams:
            await self._streams[_ERROR].write(text)
        for stream in self._streams.values():
            await stream.finish()
        await self._session.leave()


async def accept_command(request: web.Request, limits: SessionLimits) -> Command:
    """Answer an exec or attach request; if the client leaves meanwhile, the session is over from the beginning.

    Raises:
        HTTPException: The request cannot be answered so; nothing was written.
    """
    wants = _wants(request.query)
    agreed = agree(request, websocket=wire.COMMANDS, spdy=_SPDY)
    try:
        if agreed.spdy:
            return await _over_spdy(request, wants, agreed, limits)
        return await _over_channels(request, wants, agreed, limits)
    except ConnectionLost as error:
        raise web.HTTPBadRequest(text=str(error)) from None


def _wants(query: Mapping[str, str]) -> Wants:
    tty, stdin, stdout, stderr = (query.get(name) == "1" for name in ("tty", "input", "output", "error"))
    if not (stdin or stdout or stderr):
        raise web.HTTPBadRequest(text="you must specify at least 1 of stdin, stdout, stderr")
    return Wants(tty=tty, stdin=stdin, stdout=stdout, stderr=stderr and not tty)


async def _over_spdy(request: web.Request, wants: Wants, agreed: Agreement, limits: SessionLimits) -> Command:
    session = SpdySession(switch(request, agreed.protocol), limits)
    names = [name for name in wants.streams if name != _RESIZE or agreed.protocol not in _WITHOUT_RESIZE]
    streams: dict[str, Stream] = {}
    try:
        async with asyncio.timeout(limits.opening_s):
            while len(streams) < len(names) and (stream := await session.opened()) is not None:
                await _add(streams, names, stream)
    except (TimeoutError, ConnectionLost):
        await session.close(in_order=False)
    except BaseException:
        await session.close(in_order=False)
        raise
    return Command(wants, session, streams, agreed.protocol)


async def _add(streams: dict[str, Stream], names: Sequence[str], stream: SpdyStream) -> None:
    name = stream.headers.get("streamtype", "")
    if name in names and name not in streams:
        streams[name] = stream
        if name == _RESIZE:
            stream.inlet.end()  # sizes that nobody reads must not fill the session's room
        await stream.accept()
    else:
        await stream.refuse()


async def _over_channels(request: web.Request, wants: Wants, agreed: Agreement, limits: SessionLimits) -> Command:
    link = await upgrade(request, agreed.protocol, limits.closing_s)
    read = (wire.STDIN,) if wants.stdin else ()
    session = ChannelSession(link, limits, wire.codec_of(agreed.protocol), read)
    streams = {name: session.stream(_CHANNELS[name]) for name in wants.streams}
    first = next(name for name in (_STDOUT, _STDERR, _ERROR) if name in streams)
    with contextlib.suppress(ConnectionLost):
        await session.send(_CHANNELS[first], b"")  # as the reference does: the session is established
    return Command(wants, session, streams, agreed.protocol)
