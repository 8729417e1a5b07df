"""The status of a LabletDefinition."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from vkprovider import __version__
from vkprovider.lablet.models.status import (
    DefinitionStatus,
    KeptVersion,
    LastRefresh,
    RefusedContent,
    ResourceCondition,
    ShownDevice,
    ShownLink,
    ShownPort,
    definition_status,
)
from vkprovider.lablet.ports import HIDDEN_TAG, PortSlot
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure import conditions as builder
from vkprovider.labs.pure.definition import content as contents
from vkprovider.labs.pure.definition import refresh
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.definition.refresh import RefreshOutcome
from vkprovider.labs.pure.topology.topology import Device
from vkprovider.platform.messages import Fault, TimelessCondition, sentences
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.reasons import reason_of
from vkprovider.platform.times import iso

READY: Final = "Ready"
IMPEDED: Final = "Impeded"
DIGEST_CHARS: Final = 8
"""The characters of a digest that people compare."""
_NAMED_MAX: Final = 5
"""Impediments in a message."""
_LISTED_MAX: Final = 500
"""The most devices, links and ports in a status, which must fit into one object together with an inline topology."""


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
    status = definition_status(resource)
    ready = status.ready
    if status.refused != _refused(digest) or ready is None or ready.status != "False":
        return None
    return ready.fault


def _refused(digest: str) -> RefusedContent:
    return RefusedContent(digest, __version__)


def refused_by(read: SourceRead) -> Fault | None:
    """Return why a definition without content has none."""
    if read.outcome is not None and read.outcome.result == "Refused":
        return Fault(read.outcome.reason, read.outcome.message)
    return read.fault


def refused(resource: CustomResource) -> Fault | None:
    """Return why the last refresh was refused, according to the status; None if it was not."""
    said = definition_status(resource).condition(refresh.CONDITION)
    if said is None or said.status != "False":
        return None
    return Fault(reason_of(said.reason or DefinitionReason.PACKAGE_INVALID), said.message)


def render(
    resource: CustomResource,
    versions: Sequence[Content],
    fault: Fault | None,
    read: SourceRead,
    now: int,
    *,
    impediments: Sequence[Fault] = (),
    boot_timeout_s: int | None = None,
) -> DefinitionStatus:
    """Build the status.

    Args:
        resource: The definition, with its current status.
        versions: The versions that new Pods may run, newest first.
        fault: Why it is not ready.
        read: The result of reading its source.
        now: Unix seconds.
        impediments: What keeps lablets from working although the content is good.
        boot_timeout_s: How long a device may take to boot; None without content.
    """
    if fault is not None:
        ready = TimelessCondition(READY, "False", fault.reason, fault.message)
    elif versions:
        text = f"versions kept: {', '.join(f'{c.version} (digest {c.digest[:DIGEST_CHARS]})' for c in versions)}"
        ready = TimelessCondition(READY, "True", DefinitionReason.CONTENT_READY, text)
    else:
        ready = TimelessCondition(READY, "False", DefinitionReason.NO_CONTENT, "no content yet")
    before = definition_status(resource)
    refreshed = _refreshed(before.condition(refresh.CONDITION), read)
    conditions = [
        builder.condition(before.condition(wanted.type), wanted, now_unix=now)
        for wanted in (ready, refreshed, _impeded(impediments))
        if wanted is not None
    ]
    topology = versions[0].topology if versions else None
    return DefinitionStatus(
        conditions=conditions,
        observed_generation=resource.metadata.generation,
        refresh=(read.source and refresh.asked(resource).raw) or before.refresh,
        source=before.source if read.source is None else read.source,
        last_refresh=_last(resource, before, read.outcome, now) if read.outcome is not None else UNSET,
        refused=_refused(read.refused) if read.refused else None,
        version=versions[0].version if versions else "",
        versions=[_version(content) for content in versions],
        devices=[_device(device) for device in topology.devices[:_LISTED_MAX]] if topology else [],
        links=[ShownLink(*pair) for pair in topology.pairs[:_LISTED_MAX]] if topology else [],
        port_template=[_port(slot) for slot in topology.template.slots[:_LISTED_MAX]] if topology else [],
        resources=contents.charged(versions).quantities() if versions else {},
        boot_timeout_seconds=UNSET if boot_timeout_s is None else boot_timeout_s,
    )


def _impeded(faults: Sequence[Fault]) -> TimelessCondition | None:
    if not faults:
        return None
    return TimelessCondition(
        IMPEDED, "True", faults[0].reason, sentences([fault.message for fault in faults], _NAMED_MAX)
    )


def _refreshed(before: ResourceCondition | None, read: SourceRead) -> TimelessCondition | None:
    """Build the condition of the last refresh; it stays until the next one."""
    kind = refresh.CONDITION
    if read.outcome is not None:
        status = "False" if read.outcome.result == "Refused" else "True"
        return TimelessCondition(kind, status, read.outcome.reason, read.outcome.message)
    if read.fault is not None:
        return TimelessCondition(kind, "False", read.fault.reason, read.fault.message)
    return (
        TimelessCondition(kind, before.status, reason_of(before.reason), before.message) if before is not None else None
    )


def _last(resource: CustomResource, before: DefinitionStatus, outcome: RefreshOutcome, now: int) -> LastRefresh:
    request = refresh.waiting(resource)
    last = LastRefresh(request.raw, request.by, iso(now), outcome.result, outcome.version, outcome.devices)
    if before.last_refresh and replace(last, time=before.last_refresh.time) == before.last_refresh:
        return before.last_refresh if before.last_refresh.time else last
    return last


def _device(device: Device) -> ShownDevice:
    image = UNSET if device.image is None else device.image
    x, y = (UNSET, UNSET) if device.place is None else device.place
    hidden = True if HIDDEN_TAG in device.tags else UNSET
    return ShownDevice(device.label, device.container, device.definition, image, device.visible, hidden, x, y)


def _port(slot: PortSlot) -> ShownPort:
    return ShownPort(slot.name, slot.device, slot.container, slot.protocol, slot.tag.text, slot.tag.opened)


def _version(content: Content) -> KeptVersion:
    return KeptVersion(
        version=content.version,
        digest=content.digest,
        files=sorted(content.files) if content.files else UNSET,
        refreshed_by=content.stored_by or UNSET,
        refreshed_at=content.stored_at or UNSET,
        resources=content.need.quantities(),
    )
