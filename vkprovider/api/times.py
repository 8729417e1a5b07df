"""Times as Kubernetes writes them."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=64)
def iso(unix: int) -> str:
    """Return Unix seconds in RFC 3339, as Kubernetes writes them: `2026-01-31T12:00:00Z`."""
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix(stamp: str) -> float | None:
    """Return the Unix seconds of a time in RFC 3339; None if it is none, or has no zone."""
    try:
        when = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return when.timestamp() if when.tzinfo is not None else None
