"""The paths of the view: the classes of an instructor, and one lablet of a class."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

import structlog
from aiohttp import web
from markupsafe import Markup

from vkprovider.lablet.standings import Standing
from vkprovider.platform.http.bodies import read_form
from vkprovider.platform.http.open import Places
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.pure.classes import RowFilter, as_csv, chosen, wish_of
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.pure.view import LabView
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.classes.acting import (
    FORMS,
    MINUTES,
    OF_LABLETS,
    USUAL_MINUTES,
    Acting,
    headline,
    offered,
    passed_on,
    rows_of,
    wanted_of,
)
from vkprovider.portal.web.classes.classrooms import (
    KIND,
    ROWS,
    ClassRequests,
    Classrooms,
    Grid,
    csv_answer,
    path_of,
    powers_of,
    topic_of,
)
from vkprovider.portal.web.classes.definitions import FILE_BODY, DefinitionsPage
from vkprovider.portal.web.classes.giving import LIST_BODY, Assigning, giving_rights
from vkprovider.portal.web.classes.guests import GuestsPage
from vkprovider.portal.web.classes.handout import HandingOut
from vkprovider.portal.web.classes.pools import PoolsPage, pool_rights
from vkprovider.portal.web.classes.wall import Wall
from vkprovider.portal.web.classes.work import WorkPage
from vkprovider.portal.web.lab.pieces import Deed, check_learner, lab_page, lablet_place
from vkprovider.portal.web.lab.routes import LABLET, LabletTopics
from vkprovider.portal.web.layout import PIECE, SiteContext
from vkprovider.portal.web.live.streams import Live
from vkprovider.portal.web.live.topics import Rendered, TopicSource, TopicView
from vkprovider.portal.web.visitors import BASE, FORM_BODY, Visitor, link

_LOOKS: Final = "-looks"
"""The end of the roles of those who may do nothing with a lablet."""
_OF_ONE: Final = {
    "stop": ("Stop", "The devices are switched off; their disks stay, for 24 hours at most.", "Stop the lab"),
    "reset": (
        "Wipe and start again",
        "All devices are wiped and start again. What was typed on them is lost.",
        "Reset the lab",
    ),
    "collect": ("Hand in", "The learner's time ends now: the work is collected and graded.", "Hand the lab in"),
}
"""Words, question and answer of what asks first."""


class ClassLablets:
    """The lablets of classes, as topics and as pages."""

    def __init__(self, site: SiteContext, live: Live, classrooms: Classrooms, acting: Acting) -> None:
        """Create it.

        Args:
            site: What every view is given.
            live: Has the pages change by themselves.
            classrooms: The classes.
            acting: Asks lablets.
        """
        self._site = site
        self._live = live
        self._classrooms = classrooms
        self._acting = acting
        self._doing = LabletTopics(site, deeds_for)
        self._looking = LabletTopics(site, _nothing)

    def source(self) -> TopicSource:
        """Return how a lablet changes by itself."""
        return TopicSource(LABLET, self.allowed, self.render, self._doing.source().listen)

    async def allowed(self, visitor: Visitor, name: str) -> TopicView:
        """Return what a visitor may see of a lablet.

        Raises:
            HTTPNotFound: Nothing.
            Refused: 429, or 503.
        """
        namespace = name.partition("/")[0]
        await self._classrooms.check(visitor.known, namespace)
        found = await self._doing.allowed(visitor, name)
        powers = await powers_of(self._site.callers, visitor, namespace, [])
        return found if powers.lablets else found._replace(role=found.role + _LOOKS)

    def render(self, name: str, role: str, base: str) -> Rendered | None:
        """Return what a lablet looks like; None if it is gone."""
        topics = self._looking if role.endswith(_LOOKS) else self._doing
        return topics.render(name, role.removesuffix(_LOOKS), base)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show a lablet."""
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        visitor = await self._site.visitors.of(request)
        allowed = await self.allowed(visitor, f"{namespace}/{pod}")
        shown = self._live.topics.now(LABLET, f"{namespace}/{pod}", allowed.role, request.get(BASE, ""))
        if shown is None:
            raise web.HTTPNotFound
        above = [("Classes", "/classes"), (namespace, path_of(namespace))]
        return lab_page(request, self._site.layout, shown, lablet_place(namespace, pod), title=pod, crumbs=above)

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Ask one lablet, and lead back to its page."""
        namespace, name, action = (request.match_info[key] for key in ("namespace", "pod", "action"))
        visitor = await self._site.visitors.of(request)
        allowed = await self.allowed(visitor, f"{namespace}/{name}")
        rows = [row for row in self._classrooms.rows(namespace) if row.pod == name and not row.user]
        if action not in OF_LABLETS or not rows:
            raise web.HTTPNotFound
        if allowed.role.endswith(_LOOKS):
            raise Rejected(Grounds.PERMISSION_DENIED, "You may look at this lab, and do nothing with it.")
        form = await read_form(request, FORM_BODY)
        wanted = wanted_of(action, form)
        if isinstance(wanted, str):
            raise Rejected(Grounds.INVALID_BODY, wanted)
        check_learner(form, rows[0].learner)
        [outcome] = await self._acting.ask(visitor, namespace, rows, wanted)
        if not outcome.done:
            raise Rejected(Grounds.CANNOT_BE_DONE, f"Nothing was done: {outcome.words}.")
        raise web.HTTPSeeOther(link(request, lablet_place(namespace, name).path))


def deeds_for(view: LabView, namespace: str, pod: str) -> Iterable[Deed]:
    """Yield what an instructor may do with a lablet of a class now."""
    path = f"{path_of(namespace)}/lablets/{quote(pod, safe='')}"
    if view.standing is Standing.STOPPED:
        yield Deed(f"{path}/start", "Start")
    possible = {
        "stop": view.stop.possible,
        "reset": view.reset.possible,
        "collect": bool(view.name and view.stop.possible),
    }
    if view.name and view.end_at is not None and view.stop.possible:
        minutes = USUAL_MINUTES
        yield Deed(f"{path}/extend", f"Extend by {minutes} min", name="minutes", value=str(minutes))
    for act, (words, question, yes) in _OF_ONE.items():
        if possible[act]:
            yield Deed(f"{path}/{act}", words, question, yes)


def _nothing(view: LabView, namespace: str, pod: str) -> Iterable[Deed]:  # noqa: ARG001 (as its sibling has it)
    """Yield nothing."""
    return ()


_log: Final = structlog.get_logger(__name__)
HEADINGS: Final = (
    ("learner", "Learner"),
    ("state", "State"),
    ("started", "Works"),
    ("devices", "Devices"),
    ("left", "Time left"),
    ("reason", "What holds it up"),
)
_FORM: Final = {form.act for form in FORMS}


def routes(site: SiteContext, live: Live, places: Places) -> tuple[Route, ...]:
    """Return the paths.

    Args:
        site: What every view is given.
        live: Has the pages change by themselves.
        places: Of downloads of configurations, of all pages.
    """
    classrooms = Classrooms(site.index, site.lablets, site.instructors, site.callers)
    acting = Acting(site, classrooms)
    requests = ClassRequests(site, classrooms)
    assigning, handing_out = Assigning(site, requests), HandingOut(site, classrooms, requests)
    pools, definitions, guests = PoolsPage(site, requests), DefinitionsPage(site, requests), GuestsPage(site, requests)
    view = Classes(site, live, classrooms, acting, requests)
    lablets = ClassLablets(site, live, classrooms, acting)
    work = WorkPage(site, classrooms, requests, site.left, places)
    post = site.visitors.posting
    for source in (view.grid.source(), lablets.source()):
        live.topics.register(source)
    return (
        Route("GET", "/classes", view.list),
        Route("GET", "/classes/{namespace}", view.show),
        Route("GET", "/classes/{namespace}/csv", view.csv),
        Route("GET", "/classes/{namespace}/hand-out", handing_out.show),
        Route("GET", "/classes/{namespace}/hand-out/csv", handing_out.csv),
        Route("GET", "/classes/{namespace}/wall", Wall(site, classrooms, requests).show),
        Route("GET", "/classes/{namespace}/work", work.show),
        Route("GET", "/classes/{namespace}/work/grades.csv", work.csv),
        Route("GET", "/classes/{namespace}/work/now.zip", work.running),
        Route("GET", "/classes/{namespace}/work/left.zip", work.gone),
        Route("GET", "/classes/{namespace}/definitions", definitions.show),
        Route("POST", "/classes/{namespace}/definitions", post(definitions.make, FILE_BODY)),
        Route("POST", "/classes/{namespace}/definitions/{definition}/trials", post(definitions.begin)),
        Route("POST", "/classes/{namespace}/definitions/{definition}/trials/{pod}", post(definitions.remove)),
        Route("GET", "/classes/{namespace}/pools", pools.show),
        Route("POST", "/classes/{namespace}/pools", post(pools.make)),
        Route("POST", "/classes/{namespace}/pools/{pool}", post(pools.scale)),
        Route("GET", "/classes/{namespace}/assign", assigning.show),
        Route("POST", "/classes/{namespace}/assign", post(assigning.give, LIST_BODY)),
        Route("GET", "/classes/{namespace}/assign/check", assigning.back),
        Route("POST", "/classes/{namespace}/assign/check", post(assigning.check, LIST_BODY)),
        Route("GET", "/classes/{namespace}/{action}", view.back),
        Route("POST", "/classes/{namespace}/{action}", post(view.act)),
        Route("GET", "/classes/{namespace}/lablets/{pod}", lablets.show),
        Route("GET", "/classes/{namespace}/lablets/{pod}/guests", guests.show),
        Route("POST", "/classes/{namespace}/lablets/{pod}/guests", post(guests.add)),
        Route("POST", "/classes/{namespace}/lablets/{pod}/guests/end", post(guests.remove)),
        Route("POST", "/classes/{namespace}/lablets/{pod}/{action}", post(lablets.act)),
    )


class Classes:
    """The handlers."""

    def __init__(
        self,
        site: SiteContext,
        live: Live,
        classrooms: Classrooms,
        acting: Acting,
        requests: ClassRequests,
    ) -> None:
        """Create them.

        Args:
            site: What every view is given.
            live: Has the pages change by themselves.
            classrooms: The classes.
            acting: Asks lablets.
            requests: Finds the class and the sender of each.
        """
        self._site = site
        self._live = live
        self._classrooms = classrooms
        self._acting = acting
        self._requests = requests
        self.grid = Grid(site, classrooms)

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Show the classes of a visitor."""
        visitor = await self._site.visitors.of(request)
        found = await self._classrooms.of(visitor.known)
        return self._site.layout.render(request, "classes/list.html", classes=found, path_of=path_of)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show a class."""
        namespace, visitor = await self._requests.taught(request)
        wish, labs = wish_of(request.query), self._classrooms.labs(namespace)
        powers = await powers_of(self._site.callers, visitor, namespace, labs)
        topic = topic_of(namespace, wish)
        shown = self._live.topics.now(KIND, topic, powers.role, request.get(BASE, ""))
        if shown is None:
            raise web.HTTPNotFound
        parts = {name: Markup(html) for name, html in shown.rendered.elements.items()}  # noqa: S704 (of our templates, which escape)
        rows = [Markup(html) for html in shown.rendered.lists[ROWS].values()]  # noqa: S704 (as above)
        return self._site.layout.render(
            request,
            "classes/grid.html",
            namespace=namespace,
            path=path_of(namespace),
            wish=wish,
            topic=f"{KIND}:{topic}",
            version=shown.version,
            counts=parts["class-counts"],
            held=parts["class-held"],
            everybody=parts["class-everybody"],
            rows=rows,
            headings=[(name, words, _sorted(wish, name)) for name, words in HEADINGS],
            query=topic.removeprefix(namespace),
            states=[each.value for each in Standing],
            forms=offered(powers.acts),
            gives=await self._requests.may(visitor, namespace, giving_rights),
            pools=await self._requests.may(visitor, namespace, pool_rights),
            minutes=MINUTES,
            usual_minutes=USUAL_MINUTES,
        )

    async def csv(self, request: web.Request) -> web.StreamResponse:
        """Answer with the rows of a class as a file."""
        namespace, _ = await self._requests.taught(request)
        return csv_answer(as_csv(chosen(self._classrooms.rows(namespace), wish_of(request.query))), namespace)

    async def back(self, request: web.Request) -> web.StreamResponse:
        """Lead who loads the answer to a form again to the class: nothing is done twice."""
        await self._site.visitors.of(request)
        if request.match_info["action"] not in _FORM:
            raise web.HTTPNotFound
        raise web.HTTPSeeOther(link(request, path_of(request.match_info["namespace"])))

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Ask many lablets, and show what became of each."""
        (namespace, visitor), action = await self._requests.taught(request), request.match_info["action"]
        powers = await powers_of(self._site.callers, visitor, namespace, self._classrooms.labs(namespace))
        if action not in _FORM:
            raise web.HTTPNotFound
        if action not in powers.acts:
            return self._site.layout.refusal(request, 403, "You may look at this class, and do nothing in it.")
        form = await read_form(request, FORM_BODY)
        wanted = wanted_of(action, form)
        everything = chosen(self._classrooms.rows(namespace), RowFilter())
        picked, scope = [str(tick) for tick in form.getall("row", [])], str(form.get("scope", ""))
        rows, gone = rows_of(picked, scope, everything), passed_on(picked, scope, everything)
        if isinstance(wanted, str) or (isinstance(rows, str) and not gone):
            return self._site.layout.refusal(request, 422, wanted if isinstance(wanted, str) else str(rows))
        asked = [] if isinstance(rows, str) else await self._acting.ask(visitor, namespace, rows, wanted)
        outcomes = [*gone, *asked]
        failed = sum(not each.done for each in outcomes)
        _log.info(
            "a class was asked",
            namespace=namespace,
            act=action,
            by=visitor.known.of_cluster.username,
            lablets=len(outcomes),
            failed=failed,
        )
        return self._site.layout.render(
            request,
            "classes/_outcome.html" if PIECE in request.headers else "classes/outcome.html",
            namespace=namespace,
            path=path_of(namespace),
            headline=headline(action, outcomes),
            outcomes=sorted(outcomes, key=lambda each: each.done),
            failed=failed,
            notes=(),
            links={},
            gave=False,
        )


def _sorted(wish: RowFilter, name: str) -> tuple[str, str]:
    """Return the query of the link that sorts by a column, and how the column is sorted now; "" if it is not."""
    is_now = wish.sort == name
    query = topic_of("", wish._replace(sort=name, falling=is_now and not wish.falling))
    now = ("descending" if wish.falling else "ascending") if is_now else ""
    return query or "?", now
