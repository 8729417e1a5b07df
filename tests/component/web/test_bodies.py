"""The gate for bodies: what it takes, what it refuses, and that a refusal costs next to nothing."""

import asyncio
import gc
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from aiohttp import web

import vkprovider
from tests.component.controllers.looking import when
from tests.support.bombs import BOMBS, Bomb, thrown
from vkprovider.platform.http.bodies import FORM, FORM_WITH_FILES, Body, File, Form, read_form

BODY = Body(64 * 1024, (FORM, FORM_WITH_FILES), within_s=1.0)
READS = re.compile(r"\brequest\.(post|read|json|text|multipart|content)\b")
CPU_S = 0.05


class Board:
    """A server with one form, which shows what it has read last."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: Form = Form()
        self.asked, self.answered = 0, 0

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        try:
            self.seen = await read_form(request, BODY)
        finally:
            self.answered += 1
        assert await read_form(request, BODY) is self.seen
        return web.Response(status=204)


@pytest.fixture
async def board() -> AsyncIterator[Board]:
    board = Board()
    app = web.Application()
    app.router.add_post("/", board.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    board.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    yield board
    await runner.cleanup()


async def post(board: Board, **sent: object) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.post(board.url, **sent)  # type: ignore[arg-type]  # (one of its fields)


async def test_a_form_is_read_as_it_was_sent(board: Board) -> None:
    answer = await post(board, data={"a": ["1", "", "ä & b"], "csrf": "x"})
    assert answer.status_code == 204
    assert board.seen.getall("a") == ["1", "", "ä & b"]


async def test_a_field_without_a_file_has_no_name(board: Board) -> None:
    raw = b'--b\r\nContent-Disposition: form-data; name="file"; filename=""\r\n\r\n\r\n--b--\r\n'
    answer = await post(board, content=raw, headers={"Content-Type": f"{FORM_WITH_FILES}; boundary=b"})
    assert answer.status_code == 204
    assert board.seen["file"] == File("", b"")


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage of other tests is collected while this one counts what it costs."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
async def test_a_bomb_is_refused_at_once(board: Board, bomb: Bomb) -> None:
    began = time.thread_time()
    status = await thrown(board.url, bomb)
    assert status in {400, 408, 413, 415}
    assert time.thread_time() - began < CPU_S


async def test_a_body_that_does_not_come_is_not_waited_for(board: Board) -> None:
    begun = time.monotonic()
    late = Bomb("late", (b"Content-Type: " + FORM.encode(), b"Content-Length: 100"), (b"a=1",))
    assert await thrown(board.url, late) == 408
    assert time.monotonic() - begun < 10 * BODY.within_s


async def test_who_leaves_while_the_body_is_read_is_no_error_of_the_server(
    board: Board, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = board.url.removeprefix("http://").rstrip("/").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: " + FORM.encode() + b"\r\nContent-Length: 9\r\n\r\na=")
    await when(lambda: board.asked == 1, "the request is there")
    writer.transport.abort()
    await when(lambda: board.answered == 1, "the request has ended")
    assert caplog.records == []


def test_every_body_comes_through_the_gate() -> None:
    home = Path(vkprovider.__file__).parent
    found = {path.relative_to(home).as_posix() for path in home.rglob("*.py") if READS.search(path.read_text("utf-8"))}
    assert found == {"platform/http/bodies.py"}
