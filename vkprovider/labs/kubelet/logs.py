"""`/containerLogs`: the log of a device, or the story of a lablet, as `kubectl logs` reads it.

Lines are collected while the client is slow, up to a bound, and then their source waits; a client that leaves cancels
the handler. The answer begins with the first line, so that what goes wrong before is an error and not a line.
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from vkprovider.labs.kubelet.consoles import OpenSessions
from vkprovider.labs.kubelet.listeners import MOVED
from vkprovider.labs.kubelet.server import Call, NodePods, Routes
from vkprovider.labs.kubelet.spi import LogLine, LogOptions, Target
from vkprovider.platform.errors import InputError, Invalid, OutsideError, Unavailable
from vkprovider.platform.objects import Pod
from vkprovider.platform.times import unix

_BUFFER_BYTES: Final = 64 * 1024
_FIRST_S: Final = 15.0
"""How long the answer waits for the first line of a log that is followed, which may have none for hours; longer than a
worker has for its answer, so that one that does not answer is an error."""
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"", "0", "f", "F", "false", "FALSE", "False"})

Source = Callable[[Pod, Target, LogOptions], AsyncIterator[LogLine]]
"""Reads the log of a container."""


@dataclass(frozen=True, slots=True)
class LogRequest:
    """What a request asks for.

    Attributes:
        options: For the source.
        timestamps: Begin each line with its time.
        limit_bytes: Cut off after so many; None: never.
        nothing: Only a stream is wanted that no device has.
    """

    options: LogOptions
    timestamps: bool = False
    limit_bytes: int | None = None
    nothing: bool = False


def parse(query: Mapping[str, str], now: float) -> LogRequest:
    """Read the options of a request (v1.PodLogOptions); unknown ones are ignored.

    Raises:
        Invalid: One is wrong.
    """
    since_seconds, since_time = _number(query, "sinceSeconds", 1), query.get("sinceTime") or None
    if since_seconds is not None and since_time is not None:
        raise Invalid("at most one of sinceTime and sinceSeconds may be given")
    since = now - since_seconds if since_seconds is not None else None
    if since_time is not None and (since := unix(since_time)) is None:
        raise Invalid(f"sinceTime {since_time[:40]!r} is not a time such as 2026-01-31T12:00:00Z")
    stream = query.get("stream") or "All"
    if stream not in {"All", "Stdout", "Stderr"}:
        raise Invalid(f"stream {stream[:40]!r} is none of All, Stdout, Stderr")
    options = LogOptions(
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        since_at=since,
        tail_lines=_number(query, "tailLines", 0),
    )
    return LogRequest(options, _flag(query, "timestamps"), _number(query, "limitBytes", 1), nothing=stream == "Stderr")


def _flag(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name, "")
    if value not in _TRUE | _FALSE:
        raise Invalid(f"{name} {value[:40]!r} is neither true nor false")
    return value in _TRUE


def _number(query: Mapping[str, str], name: str, least: int) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    value = int(text) if _NUMBER.fullmatch(text) else least - 1
    if value < least:
        raise Invalid(f"{name} {text[:40]!r} is not a number of at least {least}")
    return value


_LAST_S: Final = datetime.max.replace(tzinfo=UTC).timestamp() - 1


def render(line: LogLine, *, timestamps: bool) -> bytes:
    """Return a line as bytes; its time has nine digits after the point, as those of a kubelet."""
    text = line.text.encode(errors="replace") + b"\n"
    if not timestamps:
        return text
    at = datetime.fromtimestamp(min(max(line.at, 0.0), _LAST_S), UTC)  # a device may print any
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06d}000Z ".encode() + text


class _Outbox:
    """Bytes between the source of a log and its client.

    Attributes:
        ended: Whether nothing more comes.
        fault: Why there is nothing at all.
    """

    def __init__(self) -> None:
        self.ended = False
        self.fault: InputError | OutsideError | None = None
        self._has_begun = False
        self._data = bytearray()
        self._news, self._room = asyncio.Event(), asyncio.Event()

    async def put(self, data: bytes) -> None:
        """Add bytes, and wait while there are too many."""
        if self.ended:
            return
        self._has_begun = True
        self._data += data
        self._news.set()
        if len(self._data) >= _BUFFER_BYTES:
            self._room.clear()
            await self._room.wait()

    def end(self, fault: InputError | OutsideError | None = None, line: bytes = b"") -> None:
        """End it; `line` tells a client that reads already of a fault."""
        if not self.ended:
            self.ended = True
            if self._has_begun:
                self._data += line
            else:
                self.fault = fault
        self._news.set()

    async def begin(self, within_s: float | None) -> None:
        """Wait until there is output or the end, but not longer than `within_s`; after that a fault is a line.

        Raises:
            InputError: Its source has failed, and there is no output.
            OutsideError: The same.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._wait()
        if self.fault is not None:
            raise self.fault
        self._has_begun = True

    async def get(self) -> bytes:
        """Wait for output and return it; empty at the end."""
        await self._wait()
        found, self._data = bytes(self._data), bytearray()
        self._room.set()
        return found

    async def _wait(self) -> None:
        while not self._data and not self.ended:
            self._news.clear()
            await self._news.wait()


