"""A class as its instructor sees it: rows, sorted, filtered and counted, and what is asked of many."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from vkprovider.classroom.roster import sheet
from vkprovider.lablet import names
from vkprovider.lablet import standing as words
from vkprovider.lablet.devices import DeviceState, devices_in
from vkprovider.lablet.inputs import annotation_for, message_of
from vkprovider.lablet.models.status import DefinitionStatus
from vkprovider.lablet.reasons import Happened
from vkprovider.lablet.shownname import by_last_name, shown_in
from vkprovider.lablet.standing import State, has_ended, is_closing, learner_in
from vkprovider.lablet.standings import Standing, Tone, tone_of
from vkprovider.platform.messages import plain
from vkprovider.platform.objects import Pod
from vkprovider.platform.times import iso, unix
from vkprovider.portal.pure.facts import UserLab, UserLabStatus, status_of
from vkprovider.portal.pure.plainwords import NO_ROOM, room_words
from vkprovider.portal.pure.view import standing_of_lab

Act = Literal["extend", "stop", "start", "reset", "collect", "message"]
ACTS: Final[tuple[Act, ...]] = get_args(Act)
Notes = dict[str, str | None]


class CannotBeDoneError(ValueError):
    """A lablet cannot do what is asked; the text says why, after the learner's name."""


def notes_for(act: Act, pod: Pod, now: float, *, seconds: int = 0, message: str = "") -> Notes:
    """Return the annotations to patch so that a lablet does what is asked.

    Args:
        act: The request.
        pod: The lablet's, as it is now.
        now: Unix seconds.
        seconds: By how much to extend it.
        message: For the learner.

    Raises:
        CannotBeDoneError: The lablet cannot do it.
    """
    if pod.metadata.deletion_timestamp is not None or has_ended(pod):
        raise CannotBeDoneError("the lab has ended")
    if act != "message" and is_closing(pod):
        raise CannotBeDoneError("the lab is being handed in")
    match act:
        case "extend":
            return {names.ANNOTATION_TIMESLOT_END: iso(_later(pod, seconds, now))}
        case "stop":
            return {names.ANNOTATION_DESIRED_STATE: State.STOPPED.value}
        case "start":
            if not _is_stopped(pod):
                raise CannotBeDoneError("the lab was not stopped")
            return {names.ANNOTATION_DESIRED_STATE: None}
        case "reset":
            again: Notes = {names.ANNOTATION_DESIRED_STATE: None} if _is_stopped(pod) else {}
            return {names.ANNOTATION_RESET: iso(int(now)), **again}
        case "collect":
            if not learner_in(pod):
                raise CannotBeDoneError("nobody has the lab")
            return {names.ANNOTATION_DESIRED_STATE: State.COLLECTING.value}
        case "message":
            return annotation_for(message, now)


def _later(pod: Pod, seconds: int, now: float) -> int:
    """Return the new end of a lablet.

    Raises:
        CannotBeDoneError: It has no end, or does not live so long.
    """
    if not learner_in(pod):
        raise CannotBeDoneError("nobody has the lab")
    end = unix(pod.metadata.annotations.get(names.ANNOTATION_TIMESLOT_END, ""))
    if end is None:
        raise CannotBeDoneError("the time has no end that could be moved")
    later = int(max(end, now) + seconds)
    lives_s, began = pod.spec.active_deadline_seconds, unix(pod.status.start_time or "")
    if lives_s is not None and began is not None and later > began + lives_s:
        raise CannotBeDoneError(f"the lab ends at {iso(int(began + lives_s))} by its activeDeadlineSeconds")
    return later


def _is_stopped(pod: Pod) -> bool:
    return pod.metadata.annotations.get(names.ANNOTATION_DESIRED_STATE, "").upper() == State.STOPPED


