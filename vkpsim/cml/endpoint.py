"""The way of an admitted request: token, handler, answer."""

import traceback
from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog
from aiohttp import web

from vkpsim.cml.accounts import User
from vkpsim.cml.calls import Binary, Call, Created, Route, Text
from vkpsim.cml.convergence import Convergence
from vkpsim.cml.errors import CmlError, E, body_of
from vkpsim.cml.simulation import Simulation
from vkpsim.http.access_log import AccessLog, Entry
from vkpsim.http.faults import Faults
from vkpsim.http.gate import UNAUTHORIZED, Gate, Handler, InjectedStatusError, NoAnswerError

LARGEST_IMPORT_BYTES: Final = 20 * 1024 * 1024
LARGEST_BODY_BYTES: Final = 2 * 1024 * 1024
_BAD_TOKEN: Final = E.BAD_TOKEN.value.text
_NOBODY: Final = User(id="", username="", digest="", created=0, modified=0)
_LOG: Final = structlog.get_logger(__name__)


class Endpoint(Gate):
    """Serves the routes of one simulation."""

    def __init__(
        self,
        simulation: Simulation,
        log: AccessLog,
        faults: Faults,
        now: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        super().__init__(log, faults, now)
        self.simulation = simulation
        self._changed = changed
        self._convergence = Convergence()

    def serve(self, route: Route | None) -> Handler:
        """Make the handler of a route; None makes the handler of unknown paths."""

        async def answer(request: web.Request, entry: Entry) -> web.Response:
            return await self._answer(request, route, entry)

        return self.logged(answer)

    async def _answer(self, request: web.Request, route: Route | None, entry: Entry) -> web.Response:
        met = None
        try:
            met = await self.enter(request, entry)
            if met is not None and met.kind == "lost_token":
                for user in self.simulation.accounts.users.values():
                    self.simulation.accounts.end_sessions(user)
            response = await self._carry_out(request, route, entry)
        except CmlError as error:
            response = _refusal(error.status, error.description)
        except InjectedStatusError as error:
            response = _refusal(error.status, _BAD_TOKEN if error.status == UNAUTHORIZED else str(error))
        except web.HTTPRequestEntityTooLarge:
            response = _refusal(E.TOO_LARGE.value.status, E.TOO_LARGE.value.text)
        except NoAnswerError:
            raise
        except ConnectionError as error:
            raise NoAnswerError from error
        except Exception as error:  # noqa: BLE001 (any unexpected error is a 500, as in CML)
            # plain text: a pretty traceback shows local variables, and with them passwords
            _LOG.error("a handler failed", path=request.path, trace="".join(traceback.format_exception(error)))
            unforeseen = CmlError(E.INTERNAL, path=request.path)
            response = _refusal(unforeseen.status, unforeseen.description)
        await self.leave(request, entry, met)
        return response

    async def _carry_out(self, request: web.Request, route: Route | None, entry: Entry) -> web.Response:
        body = await request.read()
        if len(body) > LARGEST_BODY_BYTES and not request.path.endswith(("/import", "/nodes", "/images/upload")):
            raise CmlError(E.TOO_LARGE)
        now = self.now()
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
            entry.converged = self._convergence.first_shown(call.shown)
        if request.method != "GET":
            self._changed()
        if request.method == "DELETE":
            self._convergence.forget(set(self.simulation.world.labs))
        return response

    def _who(self, request: web.Request, now: float) -> tuple[User, str]:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise CmlError(E.NO_TOKEN)
        user = self.simulation.accounts.user_of(now, token)
        if self.simulation.system.maintenance and not user.admin:
            raise CmlError(E.MAINTENANCE)
        return user, token


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
