"""Streams of server-sent events over real sockets: who is stuck, who is gone, and who else wants to connect."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import pytest
import uvloop
from aiohttp import web

from tests.support.tcp import deafen
from tests.support.tunnels import eventually
from vkprovider.platform.http import connections
from vkprovider.platform.http.connections import listen, runner_of
from vkprovider.platform.http.sse import EventStream, frame

SOON_S: Final = 30
LARGE: Final = "x" * 65_536


class Reader:
    """A client: what a browser's EventSource does, in a few lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.sock: socket.socket = writer.get_extra_info("socket")

    async def block(self) -> dict[str, str]:
        """Read the next event or comment; a comment has the key ""."""
        while True:
            async with asyncio.timeout(SOON_S):
                found = await self._line()
            if found == ":":
                return {"": ""}
            lines = [found]
            while found:
                found = await self._line()
                lines += [found] if found else []
            fields: dict[str, str] = {}
            for line in lines:
                name, _, value = line.partition(":")
                before = [fields[name]] if name in fields else []
                fields[name] = "\n".join([*before, value.removeprefix(" ")])
            return fields

    async def event(self) -> dict[str, str]:
        """Read the next event."""
        while "data" not in (found := await self.block()):
            pass
        return found

    async def ids(self, count: int) -> list[str]:
        return [(await self.event())["id"] for _ in range(count)]

    async def ended(self) -> None:
        """Read until the server ends the stream."""
        async with asyncio.timeout(SOON_S):
            try:
                while await self._reader.read(1 << 16):
                    pass
            except ConnectionResetError:
                pass

    def close(self) -> None:
        self._writer.close()

    async def _line(self) -> str:
        """Read a line of the chunked body, without the lines that say how long a chunk is."""
        while True:
            size = int(await self._reader.readuntil(b"\r\n"), 16) if not self._chunk else 0
            if size:
                self._chunk = await self._reader.readexactly(size + 2)
                self._chunk = self._chunk[:-2]
            head, end, self._chunk = self._chunk.partition(b"\n")
            self._kept += head
            if end:
                line, self._kept = self._kept.decode(), b""
                return line

    _chunk = b""
    _kept = b""


class Served:
    """A server whose streams all carry the same events.

    Attributes:
        events: Those that were published.
        streams: How many are open.
    """

    def __init__(self, heartbeat_s: float, stuck_s: float) -> None:
        self.port = 0
        self.events: list[bytes] = []
        self.streams = 0
        self.clients: list[Reader] = []
        self._changed = asyncio.Event()
        self._times = heartbeat_s, stuck_s

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Send all events, and those that follow."""
        heartbeat_s, stuck_s = self._times
        stream = await EventStream.begin(request, stuck_s=stuck_s)
        self.streams += 1
        sent = 0
        with suppress(ConnectionResetError):
            while True:
                changed = self._changed
                for event in self.events[sent:]:
                    await stream.send(event)
                    sent += 1
                if sent == len(self.events):
                    await stream.wait(changed, heartbeat_s)
        self.streams -= 1
        return stream.answer

    async def open(self, *headers: str, receive_bytes: int = 0) -> Reader:
        """Ask for the stream, and read the head of the answer and the first comment."""
        sock = socket.socket()
        sock.settimeout(0)
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=1024 if receive_bytes else 1 << 20)
        writer.write("\r\n".join(["GET /stream HTTP/1.1", "Host: x", *headers, "", ""]).encode())
        async with asyncio.timeout(SOON_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert head.startswith("HTTP/1.1 200 OK\r\n")
        assert "Content-Type: text/event-stream\r\n" in head
        found = Reader(reader, writer)
        self.clients.append(found)
        assert await found.block() == {"": ""}
        return found

    async def small(self) -> bytes:
        """Ask for something else."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"GET /small HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(SOON_S):
            found = await reader.read()
        writer.close()
        return found

    def publish(self, id_: str, data: str = "{}", kind: str = "message") -> None:
        self.events.append(frame(id_, data, kind))
        self._changed.set()
        self._changed = asyncio.Event()


@asynccontextmanager
async def served(*, heartbeat_s: float = 15.0, stuck_s: float = 30.0) -> AsyncIterator[Served]:
    page = Served(heartbeat_s, stuck_s)

    async def small(_: web.Request) -> web.Response:
        return web.Response(text="small")

    app = web.Application()
    app.router.add_get("/stream", page.serve)
    app.router.add_get("/small", small)
    runner = runner_of(app, shutdown_s=0.1)
    await runner.setup()
    listener = await listen(runner, "127.0.0.1", 0)
    page.port = listener.sockets[0].getsockname()[1]
    try:
        yield page
    finally:
        for client in page.clients:
            client.close()
        listener.close()
        await runner.cleanup()


async def test_kind_and_lines_arrive() -> None:
    async with served() as page:
        client = await page.open()
        page.publish("1", "a\nb\r\nc\rd", "lab")
        assert await client.event() == {"id": "1", "event": "lab", "data": "a\nb\nc\nd"}


async def test_quiet_stream_has_a_heartbeat() -> None:
    async with served(heartbeat_s=0.05) as page:
        client = await page.open()
        assert [await client.block() for _ in range(3)] == [{"": ""}] * 3
        page.publish("e1")
        assert await client.ids(1) == ["e1"]


async def test_reader_that_is_stuck_is_cut_and_others_go_on() -> None:
    async with served(stuck_s=0.5) as page:
        stuck, good = await page.open(receive_bytes=2048), await page.open()
        for number in range(400):
            page.publish(f"e{number}", LARGE)
            assert (await good.event())["id"] == f"e{number}"
        await eventually(lambda: page.streams == 1)
        page.publish("e400")
        assert await good.ids(1) == ["e400"]
        await stuck.ended()


async def test_streams_leave_the_limit_of_connections_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 4)
    async with served() as page:
        clients = [await page.open() for _ in range(12)]
        for _ in range(8):
            assert (await page.small()).endswith(b"small")
        page.publish("e1")
        assert [await client.ids(1) for client in clients] == [["e1"]] * 12
        assert page.streams == 12


async def test_client_that_leaves_is_noticed() -> None:
    async with served(heartbeat_s=0.1) as page:
        client = await page.open()
        assert page.streams == 1
        client.close()
        await eventually(lambda: page.streams == 0)


async def gone_without_a_word() -> None:
    async with served(heartbeat_s=0.2, stuck_s=1.0) as page:
        gone, stays = await page.open(), await page.open()
        deafen(gone.sock)
        await eventually(lambda: page.streams == 1)
        page.publish("e1")
        assert await stays.ids(1) == ["e1"]


async def test_client_that_is_gone_without_a_word_is_noticed() -> None:
    await gone_without_a_word()


def test_uvloop_notices_it_too() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(gone_without_a_word())
