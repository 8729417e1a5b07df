"""Times as Kubernetes writes them."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_LAST: Final = datetime.max.replace(microsecond=0, tzinfo=UTC)
"""What lies beyond them has no date."""
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
