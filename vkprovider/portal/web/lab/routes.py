"""The paths of the view: the page of a user's lab, and what may be asked of the lab."""

import re
from typing import Final, NamedTuple
from urllib.parse import quote

from aiohttp import web

from vkprovider.platform.http.bodies import read_form
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.api.callers import KnownCaller
from vkprovider.portal.pure.form import offer
from vkprovider.portal.pure.menu import Menu
from vkprovider.portal.pure.options import Rejection
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.context import SiteContext
from vkprovider.portal.web.lab.pieces import OWNER, TEACHER, lab_page, user_place, wanted_of
from vkprovider.portal.web.lab.topics import LAB, LabTopics, split
from vkprovider.portal.web.layout import BASE, link
from vkprovider.portal.web.live.streams import Live
from vkprovider.portal.web.visitor import Visitor
from vkprovider.portal.web.visitors import FORM_BODY

_CLASS: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def routes(site: SiteContext, live: Live) -> tuple[Route, ...]:
    """Return the paths, and have the labs of users be followed."""
    topics = LabTopics(site)
    live.topics.register(topics.source())
    return LabPages(site, live, topics).routes()


class _Seen(NamedTuple):
    """Who asks for the lab of a user.

    Attributes:
        visitor: The sender of the request.
        user: Whose lab.
        role: In which the sender sees it.
    """

    visitor: Visitor
    user: str
    role: str

    @property
    def of_class(self) -> str | None:
        """The class that gives the sender the right to; None if that is not a class."""
        return split(self.role)[1]

    @property
    def by(self) -> str:
        """The username of the sender."""
        return self.visitor.known.caller.username


class LabPages:
    """The handlers."""

    def __init__(self, site: SiteContext, live: Live, topics: LabTopics) -> None:
        """Create them.

        Args:
            site: What they show, and whom they ask.
            live: Renders what changes.
            topics: The labs.
        """
        self._site = site
        self._live = live
        self._topics = topics

    def routes(self) -> tuple[Route, ...]:
        """Return the paths."""
        page, posting = "/labs/{user}", self._site.visitors.posting
        return (
            Route("GET", page, self._show),
            Route("POST", f"{page}/create", posting(self._create)),
            Route("POST", f"{page}/extend", posting(self._extend)),
            Route("POST", f"{page}/reset", posting(self._reset)),
            Route("POST", f"{page}/stop", posting(self._stop)),
        )

    async def _show(self, request: web.Request) -> web.StreamResponse:
        seen = await self._seen(request)
        mine, known = seen.role.startswith(OWNER), seen.visitor.known
        offered = None
        if mine:
            choices = self._site.choices
            offered = offer(await self._menu(known), choices.quota(known.caller), choices.nodes())
        shown = self._live.topics.now(LAB, seen.user, seen.role, request.get(BASE, ""))
        if shown is None:
            raise web.HTTPNotFound
        return lab_page(
            request,
            self._site.layout,
            shown,
            user_place(seen.user),
            title="My lab" if mine else f"The lab of {seen.user}",
            offer=offered,
            class_=_class_of(request),
        )

    async def _create(self, request: web.Request) -> web.StreamResponse:
        seen = await self._seen(request, OWNER)
        wanted = wanted_of(await read_form(request, FORM_BODY))
        if isinstance(wanted, Rejection):
            raise Rejected(*wanted)
        known = seen.visitor.known
        await self._site.callers.check_class(known, wanted.class_)
        await self._site.requests.create(known.caller, wanted, await self._menu(known))
        raise _back(request, seen)

    async def _extend(self, request: web.Request) -> web.StreamResponse:
        seen = await self._seen(request, OWNER, TEACHER)
        await self._site.requests.extend(seen.user, seen.by, self._site.settings.extend_s, seen.of_class)
        raise _back(request, seen)

    async def _reset(self, request: web.Request) -> web.StreamResponse:
        seen = await self._seen(request, OWNER, TEACHER)
        await self._site.requests.reset(seen.user, seen.by, seen.of_class)
        raise _back(request, seen)

    async def _stop(self, request: web.Request) -> web.StreamResponse:
        seen = await self._seen(request)
        await self._site.requests.delete(seen.user, seen.by, seen.of_class)
        raise _back(request, seen)

    async def _seen(self, request: web.Request, *roles: str) -> _Seen:
        """Return who asks, in one of some roles; in any role if none is named.

        Raises:
            HTTPNotFound: Not for this sender, whether there is a lab or not.
            Refused: 401, 429, or 503.
        """
        visitor, user = await self._site.visitors.of(request), request.match_info["user"]
        role = (await self._topics.allowed(visitor, user)).role
        if roles and not role.startswith(roles):
            raise web.HTTPNotFound
        return _Seen(visitor, user, role)

    async def _menu(self, known: KnownCaller) -> Menu:
        """Return what somebody may choose from."""
        menu = self._site.choices.menu()
        if not self._site.settings.require_use:
            return menu
        return menu.only(await self._site.callers.usable(known, menu.definitions))


def _class_of(request: web.Request) -> str:
    """Return the class that a page is asked for; "" if it is no name of one."""
    name = request.query.get("class", "")
    return name if _CLASS.fullmatch(name) else ""


def _back(request: web.Request, seen: _Seen) -> web.HTTPSeeOther:
    return web.HTTPSeeOther(link(request, f"/labs/{quote(seen.user, safe='')}"))
