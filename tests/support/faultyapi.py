"""An HTTP proxy before a real API server, in the test's own loop: it keeps a log and makes requests fail on demand.

It is plain HTTP to the client, or TLS with `listen`, and TLS to the API server; the client's token passes through.
Watches pass line by line, so that a test can put a line of its own between those of the API server.
"""

import asyncio
import contextlib
import json
import re
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Self
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web
from multidict import CIMultiDictProxy
from yarl import URL

_HOP: Final = frozenset({"host", "connection", "transfer-encoding", "content-length", "keep-alive"})


@dataclass
class Asked:
    """One request, and how it was answered.

    Attributes:
        path: Decoded; `raw_path` is what was sent.
        status: 0 while there is no answer, and if there was none.
        answered_s: When the whole answer was there, on the monotonic clock; 0 as above.
    """

    method: str
    path: str
    raw_path: str
    query: str
    headers: CIMultiDictProxy[str]
    body: bytes
    began_s: float
    status: int = 0
    answered_s: float = 0.0

    @property
    def params(self) -> dict[str, str]:
        """The query's parameters."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def line(self) -> str:
        """`METHOD /path?query`, which the patterns of faults are searched in."""
        return f"{self.method} {self.path}" + (f"?{self.query}" if self.query else "")

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


@dataclass
class Fault:
    """What happens to matching requests; the first fault that matches a request meets it.

    Attributes:
        pattern: Regular expression, searched in `METHOD /path?query`.
        count: How many requests it still meets; None is no limit.
        delay_s: How long a request waits before anything else happens to it.
        status: What it is answered with instead of being passed on; with `lose`, after it was passed on.
        message: The message of that answer.
        drop: Its connection breaks before it is passed on.
        lose: It is passed on, and its connection breaks instead of an answer (if there is no `status`).
        answer: The body of a successful answer, instead of being passed on: a stale list, for one.
        alter: Returns the body to answer with, for the one that the API server has answered with.
        first: Called with the request before anything else happens to it; what it returns is awaited.
        then: Awaited when the API server has answered, before the answer is passed on.
        met: How many requests it has met.
    """

    pattern: str
    count: int | None = 1
    delay_s: float = 0.0
    status: int = 0
    message: str = "as the test wants"
    drop: bool = False
    lose: bool = False
    answer: bytes | None = None
    alter: Callable[[bytes], bytes] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    first: Callable[[Asked], Any] | None = None
    then: Callable[[], Awaitable[object]] | None = None
    met: int = 0

    def meets(self, asked: Asked) -> bool:
        """Return whether it meets a request, and count it."""
        if self.count == 0 or not re.search(self.pattern, asked.line):
            return False
        if self.count is not None:
            self.count -= 1
        self.met += 1
        return True


class FaultyApi:
    """The proxy.

    Attributes:
        asked: All requests, in the order in which they came.
    """

    def __init__(self, url: str, tls: ssl.SSLContext, *, listen: ssl.SSLContext | None = None) -> None:
        self._target = url
        self._tls = tls
        self._listen = listen
        self._faults: list[Fault] = []
        self._watches: list[_Watch] = []
        self._swallows = False
        self._broken: list[Exception] = []
        self.asked: list[Asked] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        timeout = aiohttp.ClientTimeout(total=None)
        self._http = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        self._site = await self._listen_at(0)
        self._port: int = self._runner.addresses[0][1]
        self.url = f"http{'s' if self._listen else ''}://127.0.0.1:{self._port}"
        return self

    async def _listen_at(self, port: int) -> web.TCPSite:
        site = web.TCPSite(self._runner, "127.0.0.1", port, ssl_context=self._listen)
        await site.start()
        return site

    async def __aexit__(self, *_: object) -> None:
        self.heal()
        self.end_watches()
        await self._runner.cleanup()
        await self._http.close()
        if self._broken:
            raise ExceptionGroup("the proxy itself failed", self._broken)

    # -------------------------------------------------------------------------------------- what a test does

    def fault(self, pattern: str, **how: Any) -> Fault:
        """Put a fault in force; see `Fault` for the arguments."""
        fault = Fault(pattern, **how)
        self._faults.append(fault)
        return fault

    def cut(self) -> Fault:
        """Break every connection, and every new one until `heal`."""
        fault = Fault("", count=None, drop=True)
        self._faults.insert(0, fault)
        self.end_watches()
        return fault

    async def refuse(self) -> None:
        """Break every connection, and refuse new ones until `accept`: the process of the API server has ended."""
        self.cut()
        await self._site.stop()

    async def accept(self) -> None:
        """Accept connections again, and end all faults."""
        self.heal()
        self._site = await self._listen_at(self._port)

    def heal(self) -> None:
        """End all faults."""
        self._faults.clear()
        self._swallows = False
        for watch in self._watches:
            watch.speaks.set()

    def end_watches(self, pattern: str = "") -> int:
        """Break the connections of watches; return how many there were."""
        hit = self._open(pattern)
        for watch in hit:
            watch.abort()
        return len(hit)

    def finish_watches(self, pattern: str = "") -> None:
        """End watches as the API server does at their timeout."""
        for watch in self._open(pattern):
            watch.lines.put_nowait(b"")

    def swallow_watches(self) -> int:
        """Hold what comes of all watches, also of those that are opened later, until `heal`; return how many there are.

        Nothing ends them: the API server's own end of one is held as well, as by a network that forgot a connection.
        """
        self._swallows = True
        return self.silence_watches()

    def silence_watches(self, pattern: str = "") -> int:
        """Hold what comes of the watches that are open, and their end, until `heal`; return how many there are."""
        hit = self._open(pattern)
        for watch in hit:
            watch.speaks.clear()
        return len(hit)

    def inject(self, line: bytes, pattern: str = "") -> None:
        """Send a line to open watches, as if it came from the API server."""
        for watch in self._open(pattern):
            watch.lines.put_nowait(line)

    @property
    def watching(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def _open(self, pattern: str) -> "list[_Watch]":
        return [watch for watch in self._watches if re.search(pattern, watch.line)]

    def matching(self, pattern: str) -> list[Asked]:
        """Return the requests that match, in order."""
        return [asked for asked in self.asked if re.search(pattern, asked.line)]

    # -------------------------------------------------------------------------------------- what it does

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except (aiohttp.ClientError, ConnectionError):
            return self._break(request)
        except Exception as error:
            self._broken.append(error)
            raise

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        path, raw_path, query = request.path, request.raw_path.partition("?")[0], request.query_string
        asked = Asked(request.method, path, raw_path, query, request.headers, body, time.monotonic())
        self.asked.append(asked)
        fault = next((fault for fault in self._faults if fault.meets(asked)), None)
        if fault is not None:
            if fault.first is not None and (wait := fault.first(asked)) is not None:
                await wait
            await asyncio.sleep(fault.delay_s)
            if fault.drop:
                return self._break(request)
            if fault.status and not fault.lose:
                return _refuse(asked, fault)
            if fault.answer is not None:
                asked.status, asked.answered_s = 200, time.monotonic()
                return web.Response(body=fault.answer, content_type="application/json")
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._relay(request, asked)
        return await self._pass_on(request, asked, fault)

    async def _relay(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        """Pass the messages of a WebSocket on, in both directions; a refusal is passed on as it is."""
        url = URL(self._target + request.raw_path, encoded=True)
        left = _HOP | {"upgrade", "sec-websocket-extensions"}
        headers = {name: value for name, value in request.headers.items() if name.lower() not in left}
        offered = [each.strip() for each in headers.pop("Sec-WebSocket-Protocol", "").split(",")]
        handshake = {name: headers.pop(name, "") for name in ("Sec-WebSocket-Key", "Sec-WebSocket-Version")}
        try:
            there = await self._http.ws_connect(url, headers=headers, protocols=offered)
        except aiohttp.WSServerHandshakeError:
            upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Protocol": ",".join(offered)}
            async with self._http.get(url, headers={**headers, **handshake, **upgrade}) as got:
                asked.status = got.status
                return web.Response(status=got.status, body=await got.read(), content_type=got.content_type)
        here = web.WebSocketResponse(protocols=[there.protocol] if there.protocol else [], compress=False)
        await here.prepare(request)
        asked.status = 101

        async def back() -> None:
            async for message in there:
                await here.send_bytes(message.data)
            await here.close(code=there.close_code or 1000)

        passing = asyncio.create_task(back())
        try:
            async for message in here:
                await there.send_bytes(message.data)
        finally:
            passing.cancel()
            await asyncio.gather(passing, return_exceptions=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await there.close()
        return here

    def _break(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)

    async def _pass_on(self, request: web.Request, asked: Asked, fault: Fault | None) -> web.StreamResponse:
        url = URL(self._target + request.raw_path, encoded=True)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        async with self._http.request(request.method, url, data=asked.body or None, headers=headers) as got:
            answer_headers = {name: value for name, value in got.headers.items() if name.lower() not in _HOP}
            if "watch=" in request.query_string and got.status == 200:
                return await self._stream(request, asked, got, answer_headers)
            text = await got.read()
            if fault is not None and fault.then is not None:
                await fault.then()
            if fault is not None and fault.lose:
                return _refuse(asked, fault) if fault.status else self._break(request)
            if fault is not None and fault.alter is not None:
                text = fault.alter(text)
            asked.status, asked.answered_s = got.status, time.monotonic()
            return web.Response(status=got.status, body=text, headers=answer_headers)

    async def _stream(
        self, request: web.Request, asked: Asked, got: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        asked.status = got.status
        watch = _Watch(asked.line, request)
        self._watches.append(watch)
        if self._swallows:
            watch.speaks.clear()
        reading = asyncio.create_task(watch.read(got))
        try:
            with contextlib.suppress(ConnectionError):
                while line := await watch.next_line():
                    await response.write(line)
                await response.write_eof()
        finally:
            self._watches.remove(watch)
            reading.cancel()
            if got.connection is not None and got.connection.transport is not None:
                got.connection.transport.abort()  # or TLS would still be saying farewell when the loop is closed
            await asyncio.gather(reading, return_exceptions=True)
        return response


@dataclass(eq=False)
class _Watch:
    """An open watch.

    Attributes:
        lines: What is still to be sent to the client; an empty one ends the watch.
        speaks: Set unless all that comes is held.
    """

    line: str
    request: web.Request
    lines: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    speaks: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.speaks.set()

    async def next_line(self) -> bytes:
        """Return what is to be sent next."""
        line = await self.lines.get()
        await self.speaks.wait()
        return line

    async def read(self, got: aiohttp.ClientResponse) -> None:
        """Read the API server's lines until it ends the watch."""
        rest = b""
        try:
            async for data in got.content.iter_any():
                lines, newline, rest = (rest + data).rpartition(b"\n")
                if newline:
                    self.lines.put_nowait(lines + newline)
            self.lines.put_nowait(b"")
        except (ConnectionError, aiohttp.ClientError):
            self.abort()

    def abort(self) -> None:
        """Break the client's connection."""
        if self.request.transport is not None:
            self.request.transport.abort()


def _refuse(asked: Asked, fault: Fault) -> web.Response:
    asked.status, asked.answered_s = fault.status, time.monotonic()
    reason = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}.get(fault.status, "")
    body = {"kind": "Status", "code": fault.status, "reason": reason, "message": fault.message}
    return web.json_response(body, status=fault.status, headers=fault.headers)
