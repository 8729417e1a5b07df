"""The classes that somebody teaches: what they may do there, the rows of each, and what changes on its page."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from aiohttp import web

from vkprovider.classroom.roster import SHEET_MARK
from vkprovider.lablet.standings import Standing
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.messages import count, listed
from vkprovider.platform.objects import Pod
from vkprovider.platform.rights import Right
from vkprovider.platform.times import clock, iso
from vkprovider.portal.api.callers import KnownCaller, PortalCallers, lab_right
from vkprovider.portal.pure.classes import (
    ACTS,
    Row,
    RowFilter,
    chosen,
    counted,
    everybody,
    held_up,
    of_lab,
    of_lablet,
    wish_of,
)
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.informers import OtherLablets
from vkprovider.portal.service.keeper import Instructors
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.live.streams import merged
from vkprovider.portal.web.live.topics import Rendered, TopicSource, TopicView
from vkprovider.portal.web.visitors import Visitor


class Powers(NamedTuple):
    """What somebody who sees a class may do with its lablets.

    Attributes:
        lablets: Write on the Pods of the class.
        labs: Write on the Pods of user labs of the class.
        ends: Extend and end user labs of the class, by the portal.
    """

    lablets: bool = False
    labs: bool = False
    ends: bool = False

    @property
    def acts(self) -> tuple[str, ...]:
        """The forms to offer."""
        usual = ACTS if self.lablets or self.labs else ("extend",) if self.ends else ()
        return (*usual, *(("end",) if self.ends else ()))

    @property
    def role(self) -> str:
        """By which the page of a class differs between visitors."""
        return "acts" if self.acts else "looks"


async def powers_of(callers: PortalCallers, visitor: Visitor, namespace: str, labs: list[UserLab]) -> Powers:
    """Ask what an instructor of a class may do with its lablets; what there are none of is not asked for.

    Who has no token here, because an ingress sends none, writes on no Pod.

    Args:
        callers: Asks the API server.
        visitor: The instructor.
        namespace: The class.
        labs: Its user labs; the portal binds the same people in each, so that one stands for all.

    Raises:
        Refused: 429, or 503.
    """
    known, writes = visitor.known, bool(visitor.token)
    lablets = writes and await callers.may(known, Right("patch", "pods", namespace))
    there = [lab.record.namespace for lab in labs if not lab.record.deleted]
    of_labs = writes and bool(there) and await callers.may(known, Right("patch", "pods", there[0]))
    return Powers(lablets, of_labs, ends=bool(there))


_ASKED_MAX: Final = 10
"""The most classes that are asked for although no RoleBinding names the visitor: another role may let them teach.

