"""When a pool is to be full: as people write it, as cron does, and on days on which clocks change. Pure.

A CronJob with `timeZone` begins whenever the clock on the wall of that zone shows its time: 09:00 stays 09:00 in summer
and in winter. Only a time that clocks jump over or show twice is another matter: the controller leaves out the first
(https://pkg.go.dev/github.com/robfig/cron/v3 says so), and does the second twice. `surprises` finds these days.
"""

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import msgspec

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
HORIZON_DAYS: Final = 366
"""How far ahead a change of clocks is looked for."""
LEAD_MINUTES_MAX: Final = 12 * 60
"""The longest time that boots may begin before a class."""
JOB_MINUTES: Final = 10
"""The longest time that a Job of a schedule takes; it may take effect at the end of it."""
_DAY: Final = 24 * 60
_WEEK: Final = 7 * _DAY
_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_MINUTE: Final = timedelta(minutes=1)
_HOW: Final = f"write {', '.join(DAYS[:-1])} or {DAYS[-1]}, as mon,wed or mon-fri, or daily"
_NOT_ZONES: Final = frozenset({"Factory", "Local", "local", "localtime", "posixrules"})
"""Names that a database may have, and that say nothing to another machine."""


class TimetableError(ValueError):
    """A timetable cannot be kept; the text says why, and what to write instead."""


class Window(msgspec.Struct, frozen=True, order=True):
    """From when until when a pool is full, in minutes of the day."""

    at: int
    until: int


class Timetable(msgspec.Struct, frozen=True):
    """When a pool is full.

    Attributes:
        zone: A name of the time zone database, such as `Europe/Berlin`.
        days: Of the week, 0 for Monday.
        windows: On each of these days.
        ready: How many free lablets the pool has then.
        rest: How many it has at all other times.
        lead: How many minutes before `at` the boots begin.
    """

    zone: str
    days: tuple[int, ...]
    windows: tuple[Window, ...]
    ready: int
    rest: int = 0
    lead: int = 0

    @property
    def begins(self) -> list[int]:
        """When boots begin, in minutes of the week."""
        return [(day * _DAY + window.at - self.lead) % _WEEK for day in self.days for window in self.windows]

    @property
    def ends(self) -> list[int]:
        """When the pool gets smaller, in minutes of the week."""
        return [day * _DAY + window.until for day in self.days for window in self.windows]

    @property
    def gap(self) -> int:
        """The least time between an end and the next begin, in minutes; not more than 0 if a begin is undone."""
        return min(begins - ends for ends, begins in self.turns)

    @property
    def turns(self) -> list[tuple[int, int]]:
        """Each end with the next begin, in minutes of the week."""
        full = sorted(
            (day * _DAY + window.at - self.lead, day * _DAY + window.until)
            for day in self.days
            for window in self.windows
        )
        return [(ends, begins) for (_, ends), (begins, _) in pairwise([*full, (full[0][0] + _WEEK, 0)])]

    @property
    def begin_crons(self) -> tuple[str, ...]:
        """The cron expressions of the begins; several only where their minutes, or days, differ."""
        return crons(self.begins)

    @property
    def end_crons(self) -> tuple[str, ...]:
        """The cron expressions of the ends."""
        return crons(self.ends)

    @property
    def text(self) -> str:
        """When, for people: `mon, wed 09:00-17:00 Europe/Berlin`."""
        hours = ", ".join(f"{clock(window.at)}-{clock(window.until)}" for window in self.windows)
        days = "daily" if len(self.days) == len(DAYS) else ", ".join(DAYS[day] for day in self.days)
        return f"{days} {hours} {self.zone}"


def clock(minute: int) -> str:
    """Format a minute of the day, or of the week.

    >>> clock(540)
    '09:00'
    """
    return f"{minute % _DAY // 60:02}:{minute % 60:02}"