_QUIET: Final = frozenset({Standing.READY, Standing.WORKING, Standing.FREE, Standing.STOPPED, Standing.PASSED})
"""These stand as they should: nothing holds them up."""
_SERVING: Final = frozenset({Standing.READY, Standing.WORKING, Standing.FREE, Standing.REPAIRING})


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One lablet of a class; what is unknown is empty.

    Attributes:
        key: Names it among the rows of its class: `pod-NAME` of a lablet, `lab-KEY` of a user lab.
        learner: Who has it; "" for one that is free.
        shown: The name by which people know the learner; "" if there is none.
        user: The user of a user lab, by the exact name; "" for a lablet.
        namespace, pod, uid: Of its Pod; "" before that is made.
        standing: How it stands.
        score: Of the learner's work, if it was graded.
        started_at: When the learner began to work in a session, in Unix seconds.
        active_at: When somebody last worked in the lab.
        devices: How many are booted, of how many, such as `5/6`.
        down: The devices that are off.
        ends_at: When it ends.
        reason: Why it does not stand as it should, as one word.
        why: The same as a sentence.
        message: What an instructor told the learner.
    """

    key: str
    learner: str
    shown: str = ""
    user: str = ""
    namespace: str = ""
    pod: str = ""
    uid: str = ""
    standing: Standing
    score: str = ""
    started_at: float | None = None
    active_at: float | None = None
    devices: str = ""
    down: tuple[str, ...] = ()
    ends_at: float | None = None
    reason: str = ""
    why: str = ""
    message: str = ""

    @property
    def tick(self) -> str:
        """What a form sends of it that is about this learner's lab, and not about that of the next one."""
        return f"{self.key} {self.learner}"

    @property
    def state(self) -> str:
        """How it stands, in plain words, with the score."""
        return words.words_of(self.standing, self.score)

    @property
    def tone(self) -> Tone:
        """The colour of its standing."""
        return tone_of(self.standing)

    @property
    def is_over(self) -> bool:
        """Whether nothing can be done with it any more."""
        return self.standing in {Standing.PASSED, Standing.NOT_PASSED, Standing.FAILED, Standing.ENDING}


def of_lablet(pod: Pod) -> Row:
    """Return the row of a lablet that is no user lab."""
    standing, score = words.standing_of(pod)
    return _row(f"pod-{pod.metadata.name}", words.learner_in(pod), "", pod, standing, score)


def of_lab(lab: UserLab) -> Row:
    """Return the row of a user lab."""
    status = status_of(lab)
    standing, score = standing_of_lab(lab, status)
    row = _row(f"lab-{lab.key}", plain(lab.user), lab.user, lab.own_pod, standing, score)
    outcome = lab.record.outcome
    if status is not UserLabStatus.FAILED or outcome is None:
        return row
    return msgspec.structs.replace(row, reason=outcome.reason, why=plain(outcome.text))


def _row(key: str, learner: str, user: str, pod: Pod | None, standing: Standing, score: str) -> Row:
    if pod is None:
        return Row(key=key, learner=learner, user=user, standing=standing, score=score)
    notes = pod.metadata.annotations
    reason, why = words.why(pod) if standing not in _QUIET else ("", "")
    if reason == Happened.UNSCHEDULABLE:
        reason, why = NO_ROOM, room_words(why)
    ended = words.has_ended(pod)
    return Row(
        key=key,
        learner=learner,
        shown=shown_in(pod),
        user=user,
        namespace=pod.metadata.namespace,
        pod=pod.metadata.name,
        uid=pod.metadata.uid,
        standing=standing,
        score=score,
        started_at=_since(pod, names.CONDITION_SESSION_STARTED),
        active_at=unix(notes.get(names.ANNOTATION_LAST_ACTIVITY, "")),
        devices="" if ended else plain(notes.get(names.ANNOTATION_DEVICES, "")),
        down=_down(pod) if standing in _SERVING else (),
        ends_at=unix(words.end_of(pod)),
        reason=plain(reason),
        why=plain(why),
        message=told.text if (told := message_of(notes)) is not None else "",
    )


def _down(pod: Pod) -> tuple[str, ...]:
    """Return the devices that are off, by the containers that stand for them."""
    found = (each.label for each in devices_in(pod, DefinitionStatus()) if each.state is DeviceState.OFF)
    return tuple(sorted(plain(label) for label in found if label != names.LAB_CONTAINER))


def _since(pod: Pod, condition: str) -> float | None:
    found = (each for each in pod.status.conditions if each.type == condition and each.status == "True")
    return next((unix(each.last_transition_time or "") for each in found), None)


