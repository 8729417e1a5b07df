"""How the answer to a request for a log is written when its source is slow."""

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from vkprovider.labs.kubelet import logs


async def test_a_log_that_comes_and_ends_while_the_head_is_written_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_FIRST_S", 0.01)
    outbox = logs._Outbox()

    async def handle(request: web.Request) -> web.StreamResponse:
        return await logs._send(request, outbox, None)

    async def fill(_request: web.Request, _response: web.StreamResponse) -> None:
        await outbox.put(b"the only line\n")
        outbox.end()

    app = web.Application()
    app.router.add_get("/", handle)
    app.on_response_prepare.append(fill)
    async with TestClient(TestServer(app)) as client, client.get("/") as answer:
        assert await answer.text() == "the only line\n"
