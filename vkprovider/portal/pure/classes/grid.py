"""The rows of a class: sorted, filtered, counted, and grouped by what holds them up."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vkprovider.classroom.sheet import sheet
from vkprovider.lablet.standings import Standing, Tone
from vkprovider.platform.times import iso
from vkprovider.portal.pure.classes.rows import Row

_ORDER: Final = {standing: place for place, standing in enumerate(Standing)}
_TEXT_BYTES_MAX: Final = 60
"""Of a text in a wish: a page names its wish in a topic, in whose address a byte takes up to five characters, and the
topics of nine tabs are one request line of at most 8 KiB."""
SORTS: Final[Mapping[str, Callable[[Row], Any]]] = {
    "learner": lambda row: (not row.learner, row.learner.casefold()),
    "state": lambda row: _ORDER[row.standing],
    "started": lambda row: row.started_at or row.active_at or math.inf,
    "devices": lambda row: (not row.down, row.devices),
    "left": lambda row: row.ends_at if row.ends_at is not None else math.inf,
    "reason": lambda row: (not row.reason, row.reason),
}
"""By name, the key of an order; rows that are equal in it stand by learner."""
HEADINGS: Final = ("learner", "state", "started", "active", "devices", "down", "ends", "reason", "why", "lablet")
"""Of the columns of a class as CSV."""


class Wish(NamedTuple):
    """The rows that somebody wants to see, and their order.

    Attributes:
        sort: A name of `SORTS`.
        falling: Whether the last comes first.
        state: Only those that stand so; "" for any.
        reason: Only those that are held up by this; "" for any.
        text: Only those whose learner, state or reason contains it; "" for any.
    """

    sort: str = "learner"
    falling: bool = False
    state: str = ""
    reason: str = ""
    text: str = ""

    def fields(self, **changed: object) -> dict[str, str]:
        """Return it as the query of a link, with some fields changed; what is usual is left out."""
        now = self._replace(**changed)  # type: ignore[arg-type]  # (fields of this class)
        usual = Wish()
        texts = {
            "sort": now.sort,
            "falling": "1" if now.falling else "",
            "state": now.state,
            "reason": now.reason,
            "q": now.text,
        }
        return {name: text for name, text in texts.items() if text and (name, text) != ("sort", usual.sort)}


class Held(NamedTuple):
    """Rows that are held up by one reason.

    Attributes:
        number: How many.
        learners: Who, in the order of the rows.
        why: The sentence of the first.
        tone: The worst colour of their standings.
    """

    reason: str
    number: int
    learners: tuple[str, ...]
    why: str
    tone: Tone


def wish_of(query: Mapping[str, str]) -> Wish:
    """Return the wish of the query of a link; what means nothing counts as absent, and what is too long is cut."""
    sort, state = query.get("sort", ""), query.get("state", "")
    return Wish(
        sort if sort in SORTS else "learner",
        query.get("falling", "") == "1",
        state if state in {each.value for each in Standing} else "",
        _cut(query.get("reason", "")),
        _cut(query.get("q", "").strip()).strip(),
    )


def chosen(rows: Iterable[Row], wish: Wish) -> list[Row]:
    """Return the rows that somebody wants to see, in the order that they want."""
    found = [row for row in rows if _is_wanted(row, wish)]
    found.sort(key=lambda row: (not row.learner, row.learner.casefold(), row.key))
    found.sort(key=SORTS[wish.sort], reverse=wish.falling)
    return found


def counted(rows: Iterable[Row]) -> list[tuple[Standing, int]]:
    """Return how many stand how, those that need help first."""
    number = Counter(row.standing for row in rows)
    return [(standing, number[standing]) for standing in Standing if number[standing]]


def held_up(rows: Sequence[Row]) -> list[Held]:
    """Return what holds labs up, the most frequent first."""
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        if row.reason:
            by_reason.setdefault(row.reason, []).append(row)
    found = [
        Held(
            reason,
            len(its),
            tuple(row.learner or row.pod for row in its),
            next((row.why for row in its if row.why), ""),
            Tone.BAD if any(row.tone is Tone.BAD for row in its) else Tone.BUSY,
        )
        for reason, its in by_reason.items()
    ]
    return sorted(found, key=lambda held: (-held.number, held.reason))


def as_csv(rows: Iterable[Row]) -> str:
    """Return rows as CSV for a spreadsheet."""
    cells = (
        (
            row.learner,
            row.state,
            _time(row.started_at),
            _time(row.active_at),
            row.devices,
            " ".join(row.down),
            _time(row.ends_at),
            row.reason,
            row.why,
            f"{row.namespace}/{row.pod}" if row.pod else "",
        )
        for row in rows
    )
    return sheet(HEADINGS, cells)


def _is_wanted(row: Row, wish: Wish) -> bool:
    if wish.state and row.standing != wish.state:
        return False
    if wish.reason and _cut(row.reason) != wish.reason:
        return False
    text = wish.text.casefold()
    return not text or any(text in each.casefold() for each in (row.learner, row.state, row.reason, row.pod, *row.down))


def _cut(text: str) -> str:
    """Return as much of a text as a wish holds."""
    return text.encode(errors="ignore")[:_TEXT_BYTES_MAX].decode(errors="ignore")


def _time(at: float | None) -> str:
    return iso(int(at)) if at is not None else ""
