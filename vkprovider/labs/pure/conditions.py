"""Conditions as Kubernetes stores them: the one builder for custom resources and Nodes."""

from collections.abc import Mapping
from typing import Any

from vkprovider.lablet.models.status import ResourceCondition
from vkprovider.platform.messages import TimelessCondition
from vkprovider.platform.times import iso


def condition(before: ResourceCondition | None, wanted: TimelessCondition, *, now_unix: int) -> ResourceCondition:
    """Build a condition of a custom resource; its transition time changes only when its status does.

    Args:
        before: The current condition of this type, if there is one.
        wanted: What it is to report.
        now_unix: The time, of the wall clock.
    """
    since = before.last_transition_time if before is not None and before.status == wanted.status else None
    return ResourceCondition(
        wanted.type, wanted.status, wanted.reason, wanted.message, last_transition_time=since or iso(now_unix)
    )


def node_condition(
    before: Mapping[str, Mapping[str, Any]], wanted: TimelessCondition, *, now_unix: int
) -> dict[str, Any]:
    """Build a condition of a Node, which has a heartbeat; its transition time changes only when its status does.

    Args:
        before: The current conditions by type.
        wanted: What it is to report.
        now_unix: The time, of the wall clock.
    """
    old = before.get(wanted.type, {})
    since = old.get("lastTransitionTime") if old.get("status") == wanted.status else None
    return {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastTransitionTime": since or iso(now_unix),
        "lastHeartbeatTime": iso(now_unix),
    }
