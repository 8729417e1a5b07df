"""A loopback server that answers like a CML controller where a session cares, and misbehaves on request."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trustme
from aiohttp import web

from vkprovider.cml.spi import Credentials

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class MiniCml:
    """Logs in `admin` with `password`, lists labs; `replies` replaces the answer to a path."""

    password: str = "right"
    token: str = "token-0"
    logins: int = 0
    login_delay_s: float = 0.0
    seen: list[str] = field(default_factory=list)
    replies: dict[str, Reply] = field(default_factory=dict)
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path.removeprefix("/api/v0")
        self.seen.append(f"{request.method} {path}")
        self.changed.set()
        body = await request.read()
        if special := self.replies.get(path):
            return await special(request)
        if path == "/system_information":
            return web.json_response({"version": "2.9.1+build.7", "ready": True})
        if path == "/authenticate":
            return await self.log_in(body)
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return error(401, "401 Unauthorized")
        if path == "/import":
            assert "Content-Type" not in request.headers
        known = {"/labs": ["lab-1"], "/import": {"id": "lab-2", "warnings": None}}
        return web.json_response(known[path]) if path in known else error(404, f"Lab not found: {path}")

    async def log_in(self, body: bytes) -> web.StreamResponse:
        self.logins += 1
        await asyncio.sleep(self.login_delay_s)
        if f'"password":"{self.password}"'.encode() not in body:
            return error(403, "Authentication failed!")
        self.token = f"token-{self.logins}"
        return web.json_response(self.token)

    async def wait_for(self, line: str) -> None:
        while line not in self.seen:
            self.changed.clear()
            await self.changed.wait()

    async def hang(self, _: web.Request) -> web.StreamResponse:
        await self.silent.wait()
        return web.Response()

    def count(self, line: str) -> int:
        return self.seen.count(line)


def error(status: int, description: str) -> web.Response:
    return web.json_response({"code": status, "description": description}, status=status)


def reply(status: int, text: str = "", content_type: str = "application/json", **headers: str) -> Reply:
    async def answer(_: web.Request) -> web.StreamResponse:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=text, content_type=content_type, headers=names)

    return answer


async def drop(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


@asynccontextmanager
async def serving(mini: MiniCml, context: ssl.SSLContext | None = None) -> AsyncIterator[MiniCml]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", mini.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    host, port = runner.addresses[0][:2]
    mini.url = f"{'https' if context else 'http'}://{host}:{port}"
    try:
        yield mini
    finally:
        mini.silent.set()
        await runner.cleanup()


@pytest.fixture
async def mini() -> AsyncIterator[MiniCml]:
    async with serving(MiniCml()) as server:
        yield server


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@dataclass
class Secret:
    """The worker's credentials as a test changes them."""

    password: str = "right"
    reads: int = 0

    async def read(self) -> Credentials:
        self.reads += 1
        return Credentials("admin", self.password)
