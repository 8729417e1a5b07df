"""The paths of the API, made of all that serves them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from email.utils import formatdate
from typing import Any, Final
from urllib.parse import quote

import msgspec
from aiohttp import web

from vkprovider.platform.http.access import AccessControl, Pace
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.http.bodies import Body, BodyLate, BodyTooLarge, read
from vkprovider.platform.http.served import Handler, served, strict_headers
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.parts import Route
from vkprovider.platform.settings import KubeSettings, reveal
from vkprovider.portal.api.bodies import DIALECTS, Bodies, PortalDialect, form_html, openapi_document, refused, rejected
from vkprovider.portal.api.callers import ByHeaders, ByToken, KnownCaller, PortalCallers
from vkprovider.portal.api.looks import Looks
from vkprovider.portal.api.streams import LabStreams, StreamTimes
from vkprovider.portal.pure import options
from vkprovider.portal.pure.facts import unknown
from vkprovider.portal.pure.form import images_answer, offer, prepulls_answer
from vkprovider.portal.pure.menu import Menu
from vkprovider.portal.pure.options import BODY, Grounds, Rejection
from vkprovider.portal.pure.record import LabRecord
from vkprovider.portal.service.choices import Choices
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.informers import PortalInformers
from vkprovider.portal.service.leftwork import LeftWork
from vkprovider.portal.service.requests import LabCaller, Rejected, Requests
from vkprovider.portal.settings import PortalSettings

BASE: Final = "/nublado"
SPAWNER: Final = f"{BASE}/spawner/v1"
_BODY: Final = Body(1 << 20)
_POOLS: Final = ("", "/{pool}")
_POOL_METHODS: Final = ("GET", "POST", "DELETE")
_NO_POOLS: Final = (
    "this portal makes no Dask pools: the children of a lab are its lablet and, where one is configured, its workbench "
    "(docs/portal.md)"
)
_LATE_S: Final = 10.0
"""How much longer than a deletion may take its caller waits for the answer."""
KnownHandler = Callable[[web.Request, KnownCaller], Awaitable[web.StreamResponse]]


class PortalApi:
    """The handlers."""

    def __init__(
        self,
        settings: PortalSettings,
        index: UserLabIndex,
        requests: Requests,
        choices: Choices,
        callers: PortalCallers,
        dialect: PortalDialect,
        bodies: Bodies,
        streams: LabStreams,
        *,
        left: LeftWork,
    ) -> None:
        """Create them.

        Args:
            settings: The bounds of times.
            index: All user labs.
            requests: Makes, deletes and extends labs.
            choices: The menu and the quotas.
            callers: Finds out who asks.
            dialect: How requests are answered.
            bodies: Describes labs.
            streams: The events of labs.
            left: Says what a user has saved, from which the next lab may begin.
        """
        self._settings = settings
        self._index = index
        self._requests = requests
        self._choices = choices
        self._callers = callers
        self._dialect = dialect
        self._bodies = bodies
        self.streams = streams
        self._left = left

    def routes(self) -> tuple[Route, ...]:
        """Return the paths."""
        lab = f"{SPAWNER}/labs/{{username}}"
        return (
            Route("GET", f"{BASE}/openapi.json", _answering(self._document)),
            self._route("GET", f"{SPAWNER}/labs", self._labs),
            self._route("GET", lab, self._lab),
            self._route("DELETE", lab, self._delete),
            self._route("POST", f"{lab}/create", self._create),
            self._route("GET", f"{lab}/events", self._events),
            self._route("POST", f"{lab}/extend", self._extend),
            *(
                self._route(each, f"{lab}/dask-pool{rest}", self._dask_pool)
                for rest in _POOLS
                for each in _POOL_METHODS
            ),
            self._route("GET", f"{SPAWNER}/lab-form/{{username}}", self._lab_form),
            self._route("GET", f"{SPAWNER}/images", self._images),
            self._route("GET", f"{SPAWNER}/prepulls", self._prepulls),
            self._route("GET", f"{SPAWNER}/user-status", self._user_status),
        )

    def _route(self, method: str, path: str, handler: KnownHandler) -> Route:
        """Return a route whose handler gets the sender of a request as well, who is known."""

        async def handle(request: web.Request) -> web.StreamResponse:
            return await handler(request, await self._callers.known(request))

        return Route(method, path, _answering(handle))

    async def finish(self) -> None:
        """End the streams, so that their listeners go to another replica, and finish the requests in hand."""
        self.streams.close()
        await self._requests.finish()

    # ------------------------------------------------------------------------------------------ for hubs and classes

    async def _document(self, _: web.Request) -> web.StreamResponse:
        bounds = self._settings.extend_s, self._settings.duration_max_s
        return web.json_response(openapi_document(self._dialect.name, *bounds))

    async def _labs(self, _: web.Request, known: KnownCaller) -> web.StreamResponse:
        await self._callers.check_manager(known)
        return self._aged(self._bodies.running(self._index.labs()))

    async def _lab(self, request: web.Request, known: KnownCaller) -> web.StreamResponse:
        user = request.match_info["username"]
        await self._callers.as_manager(known, user, self._class_of(user))
        return self._shown(user)

    async def _delete(self, request: web.Request, known: KnownCaller) -> web.StreamResponse:
        user, by = request.match_info["username"], known.caller.username
        of_class = await self._callers.as_manager(known, user, self._class_of(user))
        if not self._dialect.waits:
            await self._requests.delete(user, by, of_class)
            return web.Response(status=self._dialect.deleted)
        async with self._index.listen(user) as changed:
            before = self._index.lab(user)
            await self._requests.delete(user, by, of_class)
            await self._until_gone(user, before.record if before is not None else None, changed)
        return web.Response(status=self._dialect.deleted)

    async def _until_gone(self, user: str, before: LabRecord | None, changed: asyncio.Event) -> None:
        """Wait until a lab is gone.

        Args:
            user: Whose lab.
            before: Its record before its deletion was asked for; it may tell of an earlier one that failed.
            changed: Is set with each change of the lab.

        Raises:
            Rejected: The deletion failed, or takes too long.
        """
        failed_before = before.outcome if before is not None else None
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.delete_timeout_s + _LATE_S):
                while (lab := self._index.lab(user)) is not None and (before is None or lab.record.uid == before.uid):
                    before, outcome = lab.record, lab.record.outcome
                    if before.ending is not None and outcome is not None and outcome != failed_before:
                        raise Rejected(Grounds.DELETE_FAILED, outcome.text or "the deletion failed")
                    await changed.wait()
                    changed.clear()
                return
        raise Rejected(Grounds.DELETE_FAILED, "the lab is not gone yet; its deletion goes on")

    async def _images(self, _: web.Request, known: KnownCaller) -> web.StreamResponse:
        await self._callers.check_manager(known)
        found = images_answer(self._choices.menu(), self._choices.nodes())
        return web.json_response(self._dialect.images(found))

    async def _prepulls(self, _: web.Request, known: KnownCaller) -> web.StreamResponse:
        await self._callers.check_manager(known)
        benches = self._choices.bench_images().values()
        found = prepulls_answer(self._choices.menu(), self._choices.nodes(), benches)
        return web.json_response(self._dialect.prepulls(found))

    # ------------------------------------------------------------------------------------------ for users

    async def _create(self, request: web.Request, known: KnownCaller) -> web.StreamResponse:
        user = request.match_info["username"]
        await self._callers.check_owner(known, user)
        wanted = options.parse(await _json(request), one_image=self._dialect.one_image)
        if isinstance(wanted, list):
            return rejected(wanted)
        await self._callers.check_class(known, wanted.class_)
        await self._requests.create(known.caller, wanted, await self._menu_of(known))
        location = f"{SPAWNER}/labs/{quote(user, safe='')}"  # without a host: a proxy may have another
        return web.Response(status=self._dialect.created, headers={"Location": location})

    async def _events(self, request: web.Request, known: KnownCaller) -> web.StreamResponse:
        user = request.match_info["username"]

        async def still() -> bool:
            await self._callers.as_owner(await self._callers.known(request), user, self._class_of(user))
            return True

        await self._callers.as_owner(known, user, self._class_of(user))
        await self._find(known.caller, user)
        return await self.streams.serve(request, user, known.caller, still)

    async def _extend(self, request: web.Request, known: KnownCaller) -> web.StreamResponse:
        user, caller = request.match_info["username"], known.caller
        of_class = await self._callers.as_owner(known, user, self._class_of(user))
        await self._find(caller, user)
        asked_s = seconds_of(await _json(request, empty={})) or self._settings.extend_s
        end = await self._requests.extend(user, caller.username, asked_s, of_class)
        return web.json_response(self._bodies.end(end))

    async def _dask_pool(self, request: web.Request, known: KnownCaller) -> web.StreamResponse:
        """Say that a lab has no pools of Dask; who may not see the lab reads nothing of it."""
        user = request.match_info["username"]
        await self._callers.as_owner(known, user, self._class_of(user))
        return rejected([Rejection(Grounds.NOT_SUPPORTED, _NO_POOLS, ("path", "dask-pool"))])

    async def _lab_form(self, request: web.Request, known: KnownCaller) -> web.StreamResponse:
        await self._callers.check_owner(known, request.match_info["username"])
        menu = await self._menu_of(known)
        found = offer(menu, self._choices.quota(known.caller), self._choices.nodes())
        found = await self._left.offered(found, menu, self._index, known.caller.token)
        return web.Response(text=form_html(found), content_type="text/html")

    async def _menu_of(self, known: KnownCaller) -> Menu:
        """Return the menu of somebody."""
        return await self._callers.menu(known, self._choices, require_use=self._settings.require_use)

    async def _user_status(self, _: web.Request, known: KnownCaller) -> web.StreamResponse:
        caller = known.caller
        await self._callers.check_owner(known, caller.user)
        await self._requests.find(caller)
        return self._shown(caller.user)

    # ------------------------------------------------------------------------------------------ what they share

    def _shown(self, user: str) -> web.StreamResponse:
        lab = self._index.lab(user)
        if lab is None:
            return rejected([unknown(user)])
        return self._aged(self._bodies.lab(lab, self._index.events_of(user)))

    def _aged(self, body: Any) -> web.StreamResponse:
        """Return an answer with the time of the API server, which its stamps have, and with its age if that matters."""
        age_s = self._index.age_s()
        headers = {"Date": formatdate(self._bodies.wall(), usegmt=True)}
        return web.json_response(body, headers={**headers, **({"Age": str(int(age_s))} if age_s else {})})

    async def _find(self, caller: LabCaller, user: str) -> None:
        """Look for the lab of a caller who asks for the own one, if it is missing here."""
        if caller.user == user:
            await self._requests.find(caller)

    def _class_of(self, user: str) -> str:
        lab = self._index.lab(user)
        return lab.record.class_ if lab is not None else ""


async def _json(request: web.Request, empty: Any = None) -> Any:
    """Return the body of a request.

    Raises:
        Rejected: It is no JSON, too large, or too slow.
    """
    try:
        body = await read(request, _BODY)
        return msgspec.json.decode(body) if body else empty
    except (BodyLate, BodyTooLarge) as refusal:
        raise Rejected(Grounds.INVALID_BODY, refusal.message, (BODY,)) from None
    except msgspec.DecodeError as error:
        raise Rejected(Grounds.INVALID_JSON, f"the body is no JSON: {error}", (BODY,)) from None
    except UnicodeDecodeError:
        raise Rejected(Grounds.INVALID_JSON, "the body is no JSON: it is not in UTF-8", (BODY,)) from None
    except RecursionError:
        raise Rejected(Grounds.INVALID_JSON, "lists or objects of the body are nested too deeply", (BODY,)) from None


def seconds_of(body: Any) -> int | None:
    """Return the time by which a request extends a lab; None if it names none.

    Raises:
        Rejected: It is no time.
    """
    if not isinstance(body, dict) or not set(body) <= {"seconds"}:
        raise Rejected(Grounds.INVALID_BODY, 'the body is `{"seconds": 1800}`, or empty', (BODY,))
    seconds = body.get("seconds")
    if isinstance(seconds, float) and seconds.is_integer():
        seconds = int(seconds)  # 1800.0 is an integer in JSON Schema
    if seconds is not None and (not isinstance(seconds, int) or isinstance(seconds, bool) or seconds < 1):
        raise Rejected(Grounds.INVALID_BODY, "seconds is not a number of seconds from 1", (BODY, "seconds"))
    return seconds


def _answering(handler: Handler) -> Handler:
    """Return a handler whose refusals have the body of the dialects."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Rejected as error:
            return rejected([error.rejection])
        except Refused as refusal:
            return refused(refusal)

    return served(handle, strict_headers())


