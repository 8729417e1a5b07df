"""Times and durations on the command line."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

_UNITS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"\+?((?:\d+[dhms])+)")
_PART: Final = re.compile(r"(\d+)([dhms])")
_SECONDS_MAX: Final = 366 * 86400
_HOW: Final = "a time such as 2026-01-31T12:00:00Z, or a duration such as 90m or +2h30m"


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


def moment(text: str, base: datetime) -> datetime:
    """Parse a time with a zone, or a duration counted from `base`.

    Raises:
        BadParameter: It is neither.
    """
    if (seconds := seconds_of(text)) is not None:
        return base + timedelta(seconds=seconds)
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise click.BadParameter(f"{text!r} is not {_HOW}") from None
    if when.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no time zone; write {text}Z, or {_HOW}")
    return when.astimezone(UTC)


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
