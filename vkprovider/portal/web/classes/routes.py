"""The paths of the view: the classes of an instructor."""

from typing import Final

import structlog
from aiohttp import web
from markupsafe import Markup

from vkprovider.lablet.standings import Standing
from vkprovider.platform.http.bodies import read_form
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.pure.classes import RowFilter, as_csv, chosen, wish_of
from vkprovider.portal.web.classes.acting import (
    FORMS,
    MINUTES,
    USUAL_MINUTES,
    Acting,
    headline,
    offered,
    rows_of,
    wanted_of,
)
from vkprovider.portal.web.classes.classrooms import Classrooms, powers_of
from vkprovider.portal.web.classes.giving import LIST_BODY, Assigning
from vkprovider.portal.web.classes.grid import KIND, ROWS, Grid, path_of, topic_of
from vkprovider.portal.web.classes.lablets import ClassLablets
from vkprovider.portal.web.context import SiteContext
from vkprovider.portal.web.layout import BASE, link
from vkprovider.portal.web.live.streams import Live
from vkprovider.portal.web.visitors import FORM_BODY

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


def routes(site: SiteContext, live: Live) -> tuple[Route, ...]:
    """Return the paths."""
    classrooms = Classrooms(site.index, site.lablets, site.instructors, site.callers)
    acting = Acting(site, classrooms)
    assigning = Assigning(site, classrooms)
    view = Classes(site, live, classrooms, acting, assigning)
    lablets = ClassLablets(site, live, classrooms, acting)
    post = site.visitors.posting
    for source in (view.grid.source(), lablets.source()):
        live.topics.register(source)
    return (
        Route("GET", "/classes", view.list),
        Route("GET", "/classes/{namespace}", view.show),
        Route("GET", "/classes/{namespace}/csv", view.csv),
        Route("GET", "/classes/{namespace}/assign", assigning.show),
        Route("POST", "/classes/{namespace}/assign", post(assigning.give, LIST_BODY)),
        Route("GET", "/classes/{namespace}/{action}", view.back),
        Route("POST", "/classes/{namespace}/{action}", post(view.act)),
        Route("GET", "/classes/{namespace}/lablets/{pod}", lablets.show),
        Route("POST", "/classes/{namespace}/lablets/{pod}/{action}", post(lablets.act)),
    )


class Classes:
    """The handlers."""

    def __init__(
        self, site: SiteContext, live: Live, classrooms: Classrooms, acting: Acting, assigning: Assigning
    ) -> None:
        """Create them.

        Args:
            site: What every view is given.
            live: Has the pages change by themselves.
            classrooms: The classes.
            acting: Asks lablets.
            assigning: Gives lablets to lists of learners.
        """
        self._site = site
        self._live = live
        self._classrooms = classrooms
        self._acting = acting
        self._assigning = assigning
        self.grid = Grid(site, classrooms)

    async def list(self, request: web.Request) -> web.StreamResponse:
        """Show the classes of a visitor."""
        visitor = await self._site.visitors.of(request)
        found = await self._classrooms.of(visitor.known)
        return self._site.layout.render(request, "classes/list.html", classes=found, path_of=path_of)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show a class."""
        namespace, wish = request.match_info["namespace"], wish_of(request.query)
        visitor = await self._site.visitors.of(request)
        await self._classrooms.check(visitor.known, namespace)
        labs = self._classrooms.labs(namespace)
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
            rows=rows,
            headings=[(name, words, _sorted(wish, name)) for name, words in HEADINGS],
            query=topic.removeprefix(namespace),
            states=[each.value for each in Standing],
            forms=offered(powers.acts),
            gives=await self._assigning.may(visitor, namespace),
            minutes=MINUTES,
            usual_minutes=USUAL_MINUTES,
        )

    async def csv(self, request: web.Request) -> web.StreamResponse:
        """Answer with the rows of a class as a file."""
        namespace = request.match_info["namespace"]
        visitor = await self._site.visitors.of(request)
        await self._classrooms.check(visitor.known, namespace)
        rows = chosen(self._classrooms.rows(namespace), wish_of(request.query))
        disposition = {"Content-Disposition": f'attachment; filename="{namespace}.csv"'}
        return web.Response(text=as_csv(rows), content_type="text/csv", charset="utf-8", headers=disposition)

    async def back(self, request: web.Request) -> web.StreamResponse:
        """Lead who loads the answer to a form again to the class: nothing is done twice."""
        await self._site.visitors.of(request)
        if request.match_info["action"] not in _FORM:
            raise web.HTTPNotFound
        raise web.HTTPSeeOther(link(request, path_of(request.match_info["namespace"])))

    async def act(self, request: web.Request) -> web.StreamResponse:
        """Ask many lablets, and show what became of each."""
        namespace, action = request.match_info["namespace"], request.match_info["action"]
        visitor = await self._site.visitors.of(request)
        await self._classrooms.check(visitor.known, namespace)
        powers = await powers_of(self._site.callers, visitor, namespace, self._classrooms.labs(namespace))
        if action not in _FORM:
            raise web.HTTPNotFound
        if action not in powers.acts:
            return self._site.layout.refusal(request, 403, "You may look at this class, and do nothing in it.")
        form = await read_form(request, FORM_BODY)
        wanted = wanted_of(action, form)
        everything = chosen(self._classrooms.rows(namespace), RowFilter())
        rows = rows_of([str(key) for key in form.getall("row", [])], str(form.get("scope", "")), everything)
        if isinstance(wanted, str) or isinstance(rows, str):
            words = wanted if isinstance(wanted, str) else str(rows)
            return self._site.layout.refusal(request, 422, words)
        outcomes = await self._acting.ask(visitor, namespace, rows, wanted)
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
            "classes/outcome.html",
            namespace=namespace,
            path=path_of(namespace),
            headline=headline(action, outcomes),
            outcomes=sorted(outcomes, key=lambda each: each.done),
            failed=failed,
        )


def _sorted(wish: RowFilter, name: str) -> tuple[str, str]:
    """Return the query of the link that sorts by a column, and how the column is sorted now; "" if it is not."""
    is_now = wish.sort == name
    query = topic_of("", wish._replace(sort=name, falling=is_now and not wish.falling))
    now = ("descending" if wish.falling else "ascending") if is_now else ""
    return query or "?", now
