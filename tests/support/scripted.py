"""A bare HTTP server: it records requests and answers as a test scripts, byte by byte where a test needs that.

It keeps no objects and knows no rule of Kubernetes; for those there is `apiserver`, a real API server.
"""

import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from multidict import CIMultiDictProxy

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def status_body(code: int, message: str, reason: str = "") -> bytes:
    """Return the body of a refusal."""
    return json.dumps({"kind": "Status", "code": code, "message": message, "reason": reason}).encode()


def refuse(code: int, message: str, **headers: str) -> Handler:
    """Answer as the API server refuses."""
    body = status_body(code, message)

    async def handler(_: web.Request) -> web.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=code, body=body, headers=named)

    return handler


def answer(body: Any) -> Handler:
    """Answer with a JSON document."""

    async def handler(_: web.Request) -> web.Response:
        return web.json_response(body)

    return handler


def kubeconfig_of(url: str) -> str:
    """Return a kubeconfig for a server that asks for no more than a token."""
    return f"""
current-context: test
contexts: [{{name: test, context: {{cluster: test, user: test, namespace: labs}}}}]
clusters: [{{name: test, cluster: {{server: "{url}"}}}}]
users: [{{name: test, user: {{token: abc}}}}]
"""


@dataclass
class ScriptedServer:
    """Answers as scripted; a request that no script is for gets its own body back, or `{}`."""

    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._script: list[tuple[Callable[[web.Request], bool], Handler]] = []

    async def start(self) -> Self:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.tls)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"
        return self

    async def stop(self) -> None:
        await self._runner.cleanup()

    def next(self, handler: Handler, *, when: str = "", times: int = 1) -> None:
        """Answer the next `times` requests whose `METHOD path?query` contains `when` with `handler`."""
        self._script.extend([(lambda r: when in f"{r.method} {r.path_qs}", handler)] * times)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append(Seen(request.method, request.path, dict(request.query), request.headers, body))
        for index, (matches, handler) in enumerate(self._script):
            if matches(request):
                del self._script[index]
                return await handler(request)
        return web.Response(body=body or b"{}")
