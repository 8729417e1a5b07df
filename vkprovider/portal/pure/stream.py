"""The story of an operation of a user lab as lines, and a listener's position in it.

A line comes from a request in the record, the transition of a condition, or an Event. Its source and order are equal on
every replica: the hash of what it tells of, and the time of the transition or the number of repetitions. What only a
waiting reason tells is no line but the present state, which a listener gets when it changes, and nobody gets later.

Events expire. When an operation ends, its last lines are therefore saved in the record, with their sources, so that
nobody gets a line twice.

A position names each source whose lines the listener has, with the order of the last one. A line that arrives late,
with an earlier time than those before it, is therefore still sent, and no other is sent again, by whichever replica.
"""

import hashlib
import math
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from vkprovider.lablet import names, story
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.platform.errors import shorten
from vkprovider.platform.objects import Event, Pod
from vkprovider.portal.pure.facts import READY, UserLab
from vkprovider.portal.pure.portalnames import bench_name
from vkprovider.portal.pure.record import LabRecord, Saved

_ENDED: Final = "The lab is to be deleted"
_NEW_S: Final = 5.0
"""How much younger than its namespace a request may be whose namespace was made for it; else the lab was kept warm, or
replaces one that failed, and what happened before is not its story."""


class LineKind(StrEnum):
    """The kinds of what a listener gets."""

    INFO = "info"
    ERROR = "error"
    PROGRESS = "progress"
    COMPLETE = "complete"
    FAILED = "failed"


class LabLine(msgspec.Struct, frozen=True):
    """A line of a stream.

    Attributes:
        at: Seconds since the epoch, by the clock of its source.
        source: What it tells of, hashed.
        order: Grows with each line of the same source.
    """

    at: float
    kind: LineKind
    source: str
    order: int
    text: str

    @property
    def progress(self) -> int:
        """How far the operation is when this has happened, in percent; 0 if it does not tell."""
        return _PROGRESS.get(self.text, 0)


class LabOperation(msgspec.Struct, frozen=True):
    """An operation of a user lab, as its record has it.

    Attributes:
        id: Names it; another operation has another one.
        deletes: Whether it deletes the lab; else it creates one.
        at: When it was asked for, seconds since the epoch.
        title: What it is about, in words.
        since: The time before which nothing belongs to it; 0 if all of the namespace does.
        phase: `complete` or `failed` once it has ended, else "".
        ended_at: When it ended.
        fault: Why it failed, in words.
        saved: The lines that the record has kept of it, once it has ended.
    """

    id: str
    deletes: bool
    at: float
    title: str
    since: float = 0.0
    phase: str = ""
    ended_at: float = 0.0
    fault: str = ""
    saved: tuple[LabLine, ...] = ()


def operation_of(record: LabRecord) -> LabOperation:
    """Return the current operation of a lab; a record that cannot be read tells of one that has failed."""
    request, ending, outcome = record.request, record.ending, record.outcome
    if ending is not None:
        found = LabOperation(ending.id, deletes=True, at=ending.at, title=_ENDED, since=ending.at)
    elif request is not None:
        since = 0.0 if request.at - record.created_at < _NEW_S else request.at
        title = f"Lab asked for: {request.definition}"
        found = LabOperation(request.id, deletes=False, at=request.at, title=title, since=since)
    else:
        damaged = ", ".join(record.damaged)
        why = f"The record of the lab cannot be read ({damaged}): have it deleted, and ask for a new one."
        at, title = record.created_at, "A lab was asked for"
        return LabOperation(
            record.uid, deletes=False, at=at, title=title, phase=LineKind.FAILED, ended_at=at, fault=why
        )
    if outcome is None:
        return found
    lines = tuple(
        LabLine(each.at, LineKind(each.kind), each.source, each.order, each.text)
        for each in outcome.lines
        if each.kind in {LineKind.INFO, LineKind.ERROR}
    )
    return msgspec.structs.replace(
        found, phase=outcome.phase, ended_at=float(outcome.at), fault=outcome.text, saved=lines
    )


