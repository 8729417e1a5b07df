"""A list of learners gets the lablets of a pool: the form of the class's page, and what became of each learner."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import structlog
from aiohttp import web

from vkprovider.classroom.deployments import DEPLOYMENTS, Deployment, GivingError
from vkprovider.classroom.giving import Given, give_all, preview
from vkprovider.classroom.links import LinkRound
from vkprovider.classroom.pods import Assignment
from vkprovider.classroom.pools import scale
from vkprovider.classroom.preview import GivingPreview
from vkprovider.classroom.roster import Roster, RosterError, as_list, read_roster
from vkprovider.classroom.sharing import SharingError
from vkprovider.lablet.inputs import inputs_of
from vkprovider.platform.errors import Forbidden, InputError, OutsideError
from vkprovider.platform.http.bodies import FORM, FORM_WITH_FILES, Body, File, read_form
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import Metadata
from vkprovider.platform.rights import Right
from vkprovider.platform.times import iso
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.classes.acting import Outcome
from vkprovider.portal.web.classes.classrooms import ClassRequests, path_of
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.links import LINK_BASE
from vkprovider.portal.web.login import address_of
from vkprovider.portal.web.visitors import BASE, Visitor, link

_log: Final = structlog.get_logger(__name__)
_HOURS: Final = {"1": 1, "2": 2, "3": 3, "4": 4, "6": 6, "8": 8, "": 0}
"""For how long learners get a lablet, by the field of the form; 0: without an end."""
_HOUR_S: Final = 3600
_LIST_BYTES_MAX: Final = 256 * 1024
LIST_BODY: Final = Body(1 << 20, (FORM, FORM_WITH_FILES))
"""A list as text or as a file."""
_SHOWN_MAX: Final = 5
_DIGITS_MAX: Final = 5


class Pools(NamedTuple):
    """The pools of a class.

    Attributes:
        names: Of their Deployments.
        fault: Why they are not known; "" if they are.
    """

    names: tuple[str, ...] = ()
    fault: str = ""


class AskedList(NamedTuple):
    """What a form asks for.

    Attributes:
        roster: The list.
        wishes: Who is to have a lablet, and until when.
        pool: Of which Deployment.
        hours: For how long, as the form has it.
        refill: Whether the pool makes new lablets for those that are given.
        alike: Whether names that differ in case only are meant.
        links: Whether each learner gets a link that opens the lablet without an account.
        replicas: How many free lablets the pool is to have first; None: as many as it has.
        seen: How many it was to have when that was decided.
    """

    roster: Roster
    wishes: list[Assignment]
    pool: str
    hours: str
    refill: bool = False
    alike: bool = False
    links: bool = False
    replicas: int | None = None
    seen: int = 0


def giving_rights(namespace: str) -> tuple[Right, ...]:
    """Return what it takes to give lablets of a class: its Deployments and its Pods are written."""
    return Right("patch", "deployments", namespace, group="apps"), Right("patch", "pods", namespace)


_LOOK_ONLY: Final = "You may look at this class, and give none of its lablets."


@dataclass(frozen=True, eq=False, slots=True)
class Assigning:
    """The handlers.

    Attributes:
        site: What every view is given.
        requests: Finds the class and the sender of each.
    """

    site: SiteContext
    requests: ClassRequests

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the form."""
        namespace, visitor = await self.requests.allowed(request, giving_rights, _LOOK_ONLY)
        pools = await self._pools(visitor, namespace)
        return self.site.layout.render(
            request,
            "classes/assign.html",
            namespace=namespace,
            path=path_of(namespace),
            pools=pools.names,
            fault=pools.fault,
            hours=[text for text in _HOURS if text],
            linkable=has_links(self.site, request),
        )

    async def check(self, request: web.Request) -> web.StreamResponse:
        """Show what would become of a list, and give nothing; with the button for it the pool is scaled before."""
        namespace, visitor = await self.requests.allowed(request, giving_rights, _LOOK_ONLY)
        asked = asked_of(await read_form(request, LIST_BODY), self.site.ctx.wall())
        async with as_visitor(self.site, visitor, "Nothing was given") as kube:
            if asked.replicas is not None:
                await scale(kube, namespace, asked.pool, asked.replicas, seen=asked.seen)
            found = await preview(kube, namespace, asked.pool, asked.wishes, refill=asked.refill)
        return self._preview(request, namespace, asked, found)

    async def give(self, request: web.Request) -> web.StreamResponse:
        """Give lablets to a list of learners, and show what became of each; names that are alike are asked about."""
        namespace, visitor = await self.requests.allowed(request, giving_rights, _LOOK_ONLY)
        asked = asked_of(await read_form(request, LIST_BODY), self.site.ctx.wall())
        async with as_visitor(self.site, visitor, "Nothing was given") as kube:
            if not asked.alike:
                found = await preview(kube, namespace, asked.pool, asked.wishes, refill=asked.refill)
                if found.alike:
                    return self._preview(request, namespace, asked, found)
            links = asked.links and has_links(self.site, request)
            given = await give_all(kube, namespace, asked.pool, asked.wishes, refill=asked.refill, links=links)
        outcomes = outcomes_of(given, asked.wishes)
        failed = sum(not each.done for each in outcomes)
        by, number = visitor.known.of_cluster.username, len(outcomes)
        _log.info("lablets were given", namespace=namespace, pool=asked.pool, by=by, learners=number, failed=failed)
        return self.site.layout.render(
            request,
            "classes/outcome.html",
            namespace=namespace,
            path=path_of(namespace),
            headline=f"Have a lab: {number - failed} of {number}",
            outcomes=sorted(outcomes, key=lambda each: each.done),
            failed=failed,
            notes=[*asked.roster.notes, *given.closed, *notes_of(given.links)],
            links={
                learner: f"{address_of(request, LINK_BASE)}#{code.text}" for learner, code in given.links.codes.items()
            },
            gave=True,
        )

    async def back(self, request: web.Request) -> web.StreamResponse:
        """Lead who loads a preview again to the form: nothing is kept of what was sent."""
        await self.site.visitors.of(request)
        raise web.HTTPSeeOther(link(request, f"{path_of(request.match_info['namespace'])}/assign"))

    def _preview(
        self, request: web.Request, namespace: str, asked: AskedList, found: GivingPreview
    ) -> web.StreamResponse:
        fates = [
            *((learner, "lacks one", "bad") for learner in found.lacks),
            *((learner, "gets one", "good") for learner in found.gets),
            *((learner, f"keeps {pod}", "idle") for learner, pod in found.keeps),
        ]
        return self.site.layout.render(
            request,
            "classes/preview.html",
            namespace=namespace,
            path=path_of(namespace),
            found=found,
            fates=[(learner, found.shown.get(learner, ""), words, tone) for learner, words, tone in fates],
            named=bool(found.shown),
            names=as_list(asked.roster),
            hours=asked.hours,
            refill=asked.refill,
            links=asked.links,
            notes=asked.roster.notes,
        )

    async def _pools(self, visitor: Visitor, namespace: str) -> Pools:
        """Read the pools of a class with the visitor's token."""
        try:
            async with self.site.as_visitor.client(visitor.token) as kube:
                found = await Resource(kube, DEPLOYMENTS, namespace).list()
        except (OutsideError, InputError) as error:
            return Pools(fault=str(error))
        return Pools(tuple(sorted(each.metadata.name for each in found if _is_pool(each))))


