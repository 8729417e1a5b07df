"""The status of a LabletDefinition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vkprovider import __version__
from vkprovider.api.messages import Condition, Fault
from vkprovider.api.objects import CustomResource
from vkprovider.api.reasons import DefinitionReason, reason_of
from vkprovider.api.times import iso
from vkprovider.domain import conditions as builder
from vkprovider.domain.conditions import conditions_of
from vkprovider.domain.definition import content as contents
from vkprovider.domain.definition import refresh
from vkprovider.domain.definition.content import Content
from vkprovider.domain.definition.refresh import RefreshOutcome
from vkprovider.domain.topology.topology import Device

READY: Final = "Ready"
IMPEDED: Final = "Impeded"
DIGEST_CHARS: Final = 8
"""The characters of a digest that people compare."""
_NAMED_MAX: Final = 5
"""Impediments in a message."""
_LISTED_MAX: Final = 500
"""The most devices, and ports, in a status, which must fit into one object together with an inline topology."""


@dataclass(frozen=True, slots=True)
class SourceRead:
    """The result of reading a definition's source.

    Attributes:
        source: Identifies what was read, so that it is not read again; empty while reading is still to come, None if
            the source was not read.
        outcome: The result of a refresh; None if there was none.
        fault: Why a refresh continues; the stored versions stay.
        refused: Digest of content that is wrong by itself; empty if there is none.
    """

    source: str | None = None
    outcome: RefreshOutcome | None = None
    fault: Fault | None = None
    refused: str = ""


def refused_content(resource: CustomResource, digest: str) -> Fault | None:
    """Return why this release of the provider refused a content, according to the status; None if it did not."""
    ready = condition(resource, READY)
    if resource.status.get("refused") != _refused(digest) or ready.get("status") != "False":
        return None
    return Fault(reason_of(ready.get("reason", "")), ready.get("message", ""))


def _refused(digest: str) -> dict[str, str]:
    return {"digest": digest, "provider": __version__}


def condition(resource: CustomResource, kind: str) -> Mapping[str, Any]:
    """Return a condition of the status; empty if there is none."""
    return conditions_of(resource.status).get(kind, {})


def is_ready(resource: CustomResource) -> bool:
    """Return whether the condition Ready is True."""
    return bool(condition(resource, READY).get("status") == "True")


def refused_by(read: SourceRead) -> Fault | None:
    """Return why a definition without content has none."""
    if read.outcome is not None and read.outcome.result == "Refused":
        return Fault(read.outcome.reason, read.outcome.message)
    return read.fault


def refused(resource: CustomResource) -> Fault | None:
    """Return why the last refresh was refused, according to the status; None if it was not."""
    said = condition(resource, refresh.CONDITION)
    if said.get("status") != "False":
        return None
    return Fault(reason_of(said.get("reason", DefinitionReason.PACKAGE_INVALID)), said.get("message", ""))


def render(
    resource: CustomResource,
    versions: Sequence[Content],
    fault: Fault | None,
    read: SourceRead,
    now: int,
    *,
    impediments: Sequence[Fault] = (),
) -> dict[str, Any]:
    """Build the status.

    Args:
        resource: The definition, with its current status.
        versions: The versions that new Pods may run, newest first.
        fault: Why it is not ready.
        read: The result of reading its source.
        now: Unix seconds.
        impediments: What keeps lablets from working although the content is good.
    """
    if fault is not None:
        ready = Condition(READY, "False", fault.reason, fault.message)
    elif versions:
        text = f"versions kept: {', '.join(f'{c.version} (digest {c.digest[:DIGEST_CHARS]})' for c in versions)}"
        ready = Condition(READY, "True", DefinitionReason.CONTENT_READY, text)
    else:
        ready = Condition(READY, "False", DefinitionReason.NO_CONTENT, "no content yet")
    before = conditions_of(resource.status)
    refreshed = _refreshed(resource, read)
    conditions = [
        builder.condition(before, wanted, now_unix=now)
        for wanted in (ready, refreshed, _impeded(impediments))
        if wanted is not None
    ]
    wanted = {
        "conditions": conditions,
        "observedGeneration": resource.metadata.generation,
        "refresh": (read.source and refresh.asked(resource).raw) or resource.status.get("refresh", ""),
        "source": resource.status.get("source", "") if read.source is None else read.source,
        "refused": _refused(read.refused) if read.refused else None,
        "version": versions[0].version if versions else "",
        "versions": [_version(content) for content in versions],
        "devices": [_device(device) for device in (versions[0].topology.devices[:_LISTED_MAX] if versions else ())],
        "portTemplate": [
            {
                "name": slot.name,
                "device": slot.device,
                "container": slot.container,
                "protocol": slot.protocol,
                "tag": slot.tag.text,
                "opened": slot.tag.opened,
            }
            for slot in (versions[0].topology.template.slots[:_LISTED_MAX] if versions else ())
        ],
        "resources": contents.charged(versions).quantities() if versions else {},
    }
    if read.outcome is not None:
        wanted["lastRefresh"] = _last(resource, read.outcome, now)
    return wanted


def _impeded(faults: Sequence[Fault]) -> Condition | None:
    if not faults:
        return None
    more = f"; and {len(faults) - _NAMED_MAX} more" if len(faults) > _NAMED_MAX else ""
    return Condition(IMPEDED, "True", faults[0].reason, "; ".join(f.message for f in faults[:_NAMED_MAX]) + more)


def _refreshed(resource: CustomResource, read: SourceRead) -> Condition | None:
    """Build the condition of the last refresh; it stays until the next one."""
    kind = refresh.CONDITION
    if read.outcome is not None:
        status = "False" if read.outcome.result == "Refused" else "True"
        return Condition(kind, status, read.outcome.reason, read.outcome.message)
    if read.fault is not None:
        return Condition(kind, "False", read.fault.reason, read.fault.message)
    before = condition(resource, kind)
    if not before:
        return None
    return Condition(kind, before["status"], reason_of(before.get("reason", "")), before.get("message", ""))


def _last(resource: CustomResource, outcome: RefreshOutcome, now: int) -> dict[str, Any]:
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


def _device(device: Device) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "label": device.label,
        "container": device.container,
        "nodeDefinition": device.definition,
        "visible": device.visible,
    }
    if device.image is not None:
        shown["imageDefinition"] = device.image
    return shown


def _version(content: Content) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "version": content.version,
        "digest": content.digest,
        "resources": content.need.quantities(),
    }
    if content.files:
        shown["files"] = sorted(content.files)
    if content.stored_by:
        shown["refreshedBy"] = content.stored_by
    if content.stored_at:
        shown["refreshedAt"] = content.stored_at
    return shown
