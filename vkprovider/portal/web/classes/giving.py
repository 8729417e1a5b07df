"""A list of learners gets the lablets of a pool: the form of the class's page, and what became of each learner."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import structlog
from aiohttp import web

from vkprovider.classroom.deployments import DEPLOYMENTS, Deployment, GivingError
from vkprovider.classroom.giving import Given, give_all
from vkprovider.classroom.pods import Assignment
from vkprovider.classroom.roster import Roster, RosterError, look_alikes, read_roster
from vkprovider.lablet.inputs import inputs_of
from vkprovider.platform.errors import Forbidden, InputError, OutsideError
from vkprovider.platform.http.bodies import FORM, FORM_WITH_FILES, Body, File, read_form
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.messages import listed
from vkprovider.platform.objects import Metadata
from vkprovider.platform.rights import Right
from vkprovider.platform.times import iso
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.classes.acting import Outcome
from vkprovider.portal.web.classes.classrooms import Classrooms, path_of
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.visitors import Visitor

_log: Final = structlog.get_logger(__name__)
_HOURS: Final = {"1": 1, "2": 2, "3": 3, "4": 4, "6": 6, "8": 8, "": 0}
"""For how long learners get a lablet, by the field of the form; 0: without an end."""
_HOUR_S: Final = 3600
_LIST_BYTES_MAX: Final = 256 * 1024
LIST_BODY: Final = Body(1 << 20, (FORM, FORM_WITH_FILES))
"""A list as text or as a file."""
_SHOWN_MAX: Final = 5


class Pools(NamedTuple):
    """The pools of a class.

    Attributes:
        names: Of their Deployments.
        fault: Why they are not known; "" if they are.
    """

    names: tuple[str, ...] = ()
    fault: str = ""


class Assigning:
    """The handlers."""

    def __init__(self, site: SiteContext, classrooms: Classrooms) -> None:
        """Create them.

        Args:
            site: What every view is given.
            classrooms: The classes.
        """
        self._site = site
        self._classrooms = classrooms

    async def may(self, visitor: Visitor, namespace: str) -> bool:
        """Return whether a visitor may give lablets of a class: its Deployments and its Pods are written.

        Raises:
            Refused: 429, or 503.
        """
        if not visitor.token:
            return False
        for group, resource in (("apps", "deployments"), ("", "pods")):
            right = Right("patch", resource, namespace, group=group)
            if not await self._site.callers.may(visitor.known, right):
                return False
        return True

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Show the form."""
        namespace, visitor = await self._visitor(request)
        pools = await self._pools(visitor, namespace)
        return self._site.layout.render(
            request,
            "classes/assign.html",
            namespace=namespace,
            path=path_of(namespace),
            pools=pools.names,
            fault=pools.fault,
            hours=[text for text in _HOURS if text],
        )

    async def give(self, request: web.Request) -> web.StreamResponse:
        """Give lablets to a list of learners, and show what became of each."""
        namespace, visitor = await self._visitor(request)
        form = await read_form(request, LIST_BODY)
        now = self._site.ctx.wall()
        roster = roster_of(form)
        wishes, pool = wishes_of(roster, str(form.get("hours", "")), now), str(form.get("pool", ""))
        try:
            async with self._site.as_visitor.client(visitor.token) as kube:
                given = await give_all(kube, namespace, pool, wishes, refill=form.get("refill") == "yes")
        except GivingError as error:
            raise Rejected(Grounds.CANNOT_EXTEND, f"Nothing was given: {error}") from error
        except Forbidden as error:
            raise Rejected(Grounds.PERMISSION_DENIED, f"You may not give lablets: {error.message}") from error
        except (OutsideError, InputError) as error:
            raise Rejected(Grounds.UNAVAILABLE, f"The API server did not do it: {error}; send it again") from error
        outcomes = outcomes_of(given, wishes)
        failed = sum(not each.done for each in outcomes)
        by = visitor.known.of_cluster.username
        _log.info("lablets were given", namespace=namespace, pool=pool, by=by, learners=len(wishes), failed=failed)
        return self._site.layout.render(
            request,
            "classes/outcome.html",
            namespace=namespace,
            path=path_of(namespace),
            headline=f"Have a lab: {len(outcomes) - failed} of {len(outcomes)}",
            outcomes=sorted(outcomes, key=lambda each: each.done),
            failed=failed,
            notes=roster.notes,
        )

    async def _visitor(self, request: web.Request) -> tuple[str, Visitor]:
        """Return the class of a request and its sender, who may give its lablets.

        Raises:
            HTTPNotFound: The sender does not teach it, whether there is such a class or not.
            Rejected: The sender may not give.
            Refused: 401, 429, or 503.
        """
        namespace = request.match_info["namespace"]
        visitor = await self._site.visitors.of(request)
        await self._classrooms.check(visitor.known, namespace)
        if not await self.may(visitor, namespace):
            raise Rejected(Grounds.PERMISSION_DENIED, "You may look at this class, and give none of its lablets.")
        return namespace, visitor

    async def _pools(self, visitor: Visitor, namespace: str) -> Pools:
        """Read the pools of a class with the visitor's token."""
        try:
            async with self._site.as_visitor.client(visitor.token) as kube:
                found = await Resource(kube, DEPLOYMENTS, namespace).list()
        except (OutsideError, InputError) as error:
            return Pools(fault=str(error))
        return Pools(tuple(sorted(each.metadata.name for each in found if _is_pool(each))))


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
    wishes = [Assignment(learner.user, end=end) for learner in roster.learners]
    faults = [fault for wish in wishes for fault in inputs_of(Metadata("", annotations=wish.annotations())).faults]
    if faults:
        raise Rejected(Grounds.INVALID_BODY, f"Nothing was given: {faults[0]}.")
    return wishes


def outcomes_of(given: Given, wishes: list[Assignment]) -> list[Outcome]:
    """Return what became of each learner of a list."""
    why = listed(given.done.hindrances, _SHOWN_MAX) or "none was made yet"
    short = "; ".join([f"got none, for no lablet is free: {why}", *given.faults])
    having = given.done.given
    return [
        Outcome(wish.user, done=True, words=f"has {having[wish.user].metadata.name}")
        if wish.user in having
        else Outcome(wish.user, done=False, words=short)
        for wish in wishes
    ]


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
        roster = read_roster(content, "the list")
    except RosterError as error:
        raise Rejected(Grounds.INVALID_BODY, f"Nothing was given: {error}.") from error
    if alike := look_alikes(learner.user for learner in roster.learners):
        names = listed([f"{one} and {other}" for one, other in alike], _SHOWN_MAX)
        raise Rejected(
            Grounds.INVALID_BODY, f"Nothing was given: {names} differ in capitals alone. Leave the wrong name out."
        )
    return roster
