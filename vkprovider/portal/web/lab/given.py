"""The page of a lablet of a class for the learner who has it, and what they may ask of it.

All is done with the learner's own token: consoles and configurations by `exec`, as everywhere; so are handing in and a
reset, which the provider serves inside `exec -c lab`. The portal has no right for any of it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from aiohttp import web

from vkprovider.lablet import names
from vkprovider.lablet.guests import GuestMode
from vkprovider.lablet.standings import Standing
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.objects import Pod
from vkprovider.platform.rights import Right
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.api.callers import lab_right
from vkprovider.portal.pure.given import admits, is_of, mode_of
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.pure.view import LabView, from_pod
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.consoles import frames
from vkprovider.portal.web.consoles.bridge import printed
from vkprovider.portal.web.consoles.frames import Why
from vkprovider.portal.web.consoles.opening import ConsoleTarget
from vkprovider.portal.web.lab.pieces import WIPES, Audience, Deed, LabPaths, lab_page, pieces
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.live.streams import Live
from vkprovider.portal.web.live.topics import Rendered, TopicSource, TopicView
from vkprovider.portal.web.visitors import BASE, Visitor, link

GIVEN: Final = "given"
_OPENS: Final = "opens"
_COMMANDS: Final = "commands"
_LOOKS: Final = "looks"
"""The roles: who opens consoles here; who has no token here and is told the commands; who may only look."""
ACTS: Final = (names.RESET, names.HAND_IN)
MY_LABS: Final = ("My labs", "/labs")


class GivenLablet(NamedTuple):
    """A lablet of a class, for the learner who has it, or a guest.

    Attributes:
        right: By which they see it.
        opens: Whether they may open consoles.
        guest: What a guest does at its consoles; None: it is the learner's own.
    """

    pod: Pod
    right: Right
    opens: bool
    guest: GuestMode | None = None


def given_place(namespace: str, pod: str) -> LabPaths:
    """Return where a learner's page of a lablet of a class is."""
    return LabPaths(f"/lablets/{quote(namespace, safe='')}/{quote(pod, safe='')}", f"{GIVEN}:{namespace}/{pod}")


def given_lablets(site: SiteContext, visitor: Visitor) -> list[Pod]:
    """Return the lablets of classes that a visitor has, or is a guest of, by namespace and name, without a request."""
    user = visitor.known.of_cluster
    classes = site.learners.attended_by(user.username, user.groups)
    return site.learners.lablets_of(user.username, names_of(visitor), classes)


def names_of(visitor: Visitor) -> frozenset[str]:
    """Return the names by which lablets may call a visitor."""
    return frozenset({visitor.user, visitor.known.of_cluster.username} - {""})


async def given_to(site: SiteContext, visitor: Visitor, namespace: str, name: str) -> GivenLablet:
    """Return a lablet of a class that a visitor has, or is a guest of.

    One that names somebody else takes no review: anybody may write names into an address.

    Raises:
        HTTPNotFound: It is not theirs, whether it exists or not.
        Refused: 429, or 503.
    """
    pod, only = site.lablets.pod(namespace, name), visitor.only
    if pod is None or not admits(pod, names_of(visitor)):
        raise web.HTTPNotFound
    guest = None if is_of(pod, names_of(visitor)) else mode_of(pod, names_of(visitor))
    if only is not None and (only.namespace, only.pod) != (namespace, name):
        raise web.HTTPNotFound
    exec_right = Right("create", "pods/exec", namespace, name)
    if await site.callers.may(visitor.known, exec_right):
        return GivenLablet(pod, exec_right, opens=True, guest=guest)
    if guest is None and await site.callers.attends(visitor.known, namespace):
        return GivenLablet(pod, lab_right("attend", namespace), opens=False)
    raise web.HTTPNotFound


def typing_in(site: SiteContext, visitor: Visitor, pod: Pod) -> Callable[[], bool]:
    """Return what tells whether a visitor who types in a lablet may go on: a guest may only watch by now."""
    meta, known_as = pod.metadata, names_of(visitor)

    def may_type() -> bool:
        now = site.lablets.pod(meta.namespace, meta.name)
        return now is None or is_of(now, known_as) or mode_of(now, known_as) is not GuestMode.WATCH

    return may_type


def deeds_for_learner(view: LabView, path: str) -> Iterable[Deed]:
    """Yield what a learner may do with a lablet of a class now."""
    if view.reset.possible:
        question = "All devices are wiped and start again. What was typed on them is lost, unless you download it."
        yield Deed(f"{path}/{names.RESET}", "Reset the lab", question, "Reset it now", done=WIPES)
    if view.stop.possible or view.standing is Standing.STOPPED:
        question = "Your work is collected, and your time with this lab ends now. It does not come back."
        yield Deed(
            f"{path}/{names.HAND_IN}", "Hand in", question, "Hand it in now", done="Your work is being collected."
        )


