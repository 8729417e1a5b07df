"""The page of one lablet of a class, for its instructors."""

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from aiohttp import web

from vkprovider.lablet.standings import Standing
from vkprovider.platform.http.bodies import read_form
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.pure.view import LabView
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.classes.acting import OF_LABLETS, USUAL_MINUTES, Acting, wanted_of
from vkprovider.portal.web.classes.classrooms import Classrooms, powers_of
from vkprovider.portal.web.classes.grid import path_of
from vkprovider.portal.web.context import SiteContext
from vkprovider.portal.web.lab.pieces import Deed, lab_page, lablet_place
from vkprovider.portal.web.lab.topics import LABLET, LabletTopics
from vkprovider.portal.web.layout import BASE, link
from vkprovider.portal.web.live.rendered import Rendered
from vkprovider.portal.web.live.streams import Live
from vkprovider.portal.web.live.topics import TopicSource, TopicView
from vkprovider.portal.web.visitor import Visitor
from vkprovider.portal.web.visitors import FORM_BODY

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
        wanted = wanted_of(action, await read_form(request, FORM_BODY))
        if isinstance(wanted, str):
            raise Rejected(Grounds.INVALID_BODY, wanted)
        [outcome] = await self._acting.ask(visitor, namespace, rows, wanted)
        if not outcome.done:
            raise Rejected(Grounds.CANNOT_EXTEND, f"Nothing was done: {outcome.words}.")
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
