"""The guests of a lablet, who share it with its learner: the page on which an instructor names them."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import structlog
from aiohttp import web

from vkprovider.classroom.sharing import SharedLablet, share, unshare
from vkprovider.lablet.guests import GUESTS_MAX, GuestMode, guests_in
from vkprovider.lablet.standing import learner_in
from vkprovider.platform.http.bodies import read_form
from vkprovider.platform.objects import Pod
from vkprovider.platform.rights import Right
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.classes.classrooms import ClassRequests
from vkprovider.portal.web.classes.giving import as_visitor, has_links, notes_of
from vkprovider.portal.web.lab.pieces import check_learner, lablet_place
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.links import LINK_BASE
from vkprovider.portal.web.login import address_of
from vkprovider.portal.web.visitors import FORM_BODY, Visitor, link

_log: Final = structlog.get_logger(__name__)
_LOOK_ONLY: Final = "You may look at this class, and let nobody into its lablets."


def sharing_rights(namespace: str) -> tuple[Right, ...]:
    """Return what it takes to name guests: the Pod is written, and the binding of its assignment."""
    return Right("patch", "pods", namespace), Right(
        "create", "rolebindings", namespace, group="rbac.authorization.k8s.io"
    )


class SharedPlace(NamedTuple):
    """A lablet, and who names guests of it.

    Attributes:
        namespace: Of the class.
        pod: The lablet.
        visitor: Who teaches the class.
        path: Of the page.
    """

    namespace: str
    pod: Pod
    visitor: Visitor
    path: str


@dataclass(frozen=True, eq=False, slots=True)
class GuestsPage:
    """The handlers.

    Attributes:
        site: What every view is given.
        requests: Finds the class and the sender of each.
    """

    site: SiteContext
    requests: ClassRequests

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the guests of a lablet, and the form for one more."""
        return self._page(request, await self._place(request))

    async def add(self, request: web.Request) -> web.StreamResponse:
        """Let a guest in, or change what a guest does; a link is shown at once, for it cannot be shown again."""
        place, form = await self._place(request), await read_form(request, FORM_BODY)
        guest = str(form.get("guest", "")).strip()
        try:
            mode = GuestMode(str(form.get("mode", "")))
        except ValueError:
            raise Rejected(Grounds.INVALID_BODY, "Say whether the guest watches or types.") from None
        wants_link = form.get("link") == "yes" and has_links(self.site, request)
        learner = check_learner(form, learner_in(place.pod))
        name = place.pod.metadata.name
        async with as_visitor(self.site, place.visitor, "Nothing was done") as kube:
            found = await share(kube, place.namespace, name, guest, mode, link=wants_link, learner=learner)
        self._tell(place, guest, mode)
        return self._answer(request, place, found)

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Let a guest in no more."""
        place, form = await self._place(request), await read_form(request, FORM_BODY)
        guest, learner = str(form.get("guest", "")), check_learner(form, learner_in(place.pod))
        async with as_visitor(self.site, place.visitor, "Nothing was done") as kube:
            found = await unshare(kube, place.namespace, place.pod.metadata.name, guest, learner=learner)
        self._tell(place, guest, None)
        return self._answer(request, place, found)

    def _answer(self, request: web.Request, place: SharedPlace, found: SharedLablet) -> web.StreamResponse:
        notes = (*found.closed, *notes_of(found.links))
        if not notes and not found.links.codes:
            raise web.HTTPSeeOther(link(request, place.path))
        made = {guest: f"{address_of(request, LINK_BASE)}#{code.text}" for guest, code in found.links.codes.items()}
        return self._page(request, place, dict(found.pod.guests), notes, made)

    def _page(
        self,
        request: web.Request,
        place: SharedPlace,
        guests: dict[str, GuestMode] | None = None,
        notes: tuple[str, ...] = (),
        links: dict[str, str] | None = None,
    ) -> web.StreamResponse:
        """Show the page.

        Args:
            request: What it answers.
            place: The lablet.
            guests: As they were just written; None: as the Pod is known to name them.
            notes: What is to be said.
            links: Those that were made now, by guest.
        """
        meta = place.pod.metadata
        return self.site.layout.render(
            request,
            "classes/guests.html",
            namespace=place.namespace,
            lablet=meta.name,
            above=lablet_place(place.namespace, meta.name).path,
            here=place.path,
            learner=learner_in(place.pod),
            guests=guests_in(meta.annotations) if guests is None else guests,
            most=GUESTS_MAX,
            notes=notes,
            links=links or {},
            linkable=has_links(self.site, request),
        )

    async def _place(self, request: web.Request) -> SharedPlace:
        """Return the lablet of a request, and its sender.

        Raises:
            HTTPNotFound: The sender does not teach the class, or there is no such lablet.
            Rejected: The sender may let nobody in, or the lablet has no learner.
            Refused: 401, 429, or 503.
        """
        namespace, visitor = await self.requests.allowed(request, sharing_rights, _LOOK_ONLY)
        pod = self.site.lablets.pod(namespace, request.match_info["pod"])
        if pod is None:
            raise web.HTTPNotFound
        if not learner_in(pod):
            raise Rejected(Grounds.CANNOT_BE_DONE, "Nobody has this lablet: give it to a learner first.")
        return SharedPlace(namespace, pod, visitor, f"{lablet_place(namespace, pod.metadata.name).path}/guests")

    def _tell(self, place: SharedPlace, guest: str, mode: GuestMode | None) -> None:
        by, pod = place.visitor.known.of_cluster.username, place.pod.metadata.name
        _log.info("a lablet was shared", namespace=place.namespace, pod=pod, guest=guest, mode=mode or "ended", by=by)
