"""The page of a lab: what it shows at first, what changes on it by itself, and what may be asked of the lab."""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from urllib.parse import quote

import structlog
from aiohttp import web

from vkprovider.lablet.inputs import tag_of
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.lablet.standing import learner_in
from vkprovider.platform.http.bodies import read_form
from vkprovider.platform.rights import Right
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.api.callers import KnownCaller, lab_right
from vkprovider.portal.pure.form import FormOffer, offer
from vkprovider.portal.pure.menu import Menu
from vkprovider.portal.pure.options import Rejection
from vkprovider.portal.pure.view import LabView, from_pod, from_userlab
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.lab.given import MY_LABS, given_lablets, given_routes
from vkprovider.portal.web.lab.pieces import (
    MANAGER,
    OWNER,
    TEACHER,
    Audience,
    Deed,
    deeds_of,
    lab_page,
    lablet_place,
    pieces,
    user_place,
    wanted_of,
)
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.live.streams import Live
from vkprovider.portal.web.live.topics import Rendered, TopicSource, TopicView
from vkprovider.portal.web.visitors import BASE, FORM_BODY, Visitor, link
from vkprovider.portal.web.workbench import bench_address

LAB: Final = "lab"
LABLET: Final = "lablet"
_log: Final = structlog.get_logger(__name__)
_COMMANDS: Final = "-commands"
"""The end of the roles of those who have no token here: they are told the commands that open consoles."""
LabletDeeds = Callable[[LabView, str, str], Iterable[Deed]]
"""Called with a lablet of a class, its namespace and its Pod; returns what an instructor may do with it now."""


class LabTopics:
    """The labs of users."""

    def __init__(self, site: SiteContext) -> None:
        self._site = site

    def source(self) -> TopicSource:
        """Return them as a kind of topic: `lab:alice`."""
        return TopicSource(LAB, self.allowed, self.render, self._site.index.listen)

    async def allowed(self, visitor: Visitor, user: str) -> TopicView:
        """Return in which role somebody sees the lab of a user.

        Raises:
            HTTPNotFound: In none, whether there is a lab or not.
            Refused: 429, or 503.
        """
        role, right = await self._role(visitor.known, user)
        if right is None:
            raise web.HTTPNotFound
        told = role_for(visitor, role)
        return TopicView(f"{told}:{right.namespace}" if role == TEACHER else told, right)

    async def _role(self, known: KnownCaller, user: str) -> tuple[str, Right | None]:
        callers, home = self._site.callers, self._site.ctx.namespace
        if await callers.owns(known, user):
            await self._site.requests.find(known.caller)
            return OWNER, lab_right("use", home, user)
        lab = self._site.index.lab(user)
        class_ = lab.record.class_ if lab is not None else ""
        if await callers.teaches(known, user, class_):
            return TEACHER, lab_right("teach", class_, user)
        return (MANAGER, lab_right("manage", home, user)) if await callers.manages(known, user) else ("", None)

    def render(self, user: str, role: str, base: str) -> Rendered | None:
        """Return what the lab of a user looks like in a role, also if there is none.

        None for who teaches a class that it is not of, or not any more.
        """
        told, class_ = split(role)
        lab = self._site.index.lab(user)
        if class_ is not None and (lab is None or lab.record.class_ != class_):
            return None
        view, place = self.view(user), user_place(user)
        who = told.removesuffix(_COMMANDS)
        extend_s, saves = self._site.settings.extend_s, told == who and bool(self._site.settings.provider_url)
        deeds = deeds_of(view, place.path, who, extend_s, saves=saves) if view is not None else ()
        if who in {OWNER, TEACHER} and bench_address(self._site.settings.bench_hosts, lab):
            deeds = (*deeds, Deed(f"{place.path}/workbench", "Open the workbench"))
        audience = Audience(consoles=told == who, mine=who == OWNER)
        return Rendered(pieces(self._site.layout, view, place, deeds, audience, base, self._site.ctx.wall()))

    def view(self, user: str) -> LabView | None:
        """Return the lab of a user as people see it; None if there is none."""
        lab = self._site.index.lab(user)
        if lab is None:
            return None
        definition = self._definition(lab.record.request.definition if lab.record.request is not None else "")
        now = self._site.ctx.wall()
        return from_userlab(lab, definition, self._site.index.events_of(user), now, self._site.settings)

    def _definition(self, image: str) -> DefinitionStatus:
        return self._site.index.status_of(tag_of(image)[0])


