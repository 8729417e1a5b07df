"""The output of a console as a terminal shows it, and CML's console log as lines with times.

CML writes each line as `|<milliseconds>|text`, in milliseconds from the start of the device; a start begins with
smaller numbers than those of the run before it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[()*+][0-9A-Za-z]|[@-Z\\^_a-z=>78])|[\x00\x07\x0e\x0f]"
)
"""Escape sequences of ECMA-48 and of xterm, and control characters that show nothing."""
_CONTROLS: Final = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What else a terminal may obey, such as what is left of a sequence within a sequence."""


def shown(line: str) -> str:
    """Return a line as a terminal shows it: what was erased or written over is gone.

    >>> shown("--More--" + 8 * chr(8) + "interface" + chr(13))
    'interface'
    """
    plain = _CONTROLS.sub("", _ESCAPES.sub("", line)).removesuffix("\r")
    if "\b" not in plain and "\r" not in plain:
        return plain
    cells: list[str] = []
    at = 0
    for char in plain:
        if char == "\b":
            at = max(0, at - 1)
        elif char == "\r":
            at = 0
        else:
            cells[at : at + 1] = [char]
            at += 1
    return "".join(cells).rstrip()


def squeezed(line: str) -> str:
    """Return the visible characters that were sent for a line, also those that were written over."""
    return "".join(char for char in _ESCAPES.sub("", line) if char.isprintable() and not char.isspace())


_FORM: Final = re.compile(r"\|(\d{1,15})\|(.*)", re.DOTALL)


class RunLine(NamedTuple):
    """A line of a run: its time in milliseconds from the start, and its text."""

    ms: int
    text: str


class TimedLine(NamedTuple):
    """A line with its time, in seconds since the epoch."""

    at: float
    text: str


def parse(log: str) -> list[list[RunLine]]:
    """Parse a log into the runs of the device, the last one last; a line without a time has that of the one before."""
    runs: list[list[RunLine]] = [[]]
    ms = 0
    for raw in log.split("\n") if log else ():
        found = _FORM.fullmatch(raw)
        text = found[2] if found is not None else raw
        now_ms = int(found[1]) if found is not None else ms
        if now_ms < ms:
            runs.append([])
        ms = now_ms
        runs[-1].append(RunLine(ms, shown(text)))
    return runs


def dated(run: Sequence[RunLine], *, started_at: float, now: float) -> list[TimedLine]:
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
    return [TimedLine(start + entry.ms / 1000, entry.text) for entry in run]


def dated_until(run: Sequence[RunLine], ended_at: float) -> list[TimedLine]:
    """Give the lines of a run that has ended their times."""
    return dated(run, started_at=0, now=ended_at)


def news(before: Sequence[RunLine], after: Sequence[RunLine]) -> Iterable[RunLine] | None:
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