LINES_MAX: Final = 200
"""The most lines of an operation; the oldest ones are left out."""
SAVED_MAX: Final = 20
"""The number of lines that a record keeps of an operation that has ended."""
TEXT_CHARS_MAX: Final = 300
BENCH_SAYS: Final = "Workbench: "
"""How a line begins that tells of the workbench beside a lab."""
_SOURCE_BYTES: Final = 6
_TOLD_BY_CONDITIONS: Final = frozenset({"Scheduled", Happened.CREATED, Happened.READY, Happened.SESSION_READY})
"""Normal Events that repeat a condition. An Event may be lost, a condition is not."""
_CONDITIONS: Final = {
    "PodScheduled": "A worker has room for the lab",
    names.CONDITION_LAB_IMPORTED: "The lab is imported",
    names.CONDITION_LAB_CONVERGED: "All devices booted",
    names.CONDITION_SESSION_READY: "The session is ready",
}
_OF_BENCH: Final = {"PodScheduled": "a node has room for it", READY: "it is ready"}
_MADE: Final = "The lab's objects are created"
_REMOVED: Final = "The lab is being stopped and removed"
_OBJECTS, _CLAIMED, _IMPORTED, _BOOTED, _SESSION, _DONE = 5, 10, 20, 80, 90, 100
_ASKED, _POD_GONE = 25, 62
_PROGRESS: Final = {
    _MADE: _OBJECTS,
    _CONDITIONS["PodScheduled"]: _OBJECTS,
    _CONDITIONS[names.CONDITION_LAB_IMPORTED]: _IMPORTED,
    _CONDITIONS[names.CONDITION_LAB_CONVERGED]: _BOOTED,
    _CONDITIONS[names.CONDITION_SESSION_READY]: _SESSION,
    _REMOVED: _ASKED,
}
"""The progress of lines by their text, which is all that a record keeps of them."""


class LabStory(msgspec.Struct, frozen=True):
    """The story of an operation, as far as it is known.

    Attributes:
        operation: Which one.
        lines: In the order of their times.
        progress: In percent.
        state: What goes on at present; "" if that is not known.
        ended: Whether no line will follow; the last one then is `complete` or `failed`.
    """

    operation: LabOperation
    lines: tuple[LabLine, ...]
    progress: int
    state: str = ""
    ended: bool = False


def tell(lab: UserLab, events: Iterable[Event]) -> LabStory:
    """Return the story of the current operation of a lab.

    Args:
        lab: The lab of a user.
        events: Those about its Pod.
    """
    operation = operation_of(lab.record)
    of_lab, of_bench = list[Event](), list[Event]()
    for event in events:
        (of_bench if event.metadata.name.startswith(f"{bench_name(lab.key)}.") else of_lab).append(event)
    beside = [] if operation.deletes else list(_of_bench(operation, lab.own_bench, of_bench))
    pod = lab.pod if operation.deletes else lab.own_pod
    return tell_of(operation, pod, of_lab, ahead=lab.ahead, beside=beside)


def _of_bench(operation: LabOperation, bench: Pod | None, events: Iterable[Event]) -> Iterator[LabLine]:
    """Yield the lines of the workbench beside the lab, whose progress they are not."""
    for line in _of_pod(operation, bench, events, _OF_BENCH):
        if line.text == _MADE:  # that is said of the lab
            continue
        yield msgspec.structs.replace(line, text=_text(f"{BENCH_SAYS}{line.text}"))


def tell_of(
    operation: LabOperation,
    pod: Pod | None,
    events: Iterable[Event] = (),
    *,
    ahead: int = 0,
    beside: Iterable[LabLine] = (),
) -> LabStory:
    """Return the story of an operation.

    Args:
        operation: The current one of the lab.
        pod: The lab's Pod; None if there is none.
        events: Those about the Pod.
        ahead: How many labs start before this one.
        beside: Lines of what stands beside the lab.
    """
    found = {line.source: line for line in operation.saved}
    asked = LabLine(operation.at, LineKind.INFO, _hash(operation.id, "asked"), 1, _text(operation.title))
    for line in (asked, *_of_pod(operation, pod, events), *beside):
        if line.source not in found or found[line.source].order < line.order:
            found[line.source] = line
    lines = sorted(found.values(), key=lambda line: line.at)[-LINES_MAX:]  # at the same time, in the order of causes
    if operation.phase:
        return _ended(operation, lines, complete=operation.phase == LineKind.COMPLETE, why=operation.fault)
    return LabStory(operation, tuple(lines), _progress(operation, pod), _state(operation, pod, ahead))


def follow(last: LabStory | None, lab: UserLab | None, events: Iterable[Event]) -> LabStory | None:
    """Return the story for somebody who follows an operation; None if there is no lab, and was none.

    Args:
        last: The story as it was before; None at the beginning.
        lab: The lab of the user; None if there is none.
        events: Those about its Pod.
    """
    if lab is None:
        return gone(last) if last is not None else None
    told = tell(lab, events)
    return told if last is None or last.operation.id == told.operation.id else replaced(last)


