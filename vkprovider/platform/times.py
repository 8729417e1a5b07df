"""Times as Kubernetes writes them, and as people read them."""

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(microsecond=0, tzinfo=UTC)
"""What lies beyond them has no date."""
_MINUTE_S: Final = 60
_HOUR_S: Final = 3600
_FIRST_S: Final = int(_FIRST.timestamp())
_LAST_S: Final = int(_LAST.timestamp())


@lru_cache(maxsize=64)
def iso(unix: int) -> str:
    """Return Unix seconds in RFC 3339, as Kubernetes writes them: `2026-01-31T12:00:00Z`.

    What lies before year 1 or after year 9999 is written as the first or the last second that has a date: a sum of a
    time and a length, both of which somebody else wrote, must not take a page away.
    """
    when = datetime.fromtimestamp(min(max(unix, _FIRST_S), _LAST_S), UTC)
    return f"{when.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def unix(stamp: str) -> float | None:
    """Return the Unix seconds of a time in RFC 3339; None if it is none, has no zone, or has no date in UTC."""
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if when.tzinfo is None:
        return None
    at = when.timestamp()
    return at if _FIRST_S <= at <= _LAST_S else None


def clock(at: float, now: float) -> str:
    """Return a time as a clock shows it, with the date unless it is today.

    >>> clock(1769869800, 1769865480), clock(1769869800, 1769965480)
    ('14:30 UTC', '2026-01-31 14:30 UTC')
    """
    shown = minute(at)
    return shown.partition(" ")[2] if iso(int(now)).startswith(shown[:10]) else shown


def minute(at: float) -> str:
    """Return a time to the minute, with its date.

    >>> minute(0)
    '1970-01-01 00:00 UTC'
    """
    return f"{iso(int(at))[:16].replace('T', ' ')} UTC"


def length(seconds: float) -> str:
    """Return a length of time in its two largest units, rounded up.

    >>> length(4320), length(3600), length(59), length(61)
    ('1 h 12 min', '1 h', '59 s', '2 min')
    """
    seconds = math.ceil(seconds)
    if seconds < _MINUTE_S:
        return f"{seconds} s"
    hours, minutes = divmod(math.ceil(seconds / _MINUTE_S), _HOUR_S // _MINUTE_S)
    return " ".join([*([f"{hours} h"] if hours else []), *([f"{minutes} min"] if minutes else [])])
