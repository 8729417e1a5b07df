"""The elements of a class's page that change: how many stand how, what holds labs up, and the rows."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final
from urllib.parse import parse_qsl, quote, urlencode

from vkprovider.lablet.standings import Standing
from vkprovider.platform.messages import count, listed
from vkprovider.platform.times import clock, iso
from vkprovider.portal.api.callers import lab_right
from vkprovider.portal.pure.classes import Row, RowFilter, chosen, counted, held_up, wish_of
from vkprovider.portal.web.classes.classrooms import Classrooms, powers_of
from vkprovider.portal.web.context import SiteContext
from vkprovider.portal.web.live.rendered import Rendered
from vkprovider.portal.web.live.streams import merged
from vkprovider.portal.web.live.topics import TopicSource, TopicView
from vkprovider.portal.web.visitor import Visitor

KIND: Final = "class"
ROWS: Final = "grid-rows"
"""The id of the element that holds the rows."""
_LEARNERS_SHOWN: Final = 6
_KEPT_MAX: Final = 32


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
        elements = {"class-counts": counts.strip(), "class-held": holding.strip()}
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
        if len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)
        return {f"row-{name}": html for name, (_, html) in made.items()}

    def _row(self, namespace: str, role: str, base: str, row: Row) -> str:
        now = self._site.ctx.wall()
        values = {
            "row": row,
            "picks": role == "acts",
            "path": path_of_row(namespace, row),
            "started": _started(row, now),
            "ends": clock(row.ends_at, now) if row.ends_at is not None else "",
            "ends_iso": iso(int(row.ends_at)) if row.ends_at is not None else "",
        }
        return self._site.layout.html("classes/_row.html", base=base, **values).strip()


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


def _started(row: Row, now: float) -> str:
    """Return since when a learner works, in words."""
    if row.started_at is not None:
        return f"since {clock(row.started_at, now)}"
    if row.active_at is not None:
        return f"last at {clock(row.active_at, now)}"
    if row.standing is Standing.WORKING:
        return "yes"
    return "not yet" if row.learner else ""
