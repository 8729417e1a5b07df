"""CML's console log as lines with times.

CML writes each line as `|<milliseconds>|text`, in milliseconds from the start of the device; a start begins with
smaller numbers than those of the run before it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vkprovider.labs.pure.console.screen import shown

_FORM: Final = re.compile(r"\|(\d{1,15})\|(.*)", re.DOTALL)


class Entry(NamedTuple):
    """A line of a run: its time in milliseconds from the start, and its text."""

    ms: int
    text: str


class Line(NamedTuple):
    """A line with its time, in seconds since the epoch."""

    at: float
    text: str


def parse(log: str) -> list[list[Entry]]:
    """Parse a log into the runs of the device, the last one last; a line without a time has that of the one before."""
    runs: list[list[Entry]] = [[]]
    ms = 0
    for raw in log.split("\n") if log else ():
        found = _FORM.fullmatch(raw)
        text = found[2] if found is not None else raw
        now_ms = int(found[1]) if found is not None else ms
        if now_ms < ms:
            runs.append([])
        ms = now_ms
        runs[-1].append(Entry(ms, shown(text)))
    return runs


def dated(run: Sequence[Entry], *, started_at: float, now: float) -> list[Line]:
    """Give the lines of a run that goes on their times.

    Args:
        run: The lines.
        started_at: When it was started, as far as that is known; 0 if not.
        now: The time: no line is later.
    """
    if not run:
        return []
    latest = now - run[-1].ms / 1000
    start = min(started_at, latest) if started_at else latest
    return [Line(start + entry.ms / 1000, entry.text) for entry in run]


def dated_until(run: Sequence[Entry], ended_at: float) -> list[Line]:
    """Give the lines of a run that has ended their times."""
    return dated(run, started_at=0, now=ended_at)


def news(before: Sequence[Entry], after: Sequence[Entry]) -> Iterable[Entry] | None:
    """Return the entries that are new in a later, possibly shorter, part of a log; None if it does not join on.

    Args:
        before: The last entries that are known.
        after: The end of the log as it is now.
    """
    if not before:
        return after
    last = before[-1]
    for at in range(len(after) - 1, -1, -1):
        count = min(at + 1, len(before))
        if after[at] == last and list(after[at + 1 - count : at + 1]) == list(before[-count:]):
            return after[at + 1 :]
    return None
