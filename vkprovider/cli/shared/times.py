"""Times and durations on the command line."""

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final

import click

_UNITS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"\+?((?:\d+[dhms])+)")
_PART: Final = re.compile(r"(\d+)([dhms])")
_SECONDS_MAX: Final = 366 * 86400
_CLOCK: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_HOW: Final = "a time such as 16:00 or 2026-01-31T12:00:00Z, or a duration such as 90m or +2h30m"


def seconds_of(text: str) -> int | None:
    """Parse a duration; None if it is not one.

    >>> seconds_of("1h30m")
    5400
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return None
    seconds = sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(match[1]))
    return seconds if seconds <= _SECONDS_MAX else None


_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400
_SPANS: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
    (float("inf"), _YEAR, "y", 0, ""),
)
"""Up to that many seconds: whole units, and the rest in smaller ones. As `duration.HumanDuration` of k8s.io."""


def span(length: timedelta) -> str:
    """Format a length of time as kubectl does: the largest unit, and the next one while the first is small.

    >>> span(timedelta(hours=2, minutes=5))
    '125m'
    """
    seconds = max(0, int(length.total_seconds()))
    _, unit_s, unit, rest_s, rest_unit = next(step for step in _SPANS if seconds < step[0])
    rest = seconds % unit_s // rest_s if rest_s else 0
    return f"{seconds // unit_s}{unit}{rest}{rest_unit}" if rest else f"{seconds // unit_s}{unit}"


def time_of(text: str) -> datetime | None:
    """Parse a time with a zone; None if it is not one."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return when.astimezone(UTC) if when.tzinfo is not None else None


def local(text: str, now: datetime, zone: tzinfo | None = None) -> str:
    """Format a time for a person: in a time zone, None for this machine's, and without the date if that is today's.

    A text that is no time stays as it is.
    """
    when = time_of(text)
    if when is None:
        return text
    here, today = when.astimezone(zone), now.astimezone(zone)
    return here.strftime("%H:%M" if here.date() == today.date() else "%Y-%m-%d %H:%M")


def moment(text: str, base: datetime, zone: tzinfo | None = None) -> datetime:
    """Parse a time of day, a time with a zone, or a duration.

    Args:
        text: `16:00` is the next time that the clock shows that after `base`; a duration counts from `base`.
        base: The time from which is counted.
        zone: The zone of the clock; None is this machine's.

    Raises:
        BadParameter: It is none of these.
    """
    if (seconds := seconds_of(text)) is not None:
        return base + timedelta(seconds=seconds)
    if (clock := _CLOCK.fullmatch(text.strip())) is not None:
        return _next_at(time(int(clock[1]), int(clock[2])), base, zone)
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise click.BadParameter(f"{text!r} is not {_HOW}") from None
    if when.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no time zone; write {text}Z, or {_HOW}")
    return when.astimezone(UTC)


def _next_at(clock: time, base: datetime, zone: tzinfo | None) -> datetime:
    """Return when a clock shows a time next, after `base`.

    In the night when clocks go back it may show it twice. When they go forward it may not show it: the time that many
    minutes after the jump counts then, as in `datetime`.
    """
    today = base.astimezone(zone).date()
    found = []
    for day in (today + timedelta(days=days) for days in range(3)):
        both = [datetime.combine(day, clock.replace(fold=fold), zone).astimezone(UTC) for fold in (0, 1)]
        shown = [when for when in both if when.astimezone(zone).time() == clock]
        found += shown or both[:1]
    return min(when for when in found if when > base)


def rfc3339(when: datetime) -> str:
    """Format a time as in annotations."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration(_: click.Context, __: click.Parameter, value: str) -> int:
    """Parse an option's duration into seconds, as its click callback.

    Raises:
        BadParameter: It is not a duration, or zero.
    """
    if not (seconds := seconds_of(value)):
        raise click.BadParameter(f"invalid duration {value!r} (try 90s or 5m)")
    return seconds
