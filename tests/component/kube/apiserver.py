"""A stand-in for an API server over loopback: lists, watches, writes, and every way in which they go wrong."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from multidict import CIMultiDictProxy

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PODS = "/api/v1/pods"


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
    return json.dumps({"kind": "Status", "code": code, "message": message, "reason": reason}).encode()


def refuse(code: int, message: str, **headers: str) -> Handler:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(
            status=code, body=status_body(code, message), headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    return handler


def pod(name: str, namespace: str = "default", *, uid: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}"}
    return {"metadata": metadata, "spec": {"containers": [{"name": "lab"}], **spec}}


def kubeconfig_of(url: str) -> str:
    """Write a kubeconfig for a server that asks for no more than a token."""
    return f"""
current-context: test
contexts: [{{name: test, context: {{cluster: test, user: test, namespace: labs}}}}]
clusters: [{{name: test, cluster: {{server: "{url}"}}}}]
users: [{{name: test, user: {{token: abc}}}}]
"""


@dataclass
class ApiServer:
    """One collection of pods with its history, and hooks for faults."""

    tls: ssl.SSLContext | None = None
    seen: list[Seen] = field(default_factory=list)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    history: list[tuple[int, bytes]] = field(default_factory=list)
    version: int = 100
    token: str | None = None

    def __post_init__(self) -> None:
        self._script: list[tuple[Callable[[web.Request], bool], Handler]] = []
        self._news = asyncio.Condition()
        self._ended = 0
        self._transports: set[asyncio.Transport] = set()

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
        await self.cut_watches()
        await self._runner.cleanup()

    # What a test does to it.

    def next(self, handler: Handler, *, when: str = "", times: int = 1) -> None:
        """Answer the next `times` requests whose `METHOD path?query` contains `when` with `handler`."""
        self._script.extend([(lambda r: when in f"{r.method} {r.path_qs}", handler)] * times)

    async def put(self, obj: dict[str, Any]) -> int:
        """Create or change an object."""
        metadata = obj["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        self.version += 1
        obj = {**obj, "metadata": {**metadata, "resourceVersion": str(self.version)}}
        kind = "MODIFIED" if key in self.objects else "ADDED"
        self.objects[key] = obj
        await self.say(kind, obj, version=self.version)
        return self.version

    async def remove(self, key: str) -> None:
        obj = self.objects.pop(key)
        self.version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        await self.say("DELETED", obj, version=self.version)

    async def say(self, kind: str, obj: dict[str, Any], *, version: int | None = None) -> None:
        """Send an event to every watch."""
        line = json.dumps({"type": kind, "object": obj}, separators=(",", ":"))
        await self.say_raw(line.encode() + b"\n", version=version)

    async def say_raw(self, line: bytes, *, version: int | None = None) -> None:
        self.version = version or self.version + 1
        self.history.append((self.version, line))
        async with self._news:
            self._news.notify_all()

    async def end_watches(self) -> None:
        """End every watch as a timeout does."""
        self._ended += 1
        async with self._news:
            self._news.notify_all()

    @property
    def watching(self) -> int:
        """How many watches are open."""
        return len(self._transports)

    async def cut_watches(self) -> None:
        """Reset the connections of every watch."""
        while self._transports:
            self._transports.pop().abort()

    def lists(self) -> list[Seen]:
        return [s for s in self.seen if s.method == "GET" and s.path == PODS and "watch" not in s.query]

    def watches(self) -> list[Seen]:
        return [s for s in self.seen if "watch" in s.query]

    # What it does itself.

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append(Seen(request.method, request.path, dict(request.query), request.headers, body))
        for index, (matches, handler) in enumerate(self._script):
            if matches(request):
                del self._script[index]
                return await handler(request)
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.Response(status=401, body=status_body(401, "Unauthorized"))
        if request.path == "/version":
            return web.json_response({"gitVersion": "v1.36.3"})
        if request.path != PODS or request.method != "GET":
            return web.Response(body=body or b"{}")
        return await (self._watch(request) if "watch" in request.query else self._list(request))

    async def _list(self, request: web.Request) -> web.Response:
        keys = sorted(self.objects)
        start = int(request.query.get("continue", "0"))
        end = start + int(request.query.get("limit", "500"))
        metadata = {"resourceVersion": str(self.version), "continue": str(end) if end < len(keys) else ""}
        items = [self.objects[key] for key in keys[start:end]]
        return web.json_response({"kind": "PodList", "metadata": metadata, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        position = int(request.query["resourceVersion"])
        if position < self.version and (not self.history or position + 1 < self.history[0][0]):
            return web.Response(status=410, body=status_body(410, "too old resource version", "Expired"))
        response = web.StreamResponse()
        await response.prepare(request)
        transport = request.transport
        assert transport is not None
        self._transports.add(transport)
        told, ended = 0, self._ended
        try:
            while ended == self._ended:
                lines = [line for version, line in self.history[told:] if version > position]
                told = len(self.history)
                if lines:
                    await response.write(b"".join(lines))
                async with self._news:
                    if told == len(self.history) and ended == self._ended:
                        await self._news.wait()
        finally:
            self._transports.discard(transport)
        return response