_ORDER: Final = {standing: place for place, standing in enumerate(Standing)}
_TEXT_BYTES_MAX: Final = 60
"""Of a text in a wish: a page names its wish in a topic, in whose address a byte takes up to five characters, and the
topics of nine tabs are one request line of at most 8 KiB."""
_FIRST: Final = "help"
"""The order of a page that nobody has sorted: who needs help stands first."""
SORTS: Final[Mapping[str, Callable[[Row], Any]]] = {
    _FIRST: lambda row: row.tone is not Tone.BAD or not row.learner,
    "learner": lambda row: (not row.learner, by_last_name(row.learner, row.shown)),
    "state": lambda row: _ORDER[row.standing],
    "started": lambda row: row.started_at or row.active_at or math.inf,
    "devices": lambda row: (not row.down, row.devices),
    "left": lambda row: row.ends_at if row.ends_at is not None else math.inf,
    "reason": lambda row: (not row.reason, row.reason),
}
"""By name, the key of an order; rows that are equal in it stand by learner."""


HEADINGS: Final = (
    "learner",
    "name",
    "state",
    "started",
    "active",
    "devices",
    "down",
    "ends",
    "reason",
    "why",
    "lablet",
)
"""Of the columns of a class as CSV."""


class RowFilter(NamedTuple):
    """The rows that somebody wants to see, and their order.

    Attributes:
        sort: A name of `SORTS`.
        falling: Whether the last comes first.
        state: Only those that stand so; "" for any.
        reason: Only those that are held up by this; "" for any.
        text: Only those whose learner, name, state or reason contains it; "" for any.
    """

    sort: str = _FIRST
    falling: bool = False
    state: str = ""
    reason: str = ""
    text: str = ""

    def fields(self, **changed: object) -> dict[str, str]:
        """Return it as the query of a link, with some fields changed; what is usual is left out."""
        now = self._replace(**changed)  # type: ignore[arg-type]  # (fields of this class)
        usual = RowFilter()
        texts = {
            "sort": now.sort,
            "falling": "1" if now.falling else "",
            "state": now.state,
            "reason": now.reason,
            "q": now.text,
        }
        return {name: text for name, text in texts.items() if text and (name, text) != ("sort", usual.sort)}


class HeldUpRows(NamedTuple):
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


def wish_of(query: Mapping[str, str]) -> RowFilter:
    """Return the wish of the query of a link; what means nothing counts as absent, and what is too long is cut."""
    sort, state = query.get("sort", ""), query.get("state", "")
    sort = sort if sort in SORTS else _FIRST
    return RowFilter(
        sort,
        query.get("falling", "") == "1" and sort != _FIRST,
        state if state in {each.value for each in Standing} else "",
        _cut(query.get("reason", "")),
        _cut(query.get("q", "").strip()).strip(),
    )


def chosen(rows: Iterable[Row], wish: RowFilter) -> list[Row]:
    """Return the rows that somebody wants to see, in the order that they want."""
    found = [row for row in rows if _is_wanted(row, wish)]
    found.sort(key=lambda row: (SORTS["learner"](row), row.key))
    found.sort(key=SORTS[wish.sort], reverse=wish.falling)
    return found


def everybody(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of learners whose lab goes on, in their order."""
    return [row for row in rows if row.learner and not row.is_over]


def counted(rows: Iterable[Row]) -> list[tuple[Standing, int]]:
    """Return how many stand how, those that need help first."""
    number = Counter(row.standing for row in rows)
    return [(standing, number[standing]) for standing in Standing if number[standing]]


def held_up(rows: Sequence[Row]) -> list[HeldUpRows]:
    """Return what holds labs up, the most frequent first."""
    by_reason: dict[str, list[Row]] = {}
    for row in rows:
        if row.reason:
            by_reason.setdefault(row.reason, []).append(row)
    found = [
        HeldUpRows(
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
            row.shown,
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


def _is_wanted(row: Row, wish: RowFilter) -> bool:
    if wish.state and row.standing != wish.state:
        return False
    if wish.reason and _cut(row.reason) != wish.reason:
        return False
    text = wish.text.casefold()
    cells = (row.learner, row.shown, row.state, row.reason, row.pod, *row.down)
    return not text or any(text in each.casefold() for each in cells)


def _cut(text: str) -> str:
    """Return as much of a text as a wish holds."""
    return text.encode(errors="ignore")[:_TEXT_BYTES_MAX].decode(errors="ignore")


def _time(at: float | None) -> str:
    return iso(int(at)) if at is not None else ""