def has_links(site: SiteContext, request: web.Request) -> bool:
    """Return whether links open anything at the address of a request: behind a hub or an ingress there are none."""
    bases = {"", *(each.base for each in site.settings.addresses)}
    return site.settings.callers != "headers" and request.get(BASE, "") in bases


@asynccontextmanager
async def as_visitor(site: SiteContext, visitor: Visitor, nothing: str) -> AsyncIterator[KubeClient]:
    """Yield a client with a visitor's token, and say what it fails with.

    Args:
        site: What every view is given.
        visitor: Whose token.
        nothing: What did not happen, such as `Nothing was given`.

    Raises:
        Rejected: What was asked cannot be done.
    """
    try:
        async with site.as_visitor.client(visitor.token) as kube:
            yield kube
    except (GivingError, SharingError) as error:
        raise Rejected(Grounds.CANNOT_BE_DONE, f"{nothing}: {error}.") from error
    except Forbidden as error:
        raise Rejected(Grounds.PERMISSION_DENIED, f"{nothing}: {error.message}") from error
    except (OutsideError, InputError) as error:
        raise Rejected(Grounds.UNAVAILABLE, f"The API server did not do it: {error}; send it again") from error


def wishes_of(roster: Roster, hours: str, now: float) -> list[Assignment]:
    """Return who is to have a lablet, and until when.

    Args:
        roster: The list.
        hours: The field of the form that says for how long.
        now: Unix seconds.

    Raises:
        Rejected: The time cannot be used.
    """
    if hours not in _HOURS:
        raise Rejected(Grounds.INVALID_BODY, "Say for how many hours the learners get a lablet.")
    end = iso(int(now) + _HOURS[hours] * _HOUR_S) if _HOURS[hours] else ""
    wishes = [Assignment(learner.user, end=end, shown=learner.shown) for learner in roster.learners]
    faults = [fault for wish in wishes for fault in inputs_of(Metadata("", annotations=wish.annotations())).faults]
    if faults:
        raise Rejected(Grounds.INVALID_BODY, f"Nothing was given: {faults[0]}.")
    return wishes


