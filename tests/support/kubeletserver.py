"""A kubelet API whose sessions are small programs of the test: `cat`, `print 3000000`, `exit 3`, …"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from aiohttp import web

from tests.support.mosquitto import free_port
from tunnels.base import ConnectionLost
from vkprovider.labs.kubelet.spi import Exit, ForwardedConnection, RemoteCommand
from vkprovider.labs.kubelet.streams.commands import accept_command
from vkprovider.labs.kubelet.streams.forwards import accept_forward
from vkprovider.labs.kubelet.streams.inlets import SessionLimits
from vkprovider.platform.http.tls import self_signed

Program = Callable[[RemoteCommand, Sequence[str]], Awaitable[Exit]]


async def _exit(_command: RemoteCommand, words: Sequence[str]) -> Exit:
    return Exit(int(words[0]))


async def _cat(command: RemoteCommand, _words: Sequence[str]) -> Exit:
    while data := await command.read():
        await command.write(data)
    return Exit(0)


async def _print(command: RemoteCommand, words: Sequence[str]) -> Exit:
    """Print so many bytes, in uneven pieces."""
    left = int(words[0])
    while left:
        piece = min(left, 70_001)
        await command.write(bytes(range(256)) * (piece // 256) + bytes(piece % 256))
        left -= piece
    return Exit(0)


async def _both(command: RemoteCommand, _words: Sequence[str]) -> Exit:
    await command.write(b"to stdout\n")
    await command.write_error(b"to stderr\n")
    return Exit(7)


async def _moved(_command: RemoteCommand, _words: Sequence[str]) -> Exit:
    return Exit(1, "this worker moved to another replica: run the command again", "Moved")


async def _count(command: RemoteCommand, _words: Sequence[str]) -> Exit:
    """Print how many bytes were typed."""
    count = 0
    while data := await command.read():
        count += len(data)
    await command.write(str(count).encode())
    return Exit(0)


async def _late(command: RemoteCommand, words: Sequence[str]) -> Exit:
    """Count as `count` does, after so many seconds in which nothing is read."""
    await asyncio.sleep(float(words[0]))
    return await _count(command, words)


async def _keys(command: RemoteCommand, _words: Sequence[str]) -> Exit:
    """Say that it is ready, then print what is typed, until `q` is."""
    await command.write(b"ready\r\n")
    while data := await command.read():
        await command.write(data)
        if b"q" in data:
            return Exit(0)
    return Exit(1)


async def _wait(command: RemoteCommand, _words: Sequence[str]) -> Exit:
    """Read nothing, write nothing, until the client has left."""
    await command.gone()
    return Exit(0)


async def _flood(command: RemoteCommand, _words: Sequence[str]) -> Exit:
    """Write until the client has left."""
    while True:
        await command.write(bytes(32768))


PROGRAMS: Final[Mapping[str, Program]] = {
    "exit": _exit,
    "cat": _cat,
    "print": _print,
    "both": _both,
    "moved": _moved,
    "count": _count,
    "late": _late,
    "keys": _keys,
    "wait": _wait,
    "flood": _flood,
}


class KubeletServer:
    """The server, in the test's loop.

    Args:
        limits: Of each session.
        tls: Of the server; None: plain HTTP.
        port: Where it listens on 127.0.0.1; 0: any.
    """

    def __init__(self, limits: SessionLimits, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.limits = limits
        self.port = port or free_port()
        self.heard: list[tuple[str, str, str]] = []
        """Of each request: path, `Upgrade`, and the protocols that the client offers."""
        self.sessions = 0
        """How many are open."""
        self._tls = tls

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve."""
        app = web.Application()
        for method in ("GET", "POST"):
            app.router.add_route(method, "/exec/{namespace}/{pod}/{container}", self._command)
            app.router.add_route(method, "/attach/{namespace}/{pod}/{container}", self._command)
            app.router.add_route(method, "/portForward/{namespace}/{pod}", self._forward)
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._log)
        runner = web.AppRunner(app, shutdown_timeout=1.0, access_log=None, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=self._tls).start()
        try:
            yield
        finally:
            await runner.cleanup()

    def _hear(self, request: web.Request) -> None:
        offered = request.headers.getall(
            "Sec-WebSocket-Protocol", request.headers.getall("X-Stream-Protocol-Version", ())
        )
        self.heard.append((request.path, request.headers.get("Upgrade", ""), ", ".join(offered)))

    async def _command(self, request: web.Request) -> web.StreamResponse:
        self._hear(request)
        words = request.query.getall("command", ["cat"])
        async with await accept_command(request, self.limits) as command:
            with self._counted(), contextlib.suppress(ConnectionLost):
                await command.exit(await PROGRAMS[words[0]](command, words[1:]))
        return command.response

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        self._hear(request)
        async with await accept_forward(request, self.limits) as forward, asyncio.TaskGroup() as relays:
            with self._counted():
                while (connection := await forward.accept()) is not None:
                    relays.create_task(relay(connection))
        return forward.response

    async def _log(self, request: web.Request) -> web.Response:
        self._hear(request)
        answer = web.Response(text=f"log of {request.match_info['container']}\n")
        answer.force_close()  # a connection that is kept would end with the test's loop
        return answer

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        self.sessions += 1
        try:
            yield
        finally:
            self.sessions -= 1


async def relay(connection: ForwardedConnection) -> None:
    """Connect a forwarded connection with the same port of this machine."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", connection.port, limit=128 * 1024)
    except OSError:
        await connection.close()
        return

    async def there() -> None:
        while data := await connection.read():
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    async def back() -> None:
        while data := await reader.read(128 * 1024):
            await connection.write(data)
        await connection.half_close()

    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(there())
            both.create_task(back())
    except* (ConnectionLost, OSError):
        pass
    finally:
        await connection.close()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def serving_tls(folder: Path) -> ssl.SSLContext:
    """Return the TLS settings of a server with a certificate that nobody has signed."""
    folder.mkdir(exist_ok=True)
    file = folder / "kubelet.pem"
    file.write_bytes(self_signed(["127.0.0.1"]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
