"""A client of SPDY, over a raw connection or through a WebSocket, as kubectl is one."""

import asyncio
import contextlib
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from vkprovider.labs.kubelet.spdy import frames
from vkprovider.labs.kubelet.wire import TUNNEL

PATIENCE_S: Final = 60.0


class Refused(Exception):  # noqa: N818 (reads well in `pytest.raises`)
    """The server answered with another status than 101."""

    def __init__(self, status: int, head: str) -> None:
        super().__init__(f"{status}: {head}")
        self.status = status
        self.head = head


class SpdyClient:
    """The streams of a client.

    Args:
        read: Returns the next bytes; none at the end.
        write: Sends bytes.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], Awaitable[None]]) -> None:
        self.encoder = frames.Encoder()
        self.received: defaultdict[int, bytearray] = defaultdict(bytearray)
        self.replied: set[int] = set()
        self.finished: set[int] = set()
        self.resets: dict[int, int] = {}
        self.pongs: list[int] = []
        self.away: frames.GoAway | None = None
        self.ended = False
        self._next = 1
        self._read = read
        self.write = write
        self._changed = asyncio.Event()
        self._may_read = asyncio.Event()
        self._may_read.set()

    def hold(self) -> None:
        """Read nothing more for the moment."""
        self._may_read.clear()

    def go_on(self) -> None:
        """Read again."""
        self._may_read.set()

    async def run(self) -> None:
        """Read until the server closes."""
        decoder = frames.FrameDecoder()
        with contextlib.suppress(OSError):
            while data := await self._read():
                for frame in decoder.feed(data):
                    self._note(frame)
                self._changed.set()
                await self._may_read.wait()
        self.ended = True
        self._changed.set()

    def _note(self, frame: frames.Frame) -> None:
        match frame:
            case frames.Data(stream, data, fin):
                self.received[stream] += data
                if fin:
                    self.finished.add(stream)
            case frames.SynReply(stream):
                self.replied.add(stream)
            case frames.RstStream(stream, status):
                self.resets[stream] = status
            case frames.Ping(number):
                self.pongs.append(number)
            case frames.GoAway():
                self.away = frame
            case frames.SynStream():
                raise AssertionError("a server opens no stream")

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                assert not self.ended, f"the server closed; received {dict(self.received)}, {self.resets}"
                self._changed.clear()
                await self._changed.wait()

    async def until_closed(self) -> None:
        """Wait until the server has closed the connection."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.ended:
                self._changed.clear()
                await self._changed.wait()

    async def open(self, **headers: str) -> int:
        """Open a stream, and wait until it is accepted; return its number."""
        number = await self.ask(**headers)
        await self.until(lambda: number in self.replied)
        return number

    async def ask(self, **headers: str) -> int:
        """Open a stream."""
        number, self._next = self._next, self._next + 2
        await self.write(self.encoder.syn_stream(number, headers))
        return number

    async def connect(self, port: int, request: int = 0) -> tuple[int, int]:
        """Open a forwarded connection as kubectl does; return the streams of its bytes and of its error."""
        error = await self.open(streamtype="error", port=str(port), requestid=str(request))
        await self.send(error, b"", fin=True)
        return await self.open(streamtype="data", port=str(port), requestid=str(request)), error

    async def send(self, stream: int, data: bytes, *, fin: bool = False) -> None:
        """Send bytes."""
        await self.write(frames.data_head(stream, len(data), fin=fin) + data)


@contextlib.asynccontextmanager
async def raw(
    url: str, protocols: Sequence[str], *, upgrade: str = "SPDY/3.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[SpdyClient]:
    """Connect as old clients do.

    Raises:
        Refused: The server does not upgrade.
    """
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=tls)
    lines = [f"POST {parts.path}?{parts.query} HTTP/1.1", "Host: x", "Connection: Upgrade", f"Upgrade: {upgrade}"]
    lines += [f"X-Stream-Protocol-Version: {protocol}" for protocol in protocols]
    writer.write("\r\n".join([*lines, "Content-Length: 0", "", ""]).encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    status = int(head.split()[1])
    if status != 101:
        writer.close()
        raise Refused(status, head)

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    try:
        async with _reading(SpdyClient(lambda: reader.read(65536), write)) as client:
            yield client
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@contextlib.asynccontextmanager
async def tunnelled(url: str, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[SpdyClient]:
    """Connect through a WebSocket."""
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(url, protocols=(TUNNEL,), ssl=tls or True, autoping=True) as socket,
    ):
        assert socket.protocol == TUNNEL

        async def read() -> bytes:
            message = await socket.receive()
            return message.data if message.type is aiohttp.WSMsgType.BINARY else b""

        async with _reading(SpdyClient(read, socket.send_bytes)) as client:
            yield client


@contextlib.asynccontextmanager
async def _reading(client: SpdyClient) -> AsyncIterator[SpdyClient]:
    reading = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
