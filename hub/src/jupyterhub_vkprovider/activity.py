"""What counts as a learner's activity: what the portal says of consoles, never an open tab."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

_EXPOSED_EVERY: Final = timedelta(seconds=60)


def activity_of(body: Mapping[str, object], known: datetime | None, now: datetime) -> datetime | None:
    """Return the time of activity that the hub does not know yet; None if there is none.

    An exposed lab serves people who never open a console: it is active until its end.

    Args:
        body: A lab's status, with `"last_activity": "2026-03-01T10:00:00Z"` or null, and `"exposed": true` or false.
        known: The last activity of which the hub knows.
        now: The present.
    """
    if body.get("exposed") is True:
        return now if known is None or now - known >= _EXPOSED_EVERY else None
    at = _time(body.get("last_activity"))
    if at is None:
        return None
    at = min(at, now)  # the clock of another machine
    return at if known is None or at > known else None


def _time(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if at is None:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