Every learner who opens the list is asked for that many, and all share the reviews.
"""
_AT_ONCE: Final = 8
_KEPT_MAX: Final = 32
"""Classes whose rows are kept for the next look."""


class ShownClass(NamedTuple):
    """A class in the list.

    Attributes:
        namespace: Its name.
        labs: How many lablets it has, with those that are free.
    """

    namespace: str
    labs: int


class Classrooms:
    """The classes that a replica knows."""

    def __init__(
        self, index: UserLabIndex, lablets: OtherLablets, instructors: Instructors, callers: PortalCallers
    ) -> None:
        """Know what these know.

        Args:
            index: User labs.
            lablets: All other lablets.
            instructors: Whom the RoleBindings of classes name.
            callers: Asks what somebody may.
        """
        self._index = index
        self._lablets = lablets
        self._instructors = instructors
        self._callers = callers
        self._kept: OrderedDict[str, dict[str, tuple[Pod | UserLab, Row]]] = OrderedDict()

    async def check(self, known: KnownCaller, namespace: str) -> None:
        """Check that somebody teaches a class; the answer is the same whether there is such a class or not.

        A namespace of which nothing is known takes no review: anybody may write one into an address.

        Raises:
            HTTPNotFound: They do not, or nobody teaches there and there is no lab.
            Refused: 429, or 503.
        """
        if not await self._callers.teaches(known, "", namespace if self._is_known(namespace) else ""):
            raise web.HTTPNotFound

    async def of(self, known: KnownCaller) -> list[ShownClass]:
        """Return the classes that somebody teaches, by name.

        Raises:
            Refused: 429, or 503.
        """
        user = known.of_cluster
        named = self._instructors.classes_of(user.username, user.groups)
        others = sorted({*self._lablets.namespaces(), *self._index.classes()} - named)
        if await self._callers.teaches_everywhere(known):
            return [ShownClass(namespace, self._count(namespace)) for namespace in sorted({*named, *others})]
        asked = [*sorted(named), *others[:_ASKED_MAX]]

        async def teaches(namespace: str) -> bool:
            return await self._callers.may(known, lab_right("teach", namespace))

        answers = await at_most(_AT_ONCE, teaches, asked)
        mine = sorted(namespace for namespace, answer in zip(asked, answers, strict=True) if answer)
        return [ShownClass(namespace, self._count(namespace)) for namespace in mine]

    def labs(self, namespace: str) -> list[UserLab]:
        """Return the user labs of a class."""
        return self._index.of_class(namespace)

    def rows(self, namespace: str) -> list[Row]:
        """Return the rows of a class, in no order; those of Pods that have not changed are made once."""
        before = self._kept.pop(namespace, {})
        now: dict[str, tuple[Pod | UserLab, Row]] = {}
        for pod in self._lablets.of(namespace):
            kept = before.get(pod.metadata.name)
            now[pod.metadata.name] = kept if kept is not None and kept[0] is pod else (pod, of_lablet(pod))
        for lab in self.labs(namespace):
            kept = before.get(f"/{lab.record.namespace}")
            now[f"/{lab.record.namespace}"] = kept if kept is not None and kept[0] == lab else (lab, of_lab(lab))
        self._kept[namespace] = now
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
        return [row for _, row in now.values()]

    def pod_of(self, row: Row) -> Pod | None:
        """Return the Pod of a row as it is now; None if there is none."""
        if not row.user:
            return self._lablets.pod(row.namespace, row.pod)
        lab = self._index.lab(row.user)
        return lab.own_pod if lab is not None else None

    def _is_known(self, namespace: str) -> bool:
        """Return whether a namespace has a lab, or instructors."""
        return (
            self._instructors.has_any(namespace)
            or bool(self._lablets.of(namespace))
            or namespace in self._index.classes()
        )

    def _count(self, namespace: str) -> int:
        return len(self._lablets.of(namespace)) + len(self.labs(namespace))


KIND: Final = "class"
ROWS: Final = "grid-rows"
"""The id of the element that holds the rows."""
_LEARNERS_SHOWN: Final = 6
_RENDERINGS_KEPT: Final = 32


Rights = Callable[[str], Iterable[Right]]
"""Returns the rights that something takes in a namespace."""


@dataclass(frozen=True, eq=False, slots=True)
class ClassRequests:
    """Finds the class of a request and its sender, who teaches it.

    Attributes:
        site: What every view is given.
        classrooms: The classes.
    """

    site: SiteContext
    classrooms: Classrooms

    async def taught(self, request: web.Request) -> tuple[str, Visitor]:
        """Return the class of a request, and its sender.

        Raises:
            HTTPNotFound: The sender does not teach it, whether there is such a class or not.
            Refused: 401, 429, or 503.
        """
        namespace = request.match_info["namespace"]
        visitor = await self.site.visitors.of(request)
        await self.classrooms.check(visitor.known, namespace)
        return namespace, visitor

    async def may(self, visitor: Visitor, namespace: str, rights: Rights) -> bool:
        """Return whether a visitor has all of some rights in a class, and a token to use them with.

        Raises:
            Refused: 429, or 503.
        """
        if not visitor.token:
            return False
        for right in rights(namespace):
            if not await self.site.callers.may(visitor.known, right):
                return False
        return True

    async def allowed(self, request: web.Request, rights: Rights, refusal: str) -> tuple[str, Visitor]:
        """Return the class of a request, and its sender, who has some rights there.

        Args:
            request: The request.
            rights: Those that it takes.
            refusal: What is said to a sender without them.

        Raises:
            HTTPNotFound: The sender does not teach the class, whether there is such a class or not.
            Rejected: The sender lacks a right.
            Refused: 401, 429, or 503.
        """
        namespace, visitor = await self.taught(request)
        if not await self.may(visitor, namespace, rights):
            raise Rejected(Grounds.PERMISSION_DENIED, refusal)
        return namespace, visitor


class Grid:
    """Renders classes; rows that have not changed are rendered once."""

    def __init__(self, site: SiteContext, classrooms: Classrooms) -> None:
        """Create it.

        Args:
            site: What every view is given.
            classrooms: The classes.
        """
        self._site = site
        self._classrooms = classrooms
        self._kept: OrderedDict[tuple[str, str, str], dict[str, tuple[Row, str]]] = OrderedDict()

    def source(self) -> TopicSource:
        """Return how a class changes by itself."""
        return TopicSource(KIND, self.allowed, self.render, self.listen, one_name)

    async def allowed(self, visitor: Visitor, name: str) -> TopicView:
        """Return what a visitor may see of a class.

        Raises:
            HTTPNotFound: Nothing.
            Refused: 429, or 503.
        """
        namespace = _parts(name)[0]
        await self._classrooms.check(visitor.known, namespace)
        labs = self._classrooms.labs(namespace)
        powers = await powers_of(self._site.callers, visitor, namespace, labs)
        return TopicView(powers.role, lab_right("teach", namespace))

    def render(self, name: str, role: str, base: str) -> Rendered:
        """Return what a class looks like, as the wish that is in its name has it."""
        namespace, wish = _parts(name)
        rows = self._classrooms.rows(namespace)
        found = chosen(rows, wish)
        layout, path = self._site.layout, path_of(namespace)
        values = {"path": path, "wish": wish, "total": count(len(rows), "lab"), "shown": len(found), "rows": len(rows)}
        counts = layout.html("classes/_counts.html", base=base, counts=counted(rows), query=_query, **values)
        held = [
            (each, listed(each.learners, _LEARNERS_SHOWN), _query(wish, reason=each.reason)) for each in held_up(rows)
        ]
        holding = layout.html("classes/_held.html", base=base, held=held, everything=_query(wish, reason=""), **values)
        having = [row.learner for row in everybody(chosen(rows, RowFilter()))]
        whom = listed(having, _LEARNERS_SHOWN)
        having_html = layout.html("classes/_everybody.html", base=base, number=len(having), whom=whom)
        elements = {
            "class-counts": counts.strip(),
            "class-held": holding.strip(),
            "class-everybody": having_html.strip(),
        }
        return Rendered(elements, {ROWS: self._rows(namespace, role, base, found)})

    def listen(self, name: str) -> AbstractAsyncContextManager[asyncio.Event]:
        """Yield an event that is set whenever a class may look different."""
        namespace = _parts(name)[0]
        return merged(self._site.lablets.listen(namespace), self._site.index.listen_class(namespace))

    def _rows(self, namespace: str, role: str, base: str, rows: list[Row]) -> dict[str, str]:
        """Return the HTML of rows, by their ids."""
        key = namespace, role, base
        before = self._kept.pop(key, {})
        now = {row.key: kept if (kept := before.get(row.key)) and kept[0] == row else (row, "") for row in rows}
        made = {name: (row, html or self._row(namespace, role, base, row)) for name, (row, html) in now.items()}
        self._kept[key] = {**before, **made} if len(before) <= 2 * len(made) else made
        if len(self._kept) > _RENDERINGS_KEPT:
            self._kept.popitem(last=False)
        return {f"row-{name}": html for name, (_, html) in made.items()}

    def _row(self, namespace: str, role: str, base: str, row: Row) -> str:
        now = self._site.ctx.wall()
        values = {
            "row": row,
            "picks": role == "acts",
            "path": path_of_row(namespace, row),
            "began": _began(row),
            "began_at": clock(at, now) if (at := row.started_at or row.active_at) is not None else "",
            "began_iso": iso(int(at)) if at is not None else "",
            "ends": clock(row.ends_at, now) if row.ends_at is not None else "",
            "ends_iso": iso(int(row.ends_at)) if row.ends_at is not None else "",
        }
        return self._site.layout.html("classes/_row.html", base=base, **values).strip()


def csv_answer(text: str, name: str) -> web.Response:
    """Return a table as a file for spreadsheets.

    Args:
        text: Lines of CSV.
        name: Of the file, without its ending.
    """
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return web.Response(text=SHEET_MARK + text, content_type="text/csv", charset="utf-8", headers=headers)


def path_of(namespace: str) -> str:
    """Return the path of a class's page."""
    return f"/classes/{quote(namespace, safe='')}"


def path_of_row(namespace: str, row: Row) -> str:
    """Return the path of the page of one lab; "" if it has none."""
    if row.user:
        return f"/labs/{quote(row.user, safe='')}"
    return f"{path_of(namespace)}/lablets/{quote(row.pod, safe='')}"


def topic_of(namespace: str, wish: RowFilter) -> str:
    """Return the name of a class as one visitor wants to see it, without the kind."""
    return namespace + _query(wish)


def one_name(name: str) -> str:
    """Return the name that all names of the same class and wish have in common."""
    return topic_of(*_parts(name))


def _query(wish: RowFilter, **changed: object) -> str:
    fields: Mapping[str, str] = wish.fields(**changed)
    return f"?{urlencode(fields)}" if fields else ""


def _parts(name: str) -> tuple[str, RowFilter]:
    """Return the class and the wish of a topic's name."""
    namespace, _, query = name.partition("?")
    return namespace, wish_of(dict(parse_qsl(query)))


def _began(row: Row) -> str:
    """Return whether a learner works, in words that a time follows if one is known."""
    if row.started_at is not None:
        return "since"
    if row.active_at is not None:
        return "last at"
    if row.standing is Standing.WORKING:
        return "yes"
    return "not yet" if row.learner else ""