def gone(last: LabStory) -> LabStory:
    """Return the end of an operation whose lab has gone with its namespace: as it should, if it was to delete it."""
    if last.ended:
        return last
    deletes = last.operation.deletes
    return _ended(last.operation, last.lines, complete=deletes, why="" if deletes else "The lab was deleted.")


def replaced(last: LabStory) -> LabStory:
    """Return the end of an operation that another one has replaced, such as a deletion before the lab ran."""
    if last.ended:
        return last
    return _ended(last.operation, last.lines, complete=False, why="Another operation has replaced this one.")


def operation_key(operation: LabOperation) -> str:
    """Return a short text that stands for an operation in the position of a listener."""
    return _hash(operation.id)


def saved(told: LabStory) -> tuple[Saved, ...]:
    """Return the lines that the record keeps of an operation that ends now."""
    kept = [line for line in told.lines if line.kind in {LineKind.INFO, LineKind.ERROR}][-SAVED_MAX:]
    return tuple(Saved(line.at, line.kind, line.source, line.order, line.text) for line in kept)


def _ended(operation: LabOperation, lines: Iterable[LabLine], *, complete: bool, why: str) -> LabStory:
    at, last = operation.ended_at, list(lines)
    if not complete:
        last.append(LabLine(at, LineKind.ERROR, _hash(operation.id, "why"), 1, _text(why or "The operation failed.")))
    kind, text = (LineKind.COMPLETE, "complete") if complete else (LineKind.FAILED, "failed")
    last.append(LabLine(at, kind, _hash(operation.id, "end"), 1, text))
    return LabStory(operation, tuple(last), _DONE if complete else 0, ended=True)


def _of_pod(
    operation: LabOperation, pod: Pod | None, events: Iterable[Event], told: Mapping[str, str] = _CONDITIONS
) -> Iterator[LabLine]:
    if pod is None:
        return
    until = math.ceil(operation.ended_at) if operation.phase else math.inf
    for said in story.tell(pod, sorted(events, key=_written)):
        if not math.floor(operation.since) <= said.at <= until:
            continue
        source, *rest = said.key
        if source == "created" and not operation.deletes:
            yield LabLine(said.at, LineKind.INFO, _hash(pod.metadata.uid, source), 1, _MADE)
        elif source == "deleted" and operation.deletes:
            yield LabLine(said.at, LineKind.INFO, _hash(pod.metadata.uid, source), 1, _REMOVED)
        elif source == "condition" and not operation.deletes and rest[1] == "True" and rest[0] in told:
            text = told[rest[0]]
            yield LabLine(said.at, LineKind.INFO, _hash(pod.metadata.uid, source, rest[0]), int(said.at), text)
        elif source == "event" and (said.warns or said.reason not in _TOLD_BY_CONDITIONS):
            kind = LineKind.ERROR if said.warns else LineKind.INFO
            yield LabLine(said.at, kind, _hash(rest[0]), int(rest[1]), _text(f"{said.reason}: {said.message}"))


def _written(event: Event) -> tuple[int, str, str]:
    """Return the place of an Event among those of the same second: the order in which they were written (KEP-5504)."""
    version = event.metadata.resource_version
    return len(version), version, event.metadata.uid


def _progress(operation: LabOperation, pod: Pod | None) -> int:
    if operation.deletes:
        return _ASKED if pod is not None else _POD_GONE
    if pod is None:
        return 1
    true = {condition.type for condition in pod.status.conditions if condition.status == "True"}
    if names.CONDITION_SESSION_READY in true:
        return _SESSION
    if names.CONDITION_LAB_CONVERGED in true:
        return _BOOTED
    if names.CONDITION_LAB_IMPORTED in true:
        booted, total = _devices(pod)
        return _IMPORTED + (_BOOTED - _IMPORTED) * booted // total
    return _CLAIMED if names.ANNOTATION_CONTENT in pod.metadata.annotations else _OBJECTS


def _devices(pod: Pod) -> tuple[int, int]:
    """Return how many devices are booted, and how many there are, at least 1."""
    booted, _, total = pod.metadata.annotations.get(names.ANNOTATION_DEVICES, "").partition("/")
    if not (booted.isdecimal() and total.isdecimal() and int(total)):
        return 0, 1
    return min(int(booted), int(total)), int(total)


