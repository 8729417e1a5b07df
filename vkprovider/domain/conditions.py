"""Conditions of our custom resources: as they stand in a status, and as they become."""

from collections.abc import Mapping
from typing import Any

from vkprovider.api.times import iso


def conditions_of(status: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give the conditions of a status by their type."""
    return {str(condition.get("type")): condition for condition in status.get("conditions", ())}


def become(
    before: Mapping[str, Mapping[str, Any]], kind: str, status: str, reason: str, message: str, *, now_unix: int
) -> dict[str, Any]:
    """Make a condition; its transition time moves only when its status does.

    Args:
        before: The conditions as they stand, by type.
        kind: Its type.
        status: `True`, `False` or `Unknown`.
        reason: A word that docs/why.md explains.
        message: For people.
        now_unix: The time, of the wall clock.
    """
    old = before.get(kind, {})
    changed = old.get("lastTransitionTime") if old.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": changed or iso(now_unix),
    }
