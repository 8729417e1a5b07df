"""Where a visitor lands: the own labs, the own classes, and what may be started; one thing is shown at once."""

import asyncio
from collections import OrderedDict
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple
from urllib.parse import quote

from aiohttp import web
from markupsafe import Markup

from vkprovider.platform.rights import Right
from vkprovider.platform.runtime.parts import Route
from vkprovider.platform.times import iso
from vkprovider.portal.api.callers import KnownCaller
from vkprovider.portal.pure.portalnames import user_of
from vkprovider.portal.pure.view import LabView, from_pod
from vkprovider.portal.service.keeper import Instructors
from vkprovider.portal.web.classes.classrooms import Classrooms, ShownClass, path_of
from vkprovider.portal.web.lab.given import given_lablets, given_place, names_of
from vkprovider.portal.web.lab.pieces import LabPaths, user_place
from vkprovider.portal.web.lab.routes import LabTopics, offer_for
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.live.streams import Live, merged
from vkprovider.portal.web.live.topics import Rendered, TopicSource, TopicView, time_left
from vkprovider.portal.web.visitors import BASE, Visitor, lead_on, link

_ELSEWHERE: Final = "/{path:(?!nublado/).*}"
"""Every path but those of the routes for hubs."""
MINE: Final = "mine"
CARDS: Final = "my-labs"
"""The id of the element that holds the labs."""
_KEPT_MAX: Final = 1000
_ASKS: Final = Right("create", "selfsubjectaccessreviews", group="authorization.k8s.io")
"""What everybody may whom the cluster knows: who follows their own labs needs no other right."""


class Teachers:
    """Who teaches a class, as far as that is known without a request."""

    def __init__(self, instructors: Instructors) -> None:
        """Know whom RoleBindings name."""
        self._instructors = instructors
        self._others: OrderedDict[str, None] = OrderedDict()

    def teaches(self, visitor: Visitor) -> bool:
        """Return whether there are classes to lead a visitor to."""
        user = visitor.known.of_cluster
        return user.username in self._others or bool(self._instructors.classes_of(user.username, user.groups))

    def note(self, username: str, *, teaches: bool) -> None:
        """Keep in mind whether somebody teaches, whom no RoleBinding of a class names."""
        self._others.pop(username, None)
        if teaches:
            self._others[username] = None
        if len(self._others) > _KEPT_MAX:
            self._others.popitem(last=False)


class _Role(NamedTuple):
    """What the list of somebody's labs depends on beside them, as the word of a role.

    Attributes:
        user: Whose user lab is theirs; "" if they may have none.
        learners: The names by which lablets may call them.
        classes: Those that they attend.
    """

    user: str
    learners: tuple[str, ...]
    classes: tuple[str, ...]

    def word(self) -> str:
        return "\n".join((self.user, "\t".join(self.learners), "\t".join(self.classes)))


def _role_of(word: str) -> _Role:
    user, learners, classes = (part.split("\t") if part else [] for part in word.split("\n"))
    return _Role("".join(user), tuple(learners), tuple(classes))


class MyLabTopics:
    """The list of somebody's labs."""

    def __init__(self, site: SiteContext) -> None:
        self._site = site
        self._labs = LabTopics(site)

    def source(self) -> TopicSource:
        """Return it as a kind of topic: `mine:USERNAME`."""
        return TopicSource(MINE, self.allowed, self.render, self.listen)

    async def allowed(self, visitor: Visitor, name: str) -> TopicView:
        """Return on what the list of a visitor depends.

        Raises:
            HTTPNotFound: It is the list of somebody else.
            Refused: 429, or 503.
        """
        user = visitor.known.of_cluster
        if name != user.username:
            raise web.HTTPNotFound
        owns = await self._site.callers.owns(visitor.known, visitor.user)
        classes = self._site.learners.attended_by(user.username, user.groups)
        role = _Role(visitor.user if owns else "", tuple(sorted(names_of(visitor))), tuple(classes))
        return TopicView(role.word(), _ASKS)

    def listen(self, name: str) -> AbstractAsyncContextManager[asyncio.Event]:
        """Yield an event that is set whenever the list may look different."""
        user = self._user_of(name)
        lablets = self._site.lablets
        theirs = [lablets.listen_learner(each) for each in sorted({name, user} - {""})]
        return merged(self._site.learners.listen(name), self._site.index.listen(user or name), *theirs)

    def render(self, name: str, role: str, base: str) -> Rendered:
        """Return the list of somebody's labs."""
        cards = {key: self._card(key, view, place, base) for key, view, place in self.found(name, _role_of(role))}
        nothing = self._site.layout.html("_no_lab.html", base=base, labs=len(cards)).strip()
        return Rendered({"my-labs-nothing": nothing}, {CARDS: cards})

    def found(self, username: str, role: _Role) -> list[tuple[str, LabView, LabPaths]]:
        """Return somebody's labs, each with the id of its card, and where its page is."""
        labs: list[tuple[str, LabView, LabPaths]] = []
        if role.user and (mine := self._labs.view(role.user)) is not None:
            labs.append(("lab-own", mine, user_place(role.user)))
        now = self._site.ctx.wall()
        for pod in self._site.learners.lablets_of(username, role.learners, role.classes):
            meta = pod.metadata
            status = self._site.index.status_of(pod.spec.runtime_class_name)
            view = from_pod(pod, status, (), now, mine=True)
            labs.append((f"lab-{meta.namespace}_{meta.name}", view, given_place(meta.namespace, meta.name)))
        return labs

    def _card(self, key: str, view: LabView, place: LabPaths, base: str) -> str:
        end, now = view.end_at, self._site.ctx.wall()
        values = {
            "key": key,
            "view": view,
            "path": place.path,
            "end_iso": iso(int(end)) if end is not None else "",
            "left": time_left(end - now) if end is not None else "",
        }
        return self._site.layout.html("_my_lab.html", base=base, **values).strip()

    def _user_of(self, username: str) -> str:
        return user_of(username, self._site.settings.username_prefix) or ""


