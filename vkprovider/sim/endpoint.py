"""How a request passes through the simulator: log, silence, faults, latency, token, handler, answer."""

import asyncio
import contextlib
import time
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final, NoReturn

import msgspec
import structlog
from aiohttp import web

from vkprovider.sim.access_log import AccessLog, Entry
from vkprovider.sim.accounts import User
from vkprovider.sim.calls import Binary, Call, Created, Route, Text
from vkprovider.sim.errors import CmlError, E, body_of
from vkprovider.sim.faults import Fault, Faults
from vkprovider.sim.simulation import Simulation

LARGEST_IMPORT_BYTES: Final = 20 * 1024 * 1024
LARGEST_BODY_BYTES: Final = 2 * 1024 * 1024
LOOK_S: Final = 0.1
"""How often a held request is looked at: whether its client is still there."""
_NOBODY: Final = User(id="", username="", digest="", created=0, modified=0)
_LOG: Final = structlog.get_logger(__name__)

AiohttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NoAnswerError(Exception):
    """The connection shall break instead of an answer."""


class Endpoint:
    """Serves the routes of one simulation."""

    def __init__(
        self,
        simulation: Simulation,
        log: AccessLog,
        faults: Faults,
        now: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self.simulation = simulation
        self.latency_s = 0.0
        self._log = log
        self._faults = faults
        self._now = now
        self._changed = changed
        self.held = 0
        """How many requests a silence holds at the moment."""
        self._silent_until = 0.0
        self._released = asyncio.Event()

    def silence(self, seconds: float) -> None:
        """Accept connections but answer nothing for a while; what is in flight then is never answered."""
        self._silent_until = self._now() + seconds

    def release(self) -> None:
        """End every silence; connections that it held break."""
        self._silent_until = 0.0
        self._released.set()
        self._released = asyncio.Event()

    def serve(self, route: Route | None) -> AiohttpHandler:
        """Make the handler of a route; None is the handler of every path that there is not."""

        async def handle(request: web.Request) -> web.StreamResponse:
            entry = Entry(
                number=self._log.next_number(),
                arrived_s=time.monotonic(),
                arrived_unix_s=time.time(),
                method=request.method,
                path=request.path,
                query=request.query_string,
                agent=request.headers.get("User-Agent", ""),
            )
            try:
                response = await self._answer(request, route, entry)
                entry.status = response.status
            except NoAnswerError:
                if request.transport is not None:
                    request.transport.abort()
                response = web.Response(status=500)
            finally:
                entry.answered_s, entry.answered_unix_s = time.monotonic(), time.time()
                self._log.write(entry)
            return response

        return handle

    async def _answer(self, request: web.Request, route: Route | None, entry: Entry) -> web.Response:
        met = None
        try:
            await request.read()  # now it has arrived: it is carried out even if the client gives up meanwhile
            await self._keep_silent(request, entry)
            met = self._faults.meet(request.method, request.path, self._now())
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            if met is not None:
                entry.fault = met[0].kind
                await self._suffer(request, *met)
            response = await self._carry_out(request, route, entry)
        except CmlError as error:
            response = _refusal(error.status, error.description)
        except _InjectedStatusError as error:
            response = _refusal(error.status, f"Injected fault: {error.status}")
        except web.HTTPRequestEntityTooLarge:
            response = _refusal(E.TOO_LARGE.value.status, E.TOO_LARGE.value.text)
        except NoAnswerError:
            raise
        except ConnectionError as error:
            raise NoAnswerError from error
        except Exception as error:  # noqa: BLE001 (whatever a handler did not foresee is a 500, as in CML)
            # plain text: a pretty traceback shows local variables, and with them passwords
            _LOG.error("a handler failed", path=request.path, trace="".join(traceback.format_exception(error)))
            unforeseen = CmlError(E.INTERNAL, path=request.path)
            response = _refusal(unforeseen.status, unforeseen.description)
        await self._keep_silent(request, entry)
        if met is not None and met[0].kind == "lost_answer":
            raise NoAnswerError
        return response

    async def _keep_silent(self, request: web.Request, entry: Entry) -> None:
        if self._now() < self._silent_until:
            entry.fault = "silence"
            await self._hold(request, self._silent_until)

    async def _hold(self, request: web.Request, until: float | None) -> NoReturn:
        """Wait for the end of a silence or of the client's patience, then break the connection."""
        self.held += 1
        released = self._released
        try:
            while request.transport is not None and not released.is_set():
                left = LOOK_S if until is None else min(LOOK_S, until - self._now())
                if left <= 0:
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(released.wait(), left)
        finally:
            self.held -= 1
        raise NoAnswerError

    async def _suffer(self, request: web.Request, fault: Fault, ends: float | None) -> None:
        match fault.kind:
            case "delay":
                await asyncio.sleep(fault.delay_s)
            case "status":
                raise _InjectedStatusError(fault.status)
            case "drop":
                raise NoAnswerError
            case "unauthorized":
                raise CmlError(E.BAD_TOKEN)
            case "lost_token":
                for user in self.simulation.accounts.users.values():
                    self.simulation.accounts.end_sessions(user)
            case "silence":
                await self._hold(request, ends)
            case "lost_answer":
                pass

    async def _carry_out(self, request: web.Request, route: Route | None, entry: Entry) -> web.Response:
        body = await request.read()
        if len(body) > LARGEST_BODY_BYTES and not request.path.endswith(("/import", "/nodes", "/images/upload")):
            raise CmlError(E.TOO_LARGE)
        now = self._now()
        self.simulation.world.advance(now)
        if route is None:
            raise CmlError(E.NO_SUCH_PATH)
        user, token = _NOBODY, ""
        if not route.open:
            user, token = self._who(request, now)
            entry.user = user.username
        call = Call(
            sim=self.simulation,
            now=now,
            user=user,
            path=request.match_info,
            query=request.query,
            headers=request.headers,
            body=body,
            token=token,
        )
        response = _response(route.handler(call))
        if call.imported is not None:
            entry.lab, entry.title = call.imported.id, call.imported.title
        if call.shown:
            entry.converged = self._log.first_shown(call.shown)
        if request.method != "GET":
            self._changed()
        if request.method == "DELETE":
            self._log.forget(set(self.simulation.world.labs))
        return response

    def _who(self, request: web.Request, now: float) -> tuple[User, str]:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise CmlError(E.NO_TOKEN)
        user = self.simulation.accounts.who(now, token)
        if self.simulation.system.maintenance and not user.admin:
            raise CmlError(E.MAINTENANCE)
        return user, token


class _InjectedStatusError(Exception):
    """A fault that is answered by a status."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(status)


def _refusal(status: int, description: str) -> web.Response:
    return web.Response(status=status, body=body_of(status, description), content_type="application/json")


def _response(answer: Any) -> web.Response:
    match answer:
        case None:
            return web.Response(status=204)
        case Text(text, content_type):
            return web.Response(text=text, content_type=content_type)
        case Binary(content, content_type):
            return web.Response(body=content, content_type=content_type)
        case Created(body):
            return web.Response(status=201, body=msgspec.json.encode(body), content_type="application/json")
        case _:
            return web.Response(body=msgspec.json.encode(answer), content_type="application/json")
