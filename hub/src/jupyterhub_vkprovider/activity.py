"""What counts as a learner's activity: what the portal says of consoles, never an open tab."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

_EXPOSED_EVERY: Final = timedelta(seconds=60)
_ON_ITS_WAY: Final = timedelta(seconds=30)


def activity_of(body: Mapping[str, object], known: datetime | None, now: datetime, date: str = "") -> datetime | None:
    """Return the time of activity that the hub does not know yet; None if there is none.

    An exposed lab serves people who never open a console: it is active until its end.

    Args:
        body: A lab's status, with `"last_activity": "2026-03-01T10:00:00Z"` or null, and `"exposed": true` or false.
        known: The last activity of which the hub knows.
        now: The present, by the hub's clock, by which it also tells who is idle.
        date: The same by the clock that the body's times have, as the header `Date` tells it; "" if that is unknown.
    """
    if body.get("exposed") is True:
        return now if known is None or now - known >= _EXPOSED_EVERY else None
    at = _time(body.get("last_activity"))
    if at is None:
        return None
    at = min(at + _ahead(now, date), now)
    return at if known is None or at > known else None


def _ahead(now: datetime, date: str) -> timedelta:
    """Return by how much the hub's clock is ahead; nothing if that may be the way of an answer."""
    try:
        ahead = now - parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return timedelta()
    return ahead if abs(ahead) > _ON_ITS_WAY else timedelta()


def _time(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if at is None:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
