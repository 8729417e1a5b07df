"""A loopback server that answers by a script; whatever is lawful is judged by the protocol."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web

from tests.support.lds_protocol import Answered, Asked, judge, judge_request
from vkprovider.labs.lds.client import LdsClient, open_deployment
from vkprovider.rest.tokens import TokenReader

TOKEN: Final = "token-of-lds"
INFO: Final = {"version": "1", "extensions": ["client-key", "owner"]}


@dataclass
class Say:
    """One answer.

    Attributes:
        body: JSON, or bytes as they are.
        lawful: Whether the protocol allows it.
        fault: Instead of an answer: `drop`, `half` or `hang`.
    """

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    lawful: bool = True
    fault: str = ""


@dataclass
class ScriptedLds:
    """Answers the requests to a path by its script, the last answer for ever; `/info` by itself.

    Attributes:
        answers: By `METHOD /path`.
        asked: What came, in order, without `/info`.
    """

    url: str = ""
    answers: dict[str, list[Say]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    exchanges: list[tuple[Asked, Answered | None]] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def say(self, request: str, *answers: Say) -> None:
        self.answers[request] = list(answers)

    @property
    def lines(self) -> list[str]:
        return [f"{asked.method} {asked.target.removeprefix('/api/v1')}" for asked in self.asked]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        asked = Asked(request.method, request.raw_path, dict(request.headers), await request.read())
        key = f"{request.method} {request.path.removeprefix('/api/v1')}"
        if key == "GET /info" and key not in self.answers:
            say = Say(200, INFO)
        else:
            self.asked.append(asked)
            script = self.answers[key]
            say = script.pop(0) if len(script) > 1 else script[0]
        self.arrived.set()
        if say.fault:
            self.exchanges.append((asked, None))
            return await self.fail(say.fault, request)
        body = say.body if isinstance(say.body, bytes) else json.dumps(say.body).encode()
        headers = say.headers | ({} if isinstance(say.body, bytes) else {"Content-Type": "application/json"})
        self.exchanges.append((asked, Answered(say.status, body, headers) if say.lawful else None))
        return web.Response(status=say.status, body=body, headers=headers)

    async def fail(self, fault: str, request: web.Request) -> web.StreamResponse:
        if fault == "hang":
            await self.released.wait()
        elif fault == "half":
            response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
            await response.prepare(request)
            await response.write(b'{"id": ')
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    def judge(self) -> None:
        for asked, answered in self.exchanges:
            if answered is None:
                judge_request(asked)
            else:
                judge(asked, answered)


@pytest.fixture
async def lds() -> AsyncIterator[ScriptedLds]:
    scripted = ScriptedLds()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", scripted.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    scripted.url = site.name
    yield scripted
    scripted.released.set()
    await runner.cleanup()
    scripted.judge()


Open = Callable[..., LdsClient]


def given(*tokens: str | None) -> TokenReader:
    """Read these tokens, the last one for ever."""
    left = list(tokens)

    async def read() -> str | None:
        return left.pop(0) if len(left) > 1 else left[0]

    return read


def of_file(path: Path) -> TokenReader:
    """Read a file's text."""

    async def read() -> str:
        return path.read_text("utf-8")  # noqa: ASYNC240 (a test's file)

    return read


@pytest.fixture
async def connect(lds: ScriptedLds) -> AsyncIterator[Open]:
    """Opens clients of the server; arguments are those of `open_deployment`."""
    clients = []

    def open_client(base_url: str = "", **options: Any) -> LdsClient:
        options = dict[str, Any](token=given(TOKEN), timeout_s=20.0) | options
        client = open_deployment("a", base_url or lds.url, **options)
        clients.append(client)
        return client

    yield open_client
    for client in clients:
        await client.close()


@pytest.fixture
def client(connect: Open) -> LdsClient:
    return connect()