def _state(operation: LabOperation, pod: Pod | None, ahead: int) -> str:
    if pod is None and operation.deletes:
        return "The lab is gone, and its namespace is being deleted"
    if pod is None:
        return f"The lab waits to be started: place {ahead} in the queue" if ahead else ""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            if condition.reason == Happened.UNSCHEDULABLE:
                return _text(f"The lab waits for a worker that can take it: {condition.message}")
            return _text(f"{condition.reason}: {condition.message}")
    if not operation.deletes and (shown := pod.metadata.annotations.get(names.ANNOTATION_DEVICES, "")):
        booted, total = _devices(pod)
        if booted < total:
            return _text(f"Devices boot: {shown.replace('/', ' of ')}{_missing(pod)}")
    for status in pod.status.container_statuses:
        if waiting := status.state.get("waiting"):
            return _text(": ".join(filter(None, (waiting.get("reason", ""), waiting.get("message", "")))))
    return ""


def _missing(pod: Pod) -> str:
    """Return which devices are missing, since when and how long that may take, as the provider tells it; "" if not."""
    for status in pod.status.container_statuses:
        waiting = status.state.get("waiting", {})
        reason, message = waiting.get("reason", ""), str(waiting.get("message", ""))
        if reason == Progress.STARTING_NODES and (told := message.partition(" booted, ")[2]):
            return f", {told}"
        if reason == Trouble.LAB_QUEUED and message:
            return f"; {message}"
    return ""


def _text(text: str) -> str:
    return shorten(" ".join(text.split()), TEXT_CHARS_MAX)


def _hash(*parts: str) -> str:
    """Return a short text of `A-Z a-z 0-9 _ -` that stands for these."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return urlsafe_b64encode(digest[:_SOURCE_BYTES]).decode()


_SOURCES_MAX: Final = LINES_MAX + 2
"""The lines of an operation with its end."""
_CHARS_MAX: Final = 16 * 1024
_FORM: Final = re.compile(r"(?P<operation>[\w-]{8})~(?P<progress>\d{1,3})~(?P<seen>[\w.,-]*)", re.ASCII)
_SEEN: Final = re.compile(r"(?P<source>[\w-]{8})\.(?P<order>\d{1,15})", re.ASCII)


class Position(msgspec.Struct, frozen=True):
    """What a listener has of the stream.

    Attributes:
        operation: The operation, hashed; "" before its first line.
        progress: The highest progress that it was told.
        seen: The order of the last line of each source.
        state: The present state that it was told; not part of the text.
    """

    operation: str = ""
    progress: int = 0
    seen: dict[str, int] = {}
    state: str = ""

    def __str__(self) -> str:
        """Return it as the id of an event."""
        newest = list(self.seen.items())[-_SOURCES_MAX:]
        return f"{self.operation}~{self.progress}~{','.join(f'{source}.{order}' for source, order in newest)}"


def parse(text: str) -> Position:
    """Return a position from the text of a listener; the beginning if it is none of ours."""
    if len(text) > _CHARS_MAX or (form := _FORM.fullmatch(text)) is None:
        return Position()
    seen = {}
    for part in form["seen"].split(",") if form["seen"] else ():
        if (each := _SEEN.fullmatch(part)) is None:
            return Position()
        seen[each["source"]] = int(each["order"])
    return Position(form["operation"], min(int(form["progress"]), 100), seen)


class Sent(msgspec.Struct, frozen=True):
    """What a listener is sent.

    Attributes:
        kind: A line's kind, or progress.
        text: The line; with progress alone, what goes on.
        progress: In percent: of a line, when it was told; else now.
        id: The position after it; "" for a present state, which nobody needs later.
    """

    kind: LineKind
    text: str
    progress: int
    id: str = ""


def news(position: Position, told: LabStory) -> tuple[Position, list[Sent]]:
    """Return the events that a listener lacks, after its position thereafter.

    The progress of a line is that of its time, so that who listens later is told the same; it never falls.
    """
    operation = operation_key(told.operation)
    if position.operation != operation:
        position = Position(operation)
    sent, reached = list[Sent](), max(1, position.progress)
    if told.progress > position.progress:
        position = msgspec.structs.replace(position, progress=told.progress)
        sent.append(Sent(LineKind.PROGRESS, told.state, told.progress, str(position)))
    for line in told.lines:
        reached = max(reached, told.progress if line.kind is LineKind.COMPLETE else line.progress)
        if position.seen.get(line.source, 0) < line.order:
            seen = {**position.seen, line.source: line.order}
            position = msgspec.structs.replace(position, seen=seen)
            sent.append(Sent(line.kind, line.text, reached, str(position)))
    if told.state and told.state != position.state:
        sent.append(Sent(LineKind.INFO, told.state, max(reached, position.progress)))
    return msgspec.structs.replace(position, state=told.state), sent