def zone_named(name: str) -> ZoneInfo:
    """Return a time zone.

    Raises:
        TimetableError: There is none of that name.
    """
    try:
        if name and name not in _NOT_ZONES:
            return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    if not (known := available_timezones()):
        raise TimetableError("this machine has no time zone database: pip install tzdata")
    near = difflib.get_close_matches(name, known, 1)
    hint = f"do you mean {near[0]}?" if near else "write a name such as Europe/Berlin"
    raise TimetableError(f"{name or 'an empty text'} is no time zone; {hint}")


def days_of(text: str) -> tuple[int, ...]:
    """Parse days of the week, such as `mon,wed`, `mon-fri` or `daily`; 0 is Monday.

    Raises:
        TimetableError: They are misspelt.
    """
    if text.strip().lower() == "daily":
        return tuple(range(len(DAYS)))
    found: set[int] = set()
    for part in text.lower().replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        begin, end = _day(first), _day(last if dash else first)
        found |= {day % len(DAYS) for day in range(begin, end + 1 if begin <= end else end + 1 + len(DAYS))}
    return tuple(sorted(found))


_LONG: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def _day(text: str) -> int:
    for names in (DAYS, _LONG):
        if text in names:
            return names.index(text)
    raise TimetableError(f"{text or 'an empty text'} is no day of the week; {_HOW}")


def windows_of(at: str, until: str) -> tuple[Window, ...]:
    """Parse the times of a day: `09:00,14:00` and `12:00,17:00` are two windows.

    Raises:
        TimetableError: They are no times, not as many, or in no order.
    """
    begins, ends = ([_minute(part) for part in text.split(",")] for text in (at, until))
    if len(begins) != len(ends):
        raise TimetableError(f"--at names {len(begins)} and --until {len(ends)} times; each begin has its own end")
    windows = tuple(sorted(map(Window, begins, ends)))
    for window in windows:
        if window.until <= window.at:
            raise TimetableError(
                f"--until {clock(window.until)} is not after --at {clock(window.at)}; a class ends on the day on which "
                "it begins"
            )
    return windows


def _minute(text: str) -> int:
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        raise TimetableError(f"{text.strip() or 'an empty text'} is no time of the day; write one such as 09:00")
    return int(match[1]) * 60 + int(match[2])


def lead_for(boots_s: float, *, measured: bool) -> int:
    """Return how many minutes before a class boots begin: a tenth and a minute more than was measured."""
    return math.ceil((boots_s * 1.1 + 60 if measured else boots_s) / 60)


def check(table: Timetable) -> None:
    """Check that no begin is undone by an end.

    Raises:
        TimetableError: One is, or the boots would begin too early.
    """
    if table.lead > LEAD_MINUTES_MAX:
        raise TimetableError(
            f"lablets would begin to boot {table.lead} minutes before; at most {LEAD_MINUTES_MAX} is possible: name "
            "how long they boot by --boots"
        )
    for ends, begins in table.turns:
        if begins - ends <= JOB_MINUTES:
            raise TimetableError(
                f"boots would begin at {clock(begins)}, and the end of the window before, at {clock(ends)}, whose Job "
                f"may take {JOB_MINUTES} minutes, would take these lablets away: make one window of the two, or leave "
                "more time"
            )