class Logs:
    """The handler."""

    def __init__(
        self, pods: NodePods, sessions: OpenSessions, source: Source, wall: Callable[[], float] = time.time
    ) -> None:
        """Create it.

        Args:
            pods: Of the Nodes.
            sessions: Count it among the open ones.
            source: Where lines come from.
            wall: The time of day.
        """
        self._pods = pods
        self._sessions = sessions
        self._source = source
        self._wall = wall

    def routes(self) -> Routes:
        """Return the handler by method and path."""
        return {("GET", "/containerLogs/{namespace}/{pod}/{container}"): self.handle}

    async def handle(self, request: web.Request, call: Call) -> web.StreamResponse:
        """Answer with the log, until its end if it is followed.

        Raises:
            InputError: The source says so.
            OutsideError: An option is wrong, or the source cannot be asked.
            web.HTTPException: There is no such container.
        """
        pod, target = self._pods.target(request, call)
        wanted = parse(request.query, self._wall())
        if wanted.nothing:
            return web.Response(text="")
        outbox = _Outbox()

        def fail(error: InputError | OutsideError) -> None:
            last = LogLine(self._wall(), f"the log ends here: {error}")
            outbox.end(error, render(last, timestamps=wanted.timestamps))

        with (
            self._sessions.counted("logs", request, pod),
            call.listener.until_left(lambda: fail(Unavailable(MOVED))),
        ):
            lines = self._source(pod, target, wanted.options)
            filling = asyncio.create_task(
                _fill(lines, outbox, fail, timestamps=wanted.timestamps), name=f"log of {pod.key}"
            )
            try:
                await outbox.begin(_FIRST_S if wanted.options.follow else None)
                return await _send(request, outbox, wanted.limit_bytes)
            finally:
                filling.cancel()
                with suppress(asyncio.CancelledError):
                    await filling


async def _fill(
    lines: AsyncIterator[LogLine],
    outbox: _Outbox,
    fail: Callable[[InputError | OutsideError], None],
    *,
    timestamps: bool,
) -> None:
    """Pass lines on to their client, until they end or `fail` is told why they do not go on."""
    try:
        async with aclosing(_generator(lines)) as found:
            async for line in found:
                await outbox.put(render(line, timestamps=timestamps))
    except (InputError, OutsideError) as error:
        fail(error)
    except Exception:
        fail(Unavailable("it cannot be read; the log of the provider says why"))  # or its client waits for ever
        raise
    else:
        outbox.end()


async def _generator(lines: AsyncIterator[LogLine]) -> AsyncGenerator[LogLine, None]:
    """Yield from an iterator, and close it if it can be closed."""
    close: Any = getattr(lines, "aclose", None)
    try:
        async for line in lines:
            yield line
    finally:
        if close is not None:
            await close()


async def _send(request: web.Request, outbox: _Outbox, limit: int | None) -> web.StreamResponse:
    """Send what comes, and end with its end, the limit, or the client."""
    response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})
    with suppress(ConnectionError):  # the client left
        await response.prepare(request)
        while data := await outbox.get():
            data = data if limit is None else data[:limit]
            await response.write(data)
            if limit is not None and (limit := limit - len(data)) <= 0:
                break
        await response.write_eof()
    return response
