"""Around every request to a simulator: log, silence, faults, latency."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

from aiohttp import web

from vkpsim.http.access_log import AccessLog, Entry
from vkpsim.http.faults import Fault, Faults

LOOK_S: Final = 0.1
"""How often the gate checks whether the client of a held request is still connected."""
UNAUTHORIZED: Final = 401

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Answerer = Callable[[web.Request, Entry], Awaitable[web.Response]]


class NoAnswerError(Exception):
    """The connection breaks; there is no answer."""


class InjectedStatusError(Exception):
    """A fault that is answered by a status."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"Injected fault: {status}")


class Gate:
    """Passes requests to their handlers, and applies the faults in force."""

    def __init__(self, log: AccessLog, faults: Faults, now: Callable[[], float]) -> None:
        self.log = log
        self.faults = faults
        self.now = now
        self.latency_s = 0.0
        self.held = 0
        """Number of requests that a silence holds."""
        self._silent_until = 0.0
        self._released = asyncio.Event()

    def silence(self, seconds: float) -> None:
        """Accept connections but answer nothing for a while; what is in flight then is never answered."""
        self._silent_until = self.now() + seconds

    def release(self) -> None:
        """End every silence; connections that it held break."""
        self._silent_until = 0.0
        self._released.set()
        self._released = asyncio.Event()

    def logged(self, answer: Answerer) -> Handler:
        """Make a handler that notes each request and its answer, and breaks the connection if there is none."""

        async def handle(request: web.Request) -> web.StreamResponse:
            entry = self.log.begin(
                request.method, request.path, request.query_string, request.headers.get("User-Agent", "")
            )
            try:
                response = await answer(request, entry)
                entry.status = response.status
            except NoAnswerError:
                if request.transport is not None:
                    request.transport.abort()
                response = web.Response(status=500)
            finally:
                entry.answered_s, entry.answered_unix_s = time.monotonic(), time.time()
                self.log.write(entry)
            return response

        return handle

    async def enter(self, request: web.Request, entry: Entry) -> Fault | None:
        """Admit a request, and apply the fault that it meets.

        Returns:
            The fault that it met, if it is carried out nevertheless.

        Raises:
            InjectedStatusError: It is not carried out but answered with a status.
            NoAnswerError: It is not carried out and never answered.
        """
        await request.read()  # it has arrived: it is carried out even if the client gives up
        await self._keep_silent(request, entry)
        met = self.faults.meet(request.method, request.path, self.now())
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        if met is None:
            return None
        fault, ends = met
        entry.fault = fault.kind
        match fault.kind:
            case "delay":
                await asyncio.sleep(fault.delay_s)
            case "status":
                raise InjectedStatusError(fault.status)
            case "unauthorized":
                raise InjectedStatusError(UNAUTHORIZED)
            case "drop":
                raise NoAnswerError
            case "silence":
                await self._hold(request, ends)
            case "lost_token" | "lost_answer":
                pass
        return fault

    async def leave(self, request: web.Request, entry: Entry, met: Fault | None) -> None:
        """Send an answer.

        Raises:
            NoAnswerError: It is lost.
        """
        await self._keep_silent(request, entry)
        if met is not None and met.kind == "lost_answer":
            raise NoAnswerError

    async def _keep_silent(self, request: web.Request, entry: Entry) -> None:
        if self.now() < self._silent_until:
            entry.fault = "silence"
            await self._hold(request, self._silent_until)

    async def _hold(self, request: web.Request, until: float | None) -> NoReturn:
        """Wait for the end of a silence or until the client disconnects, then break the connection."""
        self.held += 1
        released = self._released
        try:
            while request.transport is not None and not released.is_set():
                left = LOOK_S if until is None else min(LOOK_S, until - self.now())
                if left <= 0:
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(released.wait(), left)
        finally:
            self.held -= 1
        raise NoAnswerError
