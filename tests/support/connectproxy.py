"""An HTTP proxy of the test's own loop: `CONNECT`, and requests in absolute form. It resolves names of its own."""

import asyncio
import base64
import contextlib
from collections.abc import Awaitable, Mapping
from typing import Any, Self


class ConnectProxy:
    """A proxy on 127.0.0.1.

    Attributes:
        url: Where it listens.
        asked: `METHOD target` of each connection, in order.
        free: While it is not set, nobody is answered.
        refusal: The status that everybody is answered with instead of a connection; 0 for none.
    """

    def __init__(self, names: Mapping[str, tuple[str, int]] | None = None, *, user: str = "") -> None:
        """Know addresses by name, beside those of DNS; with `user` (`name:password`) serve nobody else."""
        self._names = names or {}
        self._user = user
        self._tasks: set[asyncio.Task[Any]] = set()
        self.asked: list[str] = []
        self.free = asyncio.Event()
        self.free.set()
        self.refusal = 0
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection."""
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            try:
                await self._relay(reader, writer)
            finally:
                writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        self.asked.append(f"{method} {target}")
        await self.free.wait()
        known = f"basic {base64.b64encode(self._user.encode()).decode()}"
        status = self.refusal or (407 if self._user and known != _login(head) else 0)
        if status:
            writer.write(f"HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\n\r\n".encode())
            return await writer.drain()
        authority = target if method == "CONNECT" else target.removeprefix("http://").partition("/")[0]
        host, _, port = authority.rpartition(":")
        above, to_server = await asyncio.open_connection(*self._names.get(host, (host.strip("[]"), int(port))))
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                to_server.write(head)
            await run_until_one_ends(_pump(reader, to_server), _pump(above, writer))
        finally:
            to_server.transport.abort()
        return None


def _login(head: bytes) -> str:
    """Return what a request's head says in `Proxy-Authorization`, the scheme in lower case."""
    for line in head.decode().split("\r\n"):
        name, _, value = line.partition(": ")
        if name.lower() == "proxy-authorization":
            scheme, _, rest = value.partition(" ")
            return f"{scheme.lower()} {rest}"
    return ""


async def run_until_one_ends(*pumps: Awaitable[None]) -> None:
    """Run until one direction ends."""
    tasks = [asyncio.ensure_future(pump) for pump in pumps]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(1 << 16):
        sink.write(data)
        await sink.drain()