_PACE: Final = Pace(at_once=16, per_s=100, burst=500)
"""The limits of reviews: a whole class asks for labs in the same second, each learner with another token."""


def portal_callers(
    ctx: Context, settings: PortalSettings, objects: PortalInformers, kube: KubeSettings
) -> PortalCallers:
    """Make what finds out who asks.

    Args:
        ctx: The replica.
        settings: How callers are known.
        objects: All that is known of labs.
        kube: Names the API server, which says who may act as somebody else.
    """
    access = AccessControl(ctx.kube, audiences=settings.token_audiences, pace=_PACE)
    secret, prefix = reveal(settings.ingress_secret), settings.username_prefix
    by_headers = settings.callers == "headers" and secret is not None
    by_token = ByToken(access, Looks(access, kube, ctx.replica))
    source = ByHeaders(secret, prefix) if by_headers and secret is not None else by_token
    return PortalCallers(access, source, ctx.namespace, prefix, objects.are_complete)


def portal_api(
    ctx: Context,
    settings: PortalSettings,
    index: UserLabIndex,
    requests: Requests,
    choices: Choices,
    callers: PortalCallers,
    left: LeftWork,
    times: StreamTimes | None = None,
) -> PortalApi:
    """Make the page of a replica.

    Args:
        ctx: The replica.
        settings: What answers are like.
        index: All user labs.
        requests: Makes, deletes and extends labs.
        choices: The menu and the quotas.
        callers: Finds out who asks.
        left: Says what a user has saved.
        times: Those of streams; None for the usual ones.
    """
    dialect = DIALECTS[settings.dialect]
    return PortalApi(
        settings,
        index,
        requests,
        choices,
        callers,
        dialect,
        Bodies(dialect, ctx.wall, choices.amounts_of),
        LabStreams(index, dialect, times or StreamTimes()),
        left=left,
    )