class Front:
    """The handlers."""

    def __init__(self, site: SiteContext, live: Live, topics: MyLabTopics, teachers: Teachers) -> None:
        """Create them.

        Args:
            site: What they show, and whom they ask.
            live: Renders what changes.
            topics: The lists of labs.
            teachers: Is told who teaches.
        """
        self._site = site
        self._live = live
        self._topics = topics
        self._teachers = teachers
        self._classrooms = Classrooms(site.index, site.lablets, site.instructors, site.callers)

    def routes(self) -> tuple[Route, ...]:
        """Return the paths; they come after all others."""
        return (
            Route("GET", "/", self._front),
            Route("GET", "/labs", self._list),
            Route("GET", _ELSEWHERE, self._nowhere),
        )

    async def _front(self, request: web.Request) -> web.StreamResponse:
        """Lead to the one thing that a visitor has; to all of them if there are several, or none."""
        visitor = await self._site.visitors.of(request)
        role, classes = _role_of(await self._role(visitor)), await self._classes(visitor.known)
        found = self._topics.found(visitor.known.of_cluster.username, role)
        match found, classes:
            case [(_, _, place)], []:
                path = place.path
            case [], [only]:
                path = path_of(only.namespace)
            case [], [] if role.user:
                path = user_place(role.user).path
            case _:
                path = "/labs"
        raise web.HTTPSeeOther(link(request, path))

    async def _list(self, request: web.Request) -> web.StreamResponse:
        """Show a visitor's labs and classes, and what they may start."""
        visitor = await self._site.visitors.of(request)
        username, word = visitor.known.of_cluster.username, await self._role(visitor)
        role, classes = _role_of(word), await self._classes(visitor.known)
        shown = self._live.topics.now(MINE, username, word, request.get(BASE, ""))
        if shown is None:
            raise web.HTTPNotFound
        starts = bool(role.user) and self._site.index.lab(role.user) is None
        return self._site.layout.render(
            request,
            "front.html",
            topic=f"{MINE}:{username}",
            version=shown.version,
            cards=[Markup(html) for html in shown.rendered.lists[CARDS].values()],  # noqa: S704 (of our templates, which escape)
            nothing=Markup(shown.rendered.elements["my-labs-nothing"]),  # noqa: S704 (as above)
            classes=[(each, path_of(each.namespace)) for each in classes],
            offer=await offer_for(self._site, visitor) if starts else None,
            create=f"/labs/{quote(role.user, safe='')}/create",
            is_known=bool(role.user or role.classes or classes or given_lablets(self._site, visitor)),
        )

    async def _role(self, visitor: Visitor) -> str:
        return (await self._topics.allowed(visitor, visitor.known.of_cluster.username)).role

    async def _classes(self, known: KnownCaller) -> list[ShownClass]:
        """Return the classes that somebody teaches; for a learner that takes one review, whatever classes there are."""
        user = known.of_cluster
        teaches = bool(self._site.instructors.classes_of(user.username, user.groups))
        everywhere = not teaches and await self._site.callers.teaches_everywhere(known)
        self._teachers.note(user.username, teaches=everywhere)
        return await self._classrooms.of(known) if teaches or everywhere else []

    async def _nowhere(self, request: web.Request) -> web.StreamResponse:
        lead_on(request)
        await self._site.visitors.of(request)
        raise web.HTTPNotFound


def front_routes(site: SiteContext, live: Live, teachers: Teachers) -> tuple[Route, ...]:
    """Return the paths, which come after all others, and have the lists of labs be followed."""
    topics = MyLabTopics(site)
    live.topics.register(topics.source())
    return Front(site, live, topics, teachers).routes()