async def have_done(site: SiteContext, visitor: Visitor, target: ConsoleTarget, words: Sequence[str]) -> None:
    """Have the provider do what is served inside `exec -c lab`, by the visitor's own right; no question is asked.

    Raises:
        Rejected: It was not done; the text says why.
    """
    async with site.as_visitor.client(visitor.token) as kube:
        try:
            _, end = await printed(kube, target, words)
        except OutsideError as error:
            end = frames.refusal(error, target.device)
    if end.why is not Why.ENDED:
        raise Rejected(Grounds.CANNOT_RESET, f"Nothing was done. {end.text}")


class GivenTopics:
    """The lablets of classes, as those see them who have them."""

    def __init__(self, site: SiteContext) -> None:
        self._site = site

    def source(self) -> TopicSource:
        """Return them as a kind of topic: `given:net101/bob-0`."""
        return TopicSource(GIVEN, self.allowed, self.render, self._site.lablets.listen_to)

    async def allowed(self, visitor: Visitor, name: str) -> TopicView:
        """Return in which role somebody sees the lablet that they have: with their names, which end with it.

        Raises:
            HTTPNotFound: In none, whether there is one or not.
            Refused: 429, or 503.
        """
        namespace, _, pod = name.partition("/")
        found = await given_to(self._site, visitor, namespace, pod)
        word = _LOOKS if not found.opens else _OPENS if visitor.token else _COMMANDS
        return TopicView("\n".join((word, *sorted(names_of(visitor)))), found.right)

    def render(self, name: str, role: str, base: str) -> Rendered | None:
        """Return what a lablet looks like for its learner; None if it is gone, or another learner's now."""
        namespace, _, pod_name = name.partition("/")
        word, *learners = role.split("\n")
        pod = self._site.lablets.pod(namespace, pod_name)
        if pod is None or not admits(pod, learners):
            return None
        guest = None if is_of(pod, learners) else mode_of(pod, learners)
        now, place = self._site.ctx.wall(), given_place(namespace, pod_name)
        view = from_pod(pod, self._site.index.status_of(pod.spec.runtime_class_name), (), now, mine=guest is None)
        deeds = deeds_for_learner(view, place.path) if word == _OPENS and guest is None else ()
        audience = Audience(consoles=word == _OPENS, mine=guest is None, locked=word == _LOOKS, guest=guest)
        return Rendered(pieces(self._site.layout, view, place, deeds, audience, base, now))


class GivenPages:
    """The handlers."""

    def __init__(self, site: SiteContext, live: Live, topics: GivenTopics) -> None:
        """Create them.

        Args:
            site: What they show, and whom they ask.
            live: Renders what changes.
            topics: The lablets.
        """
        self._site = site
        self._live = live
        self._topics = topics

    def routes(self) -> tuple[Route, ...]:
        """Return the paths."""
        page = "/lablets/{namespace}/{pod}"
        return (
            Route("GET", page, self._show),
            Route("POST", f"{page}/{{action}}", self._site.visitors.posting(self._act)),
        )

    async def _show(self, request: web.Request) -> web.StreamResponse:
        namespace, pod = request.match_info["namespace"], request.match_info["pod"]
        visitor = await self._site.visitors.of(request)
        role = (await self._topics.allowed(visitor, f"{namespace}/{pod}")).role
        shown = self._live.topics.now(GIVEN, f"{namespace}/{pod}", role, request.get(BASE, ""))
        if shown is None:
            raise web.HTTPNotFound
        place, crumbs = given_place(namespace, pod), [MY_LABS] if visitor.only is None else []
        return lab_page(request, self._site.layout, shown, place, title=f"Lab of {namespace}", crumbs=crumbs)

    async def _act(self, request: web.Request) -> web.StreamResponse:
        """Do what the learner asks for, by their own right, and lead back to the page."""
        namespace, name, action = (request.match_info[key] for key in ("namespace", "pod", "action"))
        visitor = await self._site.visitors.of(request)
        found = await given_to(self._site, visitor, namespace, name)
        if action not in ACTS or not found.opens or found.guest is not None:
            raise web.HTTPNotFound
        containers = found.pod.spec.containers
        target = ConsoleTarget(namespace, name, containers[0].name if containers else names.LAB_CONTAINER, "the lab")
        await have_done(self._site, visitor, target, (action, "--yes"))
        raise web.HTTPSeeOther(link(request, given_place(namespace, name).path))


def given_routes(site: SiteContext, live: Live) -> tuple[Route, ...]:
    """Return the paths, and have given lablets be followed."""
    topics = GivenTopics(site)
    live.topics.register(topics.source())
    return GivenPages(site, live, topics).routes()
