"""Bytes through a port-forward session beside a plain relay of TCP: programs for processes of their own, and a client.

`python -m bench.kubelet.forwarding target` is what is dialled, `python -m bench.kubelet.forwarding relays` has both
relays; each prints its ports.
"""

import asyncio
import contextlib
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import uvloop
from aiohttp import web

from tunnels.base import ConnectionLost
from vkprovider.labs.kubelet.spdy import frames
from vkprovider.labs.kubelet.spi import ForwardedConnection
from vkprovider.labs.kubelet.streams.forwards import accept_forward
from vkprovider.labs.kubelet.streams.inlets import SessionLimits
from vkprovider.labs.kubelet.wire import TUNNEL
from vkprovider.platform.http.tls import self_signed

CHUNK: Final = 64 * 1024
FRAME: Final = 32 * 1024
"""What kubectl reads from a local connection at a time."""
PATH: Final = "/portForward/n/p"


async def target() -> None:
    """Serve one order for each connection: `get N` is answered with N bytes, `put N` after N bytes with a byte."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        order, count = (await reader.readline()).decode().split()
        left = int(count)
        if order == "get":
            chunk = bytes(CHUNK)
            while left > 0:
                writer.write(chunk[:left])
                await writer.drain()
                left -= CHUNK
        else:
            while left > 0:
                left -= len(await reader.read(CHUNK))
            writer.write(b".")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=CHUNK)
    await _tell(server)


async def relays() -> None:
    """Relay to the port that stdin names: plainly, and as a port-forward; each without TLS and with it."""
    to = int(sys.stdin.readline())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tls.pem"
        file.write_bytes(self_signed(["127.0.0.1"]))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(file)

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", to)
        await asyncio.gather(_copy(reader.read, back), _copy(there.read, writer))

    async def forward(request: web.Request) -> web.StreamResponse:
        async with await accept_forward(request, SessionLimits()) as session, asyncio.TaskGroup() as tasks:
            while (connection := await session.accept()) is not None:
                tasks.create_task(_relay(connection, to))
        return session.response

    app = web.Application()
    app.router.add_route("*", PATH, forward)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    assert runner.server is not None
    loop = asyncio.get_running_loop()
    await _tell(
        await asyncio.start_server(plain, "127.0.0.1", 0),
        await asyncio.start_server(plain, "127.0.0.1", 0, ssl=tls),
        await loop.create_server(runner.server, "127.0.0.1", 0),
        await loop.create_server(runner.server, "127.0.0.1", 0, ssl=tls),
    )


async def _relay(connection: ForwardedConnection, to: int) -> None:
    """Serve a forwarded connection as the kubelet API does."""
    there, back = await asyncio.open_connection("127.0.0.1", to)

    async def answers() -> None:
        while data := await there.read(CHUNK):
            await connection.write(data)
        await connection.half_close()

    with contextlib.suppress(ConnectionLost):
        await asyncio.gather(_copy(lambda _: connection.read(), back), answers())
    await connection.close()


async def _copy(read: Callable[[int], Awaitable[bytes]], writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionLost, OSError):
        while data := await read(CHUNK):
            writer.write(data)
            await writer.drain()
        writer.close()


async def _tell(*servers: asyncio.Server) -> None:
    """Print ports, and serve until the process ends."""
    print(*(server.sockets[0].getsockname()[1] for server in servers), flush=True)
    await asyncio.Event().wait()


@asynccontextmanager
async def program(name: str, said: str = "") -> AsyncIterator[tuple[int, ...]]:
    """Run one of the programs; yields its ports."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", __name__, name, stdin=pipe, stdout=pipe)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{said}\n".encode())
        yield tuple(map(int, (await process.stdout.readline()).split()))
    finally:
        process.kill()
        await process.wait()


async def time_plain(port: int, order: str, count: int, tls: ssl.SSLContext | None) -> float:
    """Return the seconds that an order takes through the plain relay."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, limit=CHUNK)
    began = time.perf_counter()
    writer.write(f"{order} {count}\n".encode())
    if order == "get":
        left = count
        while left:
            left -= len(await reader.read(CHUNK))
    else:
        chunk = bytes(FRAME)
        for _ in range(count // FRAME):
            writer.write(chunk)
            await writer.drain()
        assert await reader.read(1) == b"."
    took_s = time.perf_counter() - began
    writer.transport.abort()
    return took_s


async def time_forward(port: int, order: str, count: int, tls: ssl.SSLContext | None, *, websocket: bool) -> float:
    """Return the seconds that an order takes through a port-forward session."""
    async with (_by_websocket if websocket else _by_spdy)(port, tls) as client:
        await client.connect()
        began = time.perf_counter()
        await client.send(f"{order} {count}\n".encode())
        if order == "put":
            chunk = bytes(FRAME)
            for _ in range(count // FRAME):
                await client.send(chunk)
        assert await client.receive() == (count if order == "get" else 1)
        return time.perf_counter() - began


class _Client:
    """A client of one forwarded connection, which writes frames as kubectl does.

    Args:
        read: Returns the next bytes.
        write: Sends bytes.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], Awaitable[None]]) -> None:
        self._read = read
        self._write = write
        self._encoder = frames.Encoder()
        self._decoder = frames.FrameDecoder()

    async def connect(self) -> None:
        """Open both streams, and wait until they are accepted."""
        for stream, kind in ((1, "error"), (3, "data")):
            headers = {"streamtype": kind, "port": "1", "requestid": "0"}
            await self._write(self._encoder.syn_stream(stream, headers))
        replies = 0
        while replies < 2:
            replies += len(self._decoder.feed(await self._read()))

    async def send(self, data: bytes) -> None:
        """Send bytes in one frame."""
        await self._write(frames.data_head(3, len(data)) + data)

    async def receive(self) -> int:
        """Count the bytes until the end."""
        count = 0
        while True:
            for frame in self._decoder.feed(await self._read()):
                if isinstance(frame, frames.Data):
                    count += len(frame.data)
                    if frame.fin and frame.stream == 3:
                        return count


@asynccontextmanager
async def _by_spdy(port: int, tls: ssl.SSLContext | None) -> AsyncIterator[_Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, limit=CHUNK)
    lines = ["Host: x", "Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: portforward.k8s.io"]
    writer.write("\r\n".join([f"POST {PATH} HTTP/1.1", *lines, "Content-Length: 0", "", ""]).encode())
    await reader.readuntil(b"\r\n\r\n")

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    yield _Client(lambda: reader.read(CHUNK), write)
    writer.transport.abort()


@asynccontextmanager
async def _by_websocket(port: int, tls: ssl.SSLContext | None) -> AsyncIterator[_Client]:
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}{PATH}"
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(url, protocols=(TUNNEL,), ssl=tls or True, max_msg_size=0) as socket,
    ):
        yield _Client(socket.receive_bytes, socket.send_bytes)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as main:
        main.run({"target": target, "relays": relays}[sys.argv[1]]())
