"""Conditions as Kubernetes stores them: the one builder for custom resources and Nodes."""

from collections.abc import Mapping
from typing import Any

from vkprovider.api.messages import Condition
from vkprovider.api.times import iso


def conditions_of(status: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conditions of a status by type."""
    return {str(condition.get("type")): condition for condition in status.get("conditions", ())}


def condition(before: Mapping[str, Mapping[str, Any]], wanted: Condition, *, now_unix: int) -> dict[str, Any]:
    """Build a condition; its transition time changes only when its status does.

    Args:
        before: The current conditions by type.
        wanted: What it is to report.
        now_unix: The time, of the wall clock.
    """
    old = before.get(wanted.type, {})
    changed = old.get("lastTransitionTime") if old.get("status") == wanted.status else None
    return {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastTransitionTime": changed or iso(now_unix),
    }


def node_condition(before: Mapping[str, Mapping[str, Any]], wanted: Condition, *, now_unix: int) -> dict[str, Any]:
    """Build a condition of a Node: the same with a heartbeat."""
    return condition(before, wanted, now_unix=now_unix) | {"lastHeartbeatTime": iso(now_unix)}
