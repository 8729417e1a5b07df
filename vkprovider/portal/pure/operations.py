"""An operation of a user lab as its record has it, and the lines that tell of it."""

from enum import StrEnum
from typing import Final

import msgspec

from vkprovider.portal.pure.record import LabRecord

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


class ToldOperation(msgspec.Struct, frozen=True):
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


def operation_of(record: LabRecord) -> ToldOperation:
    """Return the current operation of a lab; a record that cannot be read tells of one that has failed."""
    request, ending, outcome = record.request, record.ending, record.outcome
    if ending is not None:
        found = ToldOperation(ending.id, deletes=True, at=ending.at, title=_ENDED, since=ending.at)
    elif request is not None:
        since = 0.0 if request.at - record.created_at < _NEW_S else request.at
        title = f"Lab asked for: {request.definition}"
        found = ToldOperation(request.id, deletes=False, at=request.at, title=title, since=since)
    else:
        damaged = ", ".join(record.damaged)
        why = f"The record of the lab cannot be read ({damaged}): have it deleted, and ask for a new one."
        at, title = record.created_at, "A lab was asked for"
        return ToldOperation(
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