def crons(moments: Iterable[int]) -> tuple[str, ...]:
    """Return the fewest cron expressions for minutes of the week; hours and days that go together are one.

    >>> crons([540, 540 + 2 * 1440, 840, 840 + 2 * 1440])
    ('0 9,14 * * 1,3',)
    """
    days: dict[int, set[int]] = {}
    for moment in moments:
        days.setdefault(moment % _DAY, set()).add((moment // _DAY + 1) % len(DAYS))  # cron's week begins on Sunday
    hours: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for minute in sorted(days):
        hours.setdefault((minute % 60, tuple(sorted(days[minute]))), []).append(minute // 60)
    return tuple(
        f"{minute} {','.join(map(str, of_day))} * * {','.join(map(str, of_week)) if len(of_week) < len(DAYS) else '*'}"
        for (minute, of_week), of_day in hours.items()
    )


def instants(wall: datetime, zone: ZoneInfo) -> list[datetime]:
    """Return when clocks of a zone show a time: never, once or twice.

    Args:
        wall: Without a zone.
        zone: Whose clocks.
    """
    both = {wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(each for each in both if each.astimezone(zone).replace(tzinfo=None) == wall)


class WindowDay(msgspec.Struct, frozen=True):
    """One window on one day.

    Attributes:
        day: Its date.
        window: Which.
        begins: When the controller begins the boots: never, once or twice.
        ats: When clocks show the time at which all is to be Ready.
        ends: When the controller makes the pool smaller.
    """

    day: date
    window: Window
    begins: list[datetime]
    ats: list[datetime]
    ends: list[datetime]


def window_days(table: Timetable, first: date, days: int) -> Iterator[WindowDay]:
    """Yield each window of some days, in order.

    Args:
        table: The timetable.
        first: The first day.
        days: How many.
    """
    zone = ZoneInfo(table.zone)
    for day in (first + timedelta(days=n) for n in range(days)):
        if day.weekday() in table.days:
            for window in table.windows:
                at, until = (datetime.combine(day, time()) + minute * _MINUTE for minute in (window.at, window.until))
                begin = at - table.lead * _MINUTE
                yield WindowDay(day, window, *(instants(wall, zone) for wall in (begin, at, until)))


def begun(table: Timetable, now: datetime) -> WindowDay | None:
    """Return the window whose boots have begun, and which has not ended; None if there is none.

    Args:
        table: The timetable.
        now: With a zone.
    """
    first = now.astimezone(ZoneInfo(table.zone)).date()
    for each in window_days(table, first, 2):  # the boots for tomorrow's may begin today
        if each.begins and each.ends and each.begins[0] <= now < each.ends[-1]:
            return each
    return None


def surprises(table: Timetable, first: date, days: int = HORIZON_DAYS) -> list[str]:
    """Say on which days a change of clocks makes lablets late, early or missing; arguments as of `window_days`."""
    return [f"{each.day}: {text}" for each in window_days(table, first, days) for text in _told(table, each)]


def _told(table: Timetable, shown: WindowDay) -> Iterator[str]:
    at, until = clock(shown.window.at), clock(shown.window.until)
    begin, lead = clock(shown.window.at - table.lead), table.lead * _MINUTE
    if not shown.ats:
        yield f"clocks go forward past {at}, which does not exist that day"
    if not shown.begins:
        yield f"clocks go forward past {begin}, so that nothing is booted for {at}"
    elif len(shown.begins) > 1:
        yield f"clocks show {begin} twice, so that the pool is filled at the first and again at the second"
    if shown.ats and shown.begins and (late := lead - (shown.ats[0] - shown.begins[0])):
        minutes = abs(late) // _MINUTE
        how = "late" if late > _NO else "early"
        yield f"clocks change meanwhile, so that lablets are ready {minutes} minutes {how}"
    if not shown.ends:
        yield f"clocks go forward past {until}, so that the pool stays as it is"
    elif len(shown.ends) > 1:
        yield f"clocks show {until} twice, so that the pool gets smaller at the first and again at the second"


_NO: Final = timedelta()


def spans(table: Timetable, since: datetime, days: int) -> list[tuple[datetime, datetime]]:
    """Return from when until when a pool is full on the days from a time on, in UTC.

    Args:
        table: The timetable.
        since: With a zone.
        days: How many.
    """
    first = since.astimezone(ZoneInfo(table.zone)).date()
    found: Sequence[WindowDay] = [each for each in window_days(table, first, days + 1) if each.begins and each.ends]
    return [(each.begins[0], each.ends[-1]) for each in found if each.ends[-1] > since]
