"""Limits of the page's connections: half requests, crowds, long heads, answers that are not read."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop
from aiohttp import web

from tests.support.mosquitto import free_port
from vkprovider.platform.http import connections
from vkprovider.platform.http.connections import listen, runner_of, unless_left

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
WHOLE = b"GET /small HTTP/1.1\r\nHost: x\r\n\r\n"


async def small(_: web.Request) -> web.Response:
    return web.Response(text="small")


async def large(_: web.Request) -> web.Response:
    return web.Response(body=b"x" * 50_000_000)


@asynccontextmanager
async def served(more: Handler = small) -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_get("/more", more)
    app.router.add_get("/small", small)
    app.router.add_get("/large", large)
    runner = runner_of(app)
    await runner.setup()
    listener = await listen(runner, "127.0.0.1", 0)
    try:
        yield int(listener.sockets[0].getsockname()[1])
    finally:
        listener.close()
        await runner.cleanup()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Read until the server ends the connection."""
    async with asyncio.timeout(30):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize("half", [b"", b"GET /small HT", b"GET /small HTTP/1.1\r\nHost: x\r\nX-A: "])
async def test_half_a_request_is_not_waited_for(half: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "KEEPALIVE_S", 0.5)
    async with served() as port:
        for before in (b"", WHOLE):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(before)
            if before:
                await reader.readuntil(b"small")
            writer.write(half)
            assert not await ended(reader)
            writer.close()


async def test_of_too_many_connections_the_most_silent_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CONNECTIONS_MAX", 5)
    async with served() as port:
        crowd: list[Stream] = []
        for _ in range(5):
            crowd.append(await asyncio.open_connection("127.0.0.1", port))
            crowd[-1][1].write(b"GET /small")
        await asyncio.sleep(0.1)
        crowd[0][1].write(b" HTTP/1.1\r\n")  # no longer the most silent
        await asyncio.sleep(0.1)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(WHOLE)
        assert b"200 OK" in await reader.readuntil(b"small"), "a probe gets through"
        assert await ended(crowd[1][0]) == b""
        crowd[0][1].write(b"Host: x\r\n\r\n")
        assert b"200 OK" in await crowd[0][0].readuntil(b"small")
        for _, one in (*crowd, (reader, writer)):
            one.close()


@pytest.mark.parametrize(
    "head",
    [b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", b"GET /small HTTP/1.1\r\nX-A: " + b"a" * 40_000 + b"\r\n\r\n"],
)
async def test_a_long_head_is_refused(head: bytes) -> None:
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        assert b" 400 Bad Request" in await ended(reader)
        writer.close()


@pytest.mark.parametrize("leave", ["close", "abort"])
async def test_work_for_a_client_that_leaves_is_cancelled(leave: str) -> None:
    events: dict[str, asyncio.Event] = {name: asyncio.Event() for name in ("begun", "ended", "answered")}
    results: list[str | None] = []

    async def work() -> str:
        events["begun"].set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)  # what it cleans up is waited for
            events["ended"].set()
        return "never"

    async def waiting(request: web.Request) -> web.Response:
        results.append(await unless_left(request, work()))
        assert events["ended"].is_set()
        results.append(await unless_left(request, work()))  # has left before
        events["answered"].set()
        return web.Response()

    async with served(waiting) as port, asyncio.timeout(30):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /more HTTP/1.1\r\nHost: x\r\n\r\n")
        await events["begun"].wait()
        writer.transport.abort() if leave == "abort" else writer.close()
        await events["answered"].wait()
        assert results == [None, None]


async def test_work_for_a_client_that_stays_is_done_or_fails_as_it_does() -> None:
    async def work(*, fails: bool) -> str:
        await asyncio.sleep(0)
        if fails:
            raise web.HTTPConflict
        return "done"

    async def doing(request: web.Request) -> web.Response:
        return web.Response(text=await unless_left(request, work(fails="fail" in request.query)))

    async with served(doing) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /more HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in await reader.readuntil(b"done")
        writer.write(b"GET /more?fail HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b" 409 Conflict" in await ended(reader)
        writer.close()


async def test_an_answer_that_is_not_read_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STUCK_S", 0.5)
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(1.5)
        assert len(await ended(reader)) < 50_000_000
        writer.close()


def test_replica_on_uvloop_answers() -> None:
    """Its transports are not instances of asyncio's classes."""

    async def ask() -> bytes:
        async with served() as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(WHOLE)
            answer = await reader.readuntil(b"small")
            writer.close()
            return answer

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(ask()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("steps", range(6))
async def test_listening_that_is_cancelled_leaves_no_socket_behind(steps: int) -> None:
    runner = runner_of(web.Application())
    await runner.setup()
    port = free_port()
    beginning = asyncio.create_task(listen(runner, "127.0.0.1", port))
    for _ in range(steps):
        await asyncio.sleep(0)
    beginning.cancel()
    await asyncio.wait([beginning])
    if not beginning.cancelled():
        beginning.result().close()
    again = await listen(runner, "127.0.0.1", port)
    again.close()
    await runner.cleanup()
