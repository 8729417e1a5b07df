"""Server-sent events over real sockets: who comes back, who is slow, who is gone, and who else wants to connect."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
import uvloop
from aiohttp import web

from tests.support.tcp import deafen
from tests.support.tunnels import eventually
from vkprovider.serving import connections
from vkprovider.serving.connections import listen, runner_of
from vkprovider.serving.sse import Feed, FeedFullError

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
    """A server with one feed."""

    def __init__(self, port: int, feed: Feed) -> None:
        self.port, self.feed = port, feed
        self.clients: list[Reader] = []

    async def open(self, *headers: str, receive_bytes: int = 0) -> Reader:
        """Ask for the stream, and read the head of the answer and the first comment."""
        sock = socket.socket()
        sock.settimeout(0)
        if receive_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=1024 if receive_bytes else 1 << 20)
        writer.write("\r\n".join(["GET /feed HTTP/1.1", "Host: x", *headers, "", ""]).encode())
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

    def publish(self, *numbers: int, data: str = "{}") -> None:
        for number in numbers:
            self.feed.publish(f"e{number}", data)


@asynccontextmanager
async def served(
    *, heartbeat_s: float = 15.0, stuck_s: float = 30.0, events_max: int = 1000, clients_max: int = 100
) -> AsyncIterator[Served]:
    feed = Feed(events_max=events_max, clients_max=clients_max)

    async def stream(request: web.Request) -> web.StreamResponse:
        try:
            return await feed.serve(request, heartbeat_s=heartbeat_s, stuck_s=stuck_s)
        except FeedFullError:
            return web.Response(status=503)

    async def small(_: web.Request) -> web.Response:
        return web.Response(text="small")

    app = web.Application()
    app.router.add_get("/feed", stream)
    app.router.add_get("/small", small)
    runner = runner_of(app)
    await runner.setup()
    listener = await listen(runner, "127.0.0.1", 0)
    page = Served(listener.sockets[0].getsockname()[1], feed)
    try:
        yield page
    finally:
        for client in page.clients:
            client.close()
        feed.close()
        listener.close()
        await runner.cleanup()


async def test_client_that_comes_back_gets_what_it_missed_and_goes_on() -> None:
    async with served() as page:
        page.publish(1, 2, 3, 4)
        first = await page.open()
        assert await first.ids(4) == ["e1", "e2", "e3", "e4"]
        first.close()
        page.publish(5, 6)
        again = await page.open("Last-Event-ID: e4")
        assert await again.ids(2) == ["e5", "e6"]
        page.publish(7)
        assert await again.ids(1) == ["e7"]
        newest = await page.open("Last-Event-ID: e7")
        page.publish(8)
        assert await newest.ids(1) == await again.ids(1) == ["e8"]


@pytest.mark.parametrize("last", ["e1", "of-another-process", "ü"])
async def test_client_whose_last_event_is_unknown_begins_again(last: str) -> None:
    async with served(events_max=3) as page:
        page.publish(1, 2, 3, 4, 5)
        client = await page.open(f"Last-Event-ID: {last}")
        assert await client.event() == {"event": "reset", "data": ""}
        assert await client.ids(3) == ["e3", "e4", "e5"]


async def test_kind_and_lines_arrive() -> None:
    async with served() as page:
        client = await page.open()
        page.feed.publish("1", "a\nb\r\nc\rd", "lab")
        assert await client.event() == {"id": "1", "event": "lab", "data": "a\nb\nc\nd"}
        for id_, kind in (("a\nb", "x"), ("a\0", "x"), ("a", "x\r")):
            with pytest.raises(ValueError, match="more than a line"):
                page.feed.publish(id_, "", kind)


async def test_quiet_stream_has_a_heartbeat() -> None:
    async with served(heartbeat_s=0.05) as page:
        client = await page.open()
        assert [await client.block() for _ in range(3)] == [{"": ""}] * 3
        page.publish(1)
        assert await client.ids(1) == ["e1"]


async def test_reader_that_is_stuck_is_cut_and_others_go_on() -> None:
    async with served(stuck_s=0.5) as page:
        stuck, good = await page.open(receive_bytes=2048), await page.open()
        for number in range(400):
            page.publish(number, data=LARGE)
            assert (await good.event())["id"] == f"e{number}"
        await eventually(lambda: len(page.feed) == 1)
        page.publish(400)
        assert await good.ids(1) == ["e400"]
        await stuck.ended()
        assert len(page.feed) == 1


async def test_reader_that_falls_behind_is_told_and_costs_no_memory() -> None:
    """It reads on before it is cut: what it lacks is gone, and it hears of that."""
    async with served(events_max=5) as page:
        slow = await page.open(receive_bytes=2048)
        for number in range(200):
            page.publish(number, data=LARGE)
            await asyncio.sleep(0)
        found = [await slow.event() for _ in range(2)]
        while found[-1].get("id") != "e199":
            found.append(await slow.event())
        resets = [n for n, event in enumerate(found) if event.get("event") == "reset"]
        assert resets, "it got every event, so it was not slow"
        ids = [int(event["id"][1:]) for event in found if "id" in event]
        assert ids == sorted(set(ids))
        gaps = [n for n, event in enumerate(found[1:], 1) if "id" in event and "id" in found[n - 1]]
        assert all(int(found[n]["id"][1:]) == int(found[n - 1]["id"][1:]) + 1 for n in gaps), "a gap without a reset"


async def test_streams_leave_the_limit_of_connections_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 4)
    async with served() as page:
        clients = [await page.open() for _ in range(12)]
        for _ in range(8):
            assert (await page.small()).endswith(b"small")
        page.publish(1)
        assert [await client.ids(1) for client in clients] == [["e1"]] * 12
        assert len(page.feed) == 12


async def test_feed_has_a_limit_of_its_own() -> None:
    async with served(clients_max=1, heartbeat_s=0.05) as page:
        client = await page.open()
        reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
        writer.write(b"GET /feed HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 503 " in await reader.readuntil(b"\r\n")
        writer.close()
        client.close()
        await eventually(lambda: len(page.feed) == 0)
        (await page.open()).close()


async def test_client_that_leaves_is_noticed() -> None:
    async with served(heartbeat_s=0.1) as page:
        client = await page.open()
        assert len(page.feed) == 1
        client.close()
        await eventually(lambda: len(page.feed) == 0)


async def gone_without_a_word() -> None:
    async with served(heartbeat_s=0.2, stuck_s=1.0) as page:
        gone, stays = await page.open(), await page.open()
        deafen(gone.sock)
        await eventually(lambda: len(page.feed) == 1)
        page.publish(1)
        assert await stays.ids(1) == ["e1"]


async def test_client_that_is_gone_without_a_word_is_noticed() -> None:
    await gone_without_a_word()


def test_uvloop_notices_it_too() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(gone_without_a_word())


async def test_closed_feed_ends_its_streams() -> None:
    async with served() as page:
        clients = [await page.open() for _ in range(3)]
        page.feed.close()
        for client in clients:
            await client.ended()
        await eventually(lambda: len(page.feed) == 0)