def asked_of(form: Mapping[str, Any], now: float) -> AskedList:
    """Return what a form asks for.

    Args:
        form: Its fields.
        now: Unix seconds.

    Raises:
        Rejected: It cannot be used.
    """
    roster, hours = roster_of(form), str(form.get("hours", ""))
    replicas, seen = (number_of(str(form.get(field, ""))) for field in ("replicas", "seen"))
    return AskedList(
        roster,
        wishes_of(roster, hours, now),
        str(form.get("pool", "")),
        hours,
        refill=form.get("refill") == "yes",
        alike=form.get("alike") == "yes",
        links=form.get("links") == "yes",
        replicas=replicas,
        seen=seen or 0,
    )


def number_of(text: str) -> int | None:
    """Return the number that a field has; None if it has none."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS_MAX else None


def outcomes_of(given: Given, wishes: list[Assignment]) -> list[Outcome]:
    """Return what became of each learner of a list."""
    why = listed(given.done.hindrances, _SHOWN_MAX) or "none was made yet"
    short = "; ".join([f"got none, for no lablet is free: {why}", *given.faults])
    having = given.done.given
    return [
        Outcome(wish.user, done=True, words=f"has {having[wish.user].metadata.name}", shown=wish.shown)
        if wish.user in having
        else Outcome(wish.user, done=False, words=short, shown=wish.shown)
        for wish in wishes
    ]


def notes_of(made: LinkRound) -> list[str]:
    """Return what is to be said of links beside those that were made."""
    kept = listed(made.kept, _SHOWN_MAX)
    again = f"{kept}: a link of before goes on; make another one with kubectl lablet links --renew"
    return [*([again] if kept else []), *made.faults]


def _is_pool(deployment: Deployment) -> bool:
    return bool(deployment.spec.template.spec.runtime_class_name)


def roster_of(form: Mapping[str, Any]) -> Roster:
    """Return the list of a form: of its file, if there is one, else of its field.

    Raises:
        Rejected: It is too large, or cannot be used.
    """
    sent = form.get("file")
    content: bytes | str = str(form.get("names", ""))
    if isinstance(sent, File) and sent.name:
        if len(sent.content) > _LIST_BYTES_MAX:
            raise Rejected(Grounds.INVALID_BODY, f"The file is larger than {_LIST_BYTES_MAX // 1024} KiB.")
        content = sent.content
    try:
        return read_roster(content, "the list")
    except RosterError as error:
        raise Rejected(Grounds.INVALID_BODY, f"Nothing was given: {error}.") from error
