"""The API server's clock, learned from the `Date` of its answers.

Stamps in Kubernetes objects are judged by this clock alone: that of the own machine may be wrong, and so may one
answer. A time that ends, deletes or hands out something needs two answers that agree, `AGREE_AFTER_S` apart.
"""

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

AGREE_AFTER_S: Final = 30.0
"""How long one reading must hold until it is believed."""
AGREE_WITHIN_S: Final = 2.5
"""How far readings of one clock lie apart: a date has whole seconds, and an answer is on its way for a time."""
SKEW_S: Final = 30.0
"""A machine whose clock is off by more should be told."""
_REFINE_S: Final = 60.0
"""For how long the best reading counts: the server's clock may be slewed."""


def monotonic() -> float:
    """Seconds on a clock that goes on while the machine sleeps, so that a fence holds after a suspend."""
    return time.clock_gettime(_BOOTTIME)


_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def is_off(skew_s: float) -> bool:
    """Return whether a machine's clock is off by more than anybody should leave it."""
    return abs(skew_s) > SKEW_S


class ClockReading(NamedTuple):
    """What an answer says: the server's Unix seconds less the monotonic seconds of its arrival, and when it arrived."""

    offset: float
    at: float

    def agrees(self, other: "ClockReading") -> bool:
        """Return whether both are of one clock."""
        return abs(self.offset - other.offset) <= AGREE_WITHIN_S


class Belief(NamedTuple):
    """What is believed of the server's clock.

    Attributes:
        best: The reading that is believed.
        since: When the first reading of this clock arrived.
        is_sure: Whether two readings agree, `AGREE_AFTER_S` apart.
        rival: The first of the readings that disagree with it and agree with one another; None without.
    """

    best: ClockReading
    since: float
    is_sure: bool = False
    rival: ClockReading | None = None


def heard(belief: Belief | None, reading: ClockReading) -> Belief:
    """Return what is believed after an answer.

    An answer on its way makes a reading too small, so that the largest of a time is the best; no reading is ahead of
    the server. One that disagrees is believed only when another one agrees with it, later: several API servers whose
    clocks differ, and an answer that was held up, change nothing.
    """
    if belief is None:
        return Belief(reading, reading.at)
    best, rival = belief.best, belief.rival
    if reading.agrees(best):
        is_better = reading.offset >= best.offset or reading.at - best.at > _REFINE_S
        is_sure = belief.is_sure or reading.at - belief.since >= AGREE_AFTER_S
        return Belief(reading if is_better else best, belief.since, is_sure)
    if rival is None or not reading.agrees(rival):
        return belief._replace(rival=reading)
    if reading.at - rival.at >= AGREE_AFTER_S:
        return Belief(reading, rival.at, is_sure=True)
    return belief


class ApiClock:
    """What time it is on the API server; the own clock before its first answer."""

    def __init__(self, now: Callable[[], float] = monotonic, own: Callable[[], float] = time.time) -> None:
        """Believe nothing yet.

        Args:
            now: A monotonic clock.
            own: The wall clock of this machine.
        """
        self._now: Final = now
        self._own: Final = own
        self._belief: Belief | None = None
        self._date: str | None = None

    def note(self, date: str | None) -> None:
        """Note the `Date` of an answer that has just arrived; the first answer of a second says all that others do."""
        if date == self._date:
            return
        self._date = date
        try:
            unix = parsedate_to_datetime(date).timestamp() if date else 0.0
        except (ValueError, OverflowError):
            return
        if unix:
            now = self._now()
            self._belief = heard(self._belief, ClockReading(unix - now, now))

    def wall(self) -> float:
        """Return the server's Unix seconds, never ahead of it."""
        return self._now() + self._belief.best.offset if self._belief is not None else self._own()

    @property
    def is_known(self) -> bool:
        """Whether the server has told the time."""
        return self._belief is not None

    def is_sure(self) -> bool:
        """Return whether something may end because a stamp has passed."""
        return self._belief is not None and self._belief.is_sure

    def skew_s(self) -> float:
        """Return by how many seconds the clock of this machine is ahead of the server's; 0.0 while unknown."""
        return self._own() - self.wall() if self._belief is not None else 0.0