class LabletTopics:
    """The lablets of classes."""

    def __init__(self, site: SiteContext, deeds: LabletDeeds) -> None:
        """Show none yet.

        Args:
            site: What is known.
            deeds: Returns what an instructor may do with a lablet.
        """
        self._site = site
        self._deeds = deeds

    def source(self) -> TopicSource:
        """Return them as a kind of topic: `lablet:net101/bob-0`."""
        return TopicSource(LABLET, self.allowed, self.render, self._site.lablets.listen_to)

    async def allowed(self, visitor: Visitor, name: str) -> TopicView:
        """Return in which role somebody sees a lablet.

        Raises:
            HTTPNotFound: In none, whether there is one or not.
            Refused: 429, or 503.
        """
        namespace = name.partition("/")[0]
        if not await self._site.callers.teaches(visitor.known, "", namespace):
            raise web.HTTPNotFound
        return TopicView(role_for(visitor, TEACHER), lab_right("teach", namespace))

    def render(self, name: str, role: str, base: str) -> Rendered | None:
        """Return what a lablet looks like in a role; None if it is gone."""
        namespace, _, pod_name = name.partition("/")
        pod = self._site.lablets.pod(namespace, pod_name)
        if pod is None:
            return None
        now = self._site.ctx.wall()
        view = from_pod(pod, self._site.index.status_of(pod.spec.runtime_class_name), (), now)
        place, deeds = lablet_place(namespace, pod_name), tuple(self._deeds(view, namespace, pod_name))
        guests = f"{place.path}/guests" if view.name and deeds else ""
        audience = Audience(consoles=role == TEACHER, mine=False, guests=guests, learner=learner_in(pod))
        return Rendered(pieces(self._site.layout, view, place, deeds, audience, base, now))


def split(role: str) -> tuple[str, str | None]:
    """Return the role in which somebody sees the lab of a user, and the class to which it is bound; None if to none.

    Who teaches a class has a right to its labs alone, and a learner's next lab may be of another one.
    """
    told, bound, class_ = role.partition(":")
    return told, class_ if bound else None


def role_for(visitor: Visitor, role: str) -> str:
    """Return the role of a visitor: who has no token here sees the commands that open consoles."""
    return role if visitor.token else f"{role}{_COMMANDS}"


_HINDRANCES_MAX: Final = 5
_CLASS: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def routes(site: SiteContext, live: Live) -> tuple[Route, ...]:
    """Return the paths, and have the labs of users be followed."""
    topics = LabTopics(site)
    live.topics.register(topics.source())
    return (*LabPages(site, live, topics).routes(), *given_routes(site, live))


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
        mine = seen.role.startswith(OWNER)
        offered, others = None, False
        if mine:
            others = bool(given_lablets(self._site, seen.visitor))
            if others and self._site.index.lab(seen.user) is None and not _class_of(request):
                raise web.HTTPSeeOther(link(request, "/"))  # which leads to what they have
            view = self._topics.view(seen.user)
            starts = view is None or view.replaceable
            offered = await offer_for(self._site, seen.visitor, _class_of(request), starts=starts)
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
            crumbs=[MY_LABS] if others else (),
        )

    async def _create(self, request: web.Request) -> web.StreamResponse:
        seen = await self._seen(request, OWNER)
        wanted = wanted_of(await read_form(request, FORM_BODY))
        if isinstance(wanted, Rejection):
            raise Rejected(*wanted)
        known = seen.visitor.known
        await self._site.callers.check_class(known, wanted.class_)
        await self._site.requests.create(known.caller, wanted, await menu_for(self._site, known))
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


async def menu_for(site: SiteContext, known: KnownCaller) -> Menu:
    """Return what somebody may choose from.

    Raises:
        Refused: 429, or 503.
    """
    return await site.callers.menu(known, site.choices, require_use=site.settings.require_use)


async def offer_for(site: SiteContext, visitor: Visitor, class_: str = "", *, starts: bool = True) -> FormOffer:
    """Return what the form for a lab offers somebody who may have one, of a class if it is for one.

    Args:
        site: Whose menu it is.
        visitor: Who asks.
        class_: The class.
        starts: Whether a lab can be asked for now: then what the visitor has saved is offered as well.

    Raises:
        Refused: 429, or 503.
    """
    menu = await menu_for(site, visitor.known)
    beside = site.choices.beside(menu, class_) if site.settings.bench_hosts is not None else {}
    found = offer(menu, site.choices.quota(visitor.known.caller), site.choices.nodes(), beside)
    if not found.images:
        return found._replace(hindrances=await _told(site, visitor.known))
    return await site.left.offered(found, menu, site.index, visitor.token) if starts else found


async def _told(site: SiteContext, known: KnownCaller) -> tuple[str, ...]:
    """Return why definitions are on no menu, for who can change it: who manages labs, or teaches.

    Raises:
        Refused: 429, or 503.
    """
    user = known.of_cluster
    teaches = bool(site.instructors.classes_of(user.username, user.groups))
    if not teaches and not await site.callers.manages(known, ""):
        return ()
    found = [f"{name} {why}" for name, why in site.choices.hindrances().items()]
    return tuple(found[:_HINDRANCES_MAX]) or ("There is no LabletDefinition that has a menu to be on.",)


def _class_of(request: web.Request) -> str:
    """Return the class that a page is asked for; "" if it is no name of one."""
    name = request.query.get("class", "")
    return name if _CLASS.fullmatch(name) else ""


def _back(request: web.Request, seen: _Seen) -> web.HTTPSeeOther:
    return web.HTTPSeeOther(link(request, f"/labs/{quote(seen.user, safe='')}"))
