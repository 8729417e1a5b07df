"""The way of an admitted request: token, handler, answer."""

import hmac
import secrets
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog
from aiohttp import web

from vkpsim.http.access_log import AccessLog, Entry
from vkpsim.http.faults import Faults
from vkpsim.http.gate import UNAUTHORIZED, Gate, Handler, InjectedStatusError, NoAnswerError
from vkpsim.lds.calls import Answer, Call, Route
from vkpsim.lds.errors import E, LdsError, body_of
from vkpsim.lds.grading import Grader
from vkpsim.lds.pages.html import problem_page
from vkpsim.lds.world import World

LARGEST_BODY_BYTES: Final = 8 * 1024 * 1024
_LOG: Final = structlog.get_logger(__name__)

PAGE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every page: it loads nothing from outside, and its URL, which holds a secret, is not sent as referrer."""


@dataclass(slots=True, kw_only=True)
class Visit:
    """One request of a browser."""

    request: web.Request
    form: Mapping[str, str]
    now: float
    session_id: str = ""
    """The session it was about; the access log notes it."""


PageHandler = Callable[[Visit], web.Response]
"""It refuses by an `LdsError`."""


class Endpoint(Gate):
    """Serves the API and the pages of one LDS."""

    def __init__(
        self,
        world: World,
        grader: Grader,
        base_url: Callable[[], str],
        log: AccessLog,
        faults: Faults,
        now: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        super().__init__(log, faults, now)
        self.token = world.settings.token
        self._world = world
        self._grader = grader
        self._base_url = base_url
        self._changed = changed

    def serve(self, route: Route | None) -> Handler:
        """Make the handler of a route; None makes the handler of unknown paths."""

        async def answer(request: web.Request, entry: Entry) -> web.Response:
            return await self._guarded(request, entry, _refusal, lambda: self._call(request, route, entry))

        return self.logged(answer)

    def page(self, handler: PageHandler) -> Handler:
        """Make the handler of a page; its query, which may hold a secret, is not logged."""

        async def answer(request: web.Request, entry: Entry) -> web.Response:
            entry.query = ""
            return await self._guarded(request, entry, _problem, lambda: self._page(handler, request, entry))

        return self.logged(answer)

    async def _guarded(
        self,
        request: web.Request,
        entry: Entry,
        refuse: Callable[[int, str, str], web.Response],
        carry_out: Callable[[], Awaitable[web.Response]],
    ) -> web.Response:
        met = None
        try:
            met = await self.enter(request, entry)
            if met is not None and met.kind == "lost_token":
                self.token = secrets.token_urlsafe()
            self._world.advance(self.now())
            response = await carry_out()
        except LdsError as error:
            response = refuse(error.status, error.code, str(error))
            if error.retry_after_s is not None:
                response.headers["Retry-After"] = str(error.retry_after_s)
        except InjectedStatusError as error:
            code = E.NO_TOKEN.value.code if error.status == UNAUTHORIZED else "InjectedFault"
            response = refuse(error.status, code, str(error))
        except web.HTTPRequestEntityTooLarge:
            too_large = LdsError(E.TOO_LARGE, limit=LARGEST_BODY_BYTES)
            response = refuse(too_large.status, too_large.code, str(too_large))
        except NoAnswerError:
            raise
        except ConnectionError as error:
            raise NoAnswerError from error
        except Exception as error:  # noqa: BLE001 (any unexpected error is a 500)
            # plain text: a pretty traceback shows local variables, and with them secrets
            _LOG.error("a handler failed", path=request.path, trace="".join(traceback.format_exception(error)))
            unforeseen = LdsError(E.INTERNAL, path=request.path)
            response = refuse(unforeseen.status, unforeseen.code, str(unforeseen))
        if request.method != "GET":
            self._changed()
        await self.leave(request, entry, met)
        return response

    async def _call(self, request: web.Request, route: Route | None, entry: Entry) -> web.Response:
        given = request.headers.get("Authorization", "")
        if self.token and not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            raise LdsError(E.NO_TOKEN)
        if route is None:
            raise LdsError(E.NO_SUCH_PATH, path=request.path)
        call = Call(
            world=self._world,
            grader=self._grader,
            now=self.now(),
            base_url=self._base_url(),
            path=request.match_info,
            query=request.query,
            body=await request.read(),
        )
        try:
            return _response(route.handler(call))
        finally:
            entry.session = call.session_id
            if call.changed:
                self._changed()

    async def _page(self, handler: PageHandler, request: web.Request, entry: Entry) -> web.Response:
        given = {name: value for name, value in (await request.post()).items() if isinstance(value, str)}
        visit = Visit(request=request, form=given, now=self.now())
        try:
            response = handler(visit)
        finally:
            entry.session = visit.session_id
        response.headers.update(PAGE_HEADERS)
        return response


def _refusal(status: int, code: str, message: str) -> web.Response:
    return web.Response(status=status, body=body_of(code, message), content_type="application/json")


def _problem(status: int, _code: str, message: str) -> web.Response:
    page = problem_page(message)
    return web.Response(status=status, text=page, content_type="text/html", headers=PAGE_HEADERS)


def _response(answer: Any) -> web.Response:
    whole = answer if isinstance(answer, Answer) else Answer(204 if answer is None else 200, answer)
    headers = {} if whole.retry_after_s is None else {"Retry-After": str(whole.retry_after_s)}
    if whole.body is None:
        return web.Response(status=whole.status, headers=headers)
    body = msgspec.json.encode(whole.body)
    return web.Response(status=whole.status, body=body, content_type="application/json", headers=headers)
