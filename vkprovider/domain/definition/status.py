"""What a LabletDefinition's status says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vkprovider.api.errors import InputError
from vkprovider.api.objects import CustomResource
from vkprovider.api.times import iso
from vkprovider.domain.conditions import become, conditions_of
from vkprovider.domain.definition import content as contents
from vkprovider.domain.definition import refresh
from vkprovider.domain.definition.content import Content
from vkprovider.domain.definition.refresh import Outcome

READY: Final = "Ready"
_LISTED_MAX: Final = 500
"""Of devices and of ports in the status, which must fit into one object together with an inline topology."""


@dataclass(frozen=True, slots=True)
class Turn:
    """How one look at a definition's source went.

    Attributes:
        source: Names what was read, so that it is not read again; empty while that is still to come, None if it was
            not looked at.
        outcome: What became of a refresh; None if there was none.
        fault: Why a refresh goes on; it does not touch what is kept.
    """

    source: str | None = None
    outcome: Outcome | None = None
    fault: InputError | None = None


def condition(resource: CustomResource, kind: str) -> Mapping[str, Any]:
    """Give a condition of the status; empty if there is none."""
    return conditions_of(resource.status).get(kind, {})


def is_ready(resource: CustomResource) -> bool:
    """Tell whether the condition Ready is True."""
    return bool(condition(resource, READY).get("status") == "True")


def refused_by(turn: Turn) -> InputError | None:
    """Give the reason why a definition without content has none."""
    if turn.outcome is not None and turn.outcome.result == "Refused":
        return InputError(turn.outcome.reason, turn.outcome.message)
    return turn.fault


def refused(resource: CustomResource) -> InputError | None:
    """Give the reason why the last refresh was refused, as the status tells it; None if it was not."""
    said = condition(resource, refresh.CONDITION)
    if said.get("status") != "False":
        return None
    return InputError(said.get("reason", "PackageInvalid"), said.get("message", ""))


def render(
    resource: CustomResource, kept: Sequence[Content], fault: InputError | None, turn: Turn, now: int
) -> dict[str, Any]:
    """Make the status.

    Args:
        resource: The definition, with the status that it has.
        kept: The versions that new pods may run, newest first.
        fault: Why it is not ready.
        turn: How reading its source went.
        now: Unix seconds.
    """
    if fault is not None:
        ready = ("False", fault.reason, fault.message)
    elif kept:
        ready = ("True", "ContentReady", f"versions kept: {', '.join(c.version for c in kept)}")
    else:
        ready = ("False", "NoContent", "no content yet")
    before = conditions_of(resource.status)
    conditions = [become(before, READY, *ready, now_unix=now)]
    refreshed = _refreshed(resource, turn)
    if refreshed is not None:
        conditions.append(become(before, refresh.CONDITION, *refreshed, now_unix=now))
    wanted = {
        "conditions": conditions,
        "observedGeneration": resource.metadata.generation,
        "refresh": (turn.source and refresh.asked(resource).raw) or resource.status.get("refresh", ""),
        "source": resource.status.get("source", "") if turn.source is None else turn.source,
        "version": kept[0].version if kept else "",
        "versions": [_version(content) for content in kept],
        "devices": [
            {"label": d.label, "container": d.container, "nodeDefinition": d.definition}
            for d in (kept[0].topology.devices[:_LISTED_MAX] if kept else ())
        ],
        "portTemplate": [
            {"name": slot.name, "device": slot.device, "protocol": slot.protocol}
            for slot in (kept[0].topology.template.slots[:_LISTED_MAX] if kept else ())
        ],
        "resources": contents.charged(kept).quantities() if kept else {},
    }
    if turn.outcome is not None:
        wanted["lastRefresh"] = _last(resource, turn.outcome, now)
    return wanted


def _refreshed(resource: CustomResource, turn: Turn) -> tuple[str, str, str] | None:
    """Make the condition that tells of the last refresh; it stays until the next one."""
    if turn.outcome is not None:
        status = "False" if turn.outcome.result == "Refused" else "True"
        return status, turn.outcome.reason, turn.outcome.message
    if turn.fault is not None:
        return "False", turn.fault.reason, turn.fault.message
    said = condition(resource, refresh.CONDITION)
    return (said["status"], said.get("reason", ""), said.get("message", "")) if said else None


def _last(resource: CustomResource, outcome: Outcome, now: int) -> dict[str, Any]:
    request = refresh.waiting(resource)
    last = {
        "request": request.raw,
        "requestedBy": request.by,
        "result": outcome.result,
        "version": outcome.version,
        "devices": outcome.devices,
    }
    before = resource.status.get("lastRefresh", {})
    same = all(before.get(key) == value for key, value in last.items())
    return {**last, "time": before["time"] if same and "time" in before else iso(now)}


def _version(content: Content) -> dict[str, Any]:
    told: dict[str, Any] = {
        "version": content.version,
        "digest": content.digest,
        "resources": content.need.quantities(),
    }
    if content.files:
        told["files"] = sorted(content.files)
    if content.stored_by:
        told["refreshedBy"] = content.stored_by
    if content.stored_at:
        told["refreshedAt"] = content.stored_at
    return told
