"""Refreshing: when a source is read again, who requested it, and the result.

Content reaches the cluster only at an admin's request: a changed version or source of a definition, or the annotation
that `kubectl lablet refresh` sets. Each request is answered once.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from vkprovider.lablet import names
from vkprovider.lablet.models.definition import LabletDefinitionSpec
from vkprovider.lablet.models.status import definition_status
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.reasons import Reason

CONDITION: Final = "Refreshed"
"""Type of the condition with the result of the last refresh."""
ANSWER: Final[Mapping[str, Reason]] = {
    "Stored": DefinitionReason.CONTENT_STORED,
    "Unchanged": DefinitionReason.VERSION_UNCHANGED,
}
"""Result of a refresh: its reason."""

Result = Literal["Stored", "Unchanged", "Refused"]


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """A refresh request.

    Attributes:
        raw: The annotation, unparsed; empty if there is no request.
        by: The requesting user; the admission policy ensures that it is the writer's own name. Empty if unreadable.
        force: Store the content even if its version is the current one.
    """

    raw: str = ""
    by: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class RefreshOutcome:
    """The result of reading a source.

    Attributes:
        version: Of the content; empty if it could not be parsed.
        devices: How many the content has.
    """

    result: Result
    reason: Reason
    message: str
    version: str = ""
    devices: int = 0


def write(by: str, at: str, *, force: bool) -> str:
    """Format a request exactly as the admission policy expects it: the caller's name last."""
    document = {"requestedAt": at, "force": force, "requestedBy": by}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def read(raw: str) -> RefreshRequest:
    """Parse a request; any other text requests a refresh too, without a user."""
    try:
        document = json.loads(raw)
        by, force = document["requestedBy"], document.get("force", False)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return RefreshRequest(raw)
    return RefreshRequest(raw, by if isinstance(by, str) else "", force is True)


def asked(resource: CustomResource) -> RefreshRequest:
    """Return the request in a definition's annotation."""
    return read(resource.metadata.annotations.get(names.ANNOTATION_REFRESH, ""))


def waiting(resource: CustomResource) -> RefreshRequest:
    """Return the unanswered request; an empty one if there is none. Removing the annotation is not a request."""
    request = asked(resource)
    return RefreshRequest() if definition_status(resource).refresh == request.raw else request


def fingerprint(spec: LabletDefinitionSpec) -> str:
    """Hash the content fields of a spec, so that a change of any other field does not read the source."""
    wanted = [spec.version, spec.source.model_dump(mode="json"), spec.package_key]
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()


def is_due(resource: CustomResource, spec: LabletDefinitionSpec) -> bool:
    """Return whether a definition's source has to be read (again)."""
    status = definition_status(resource)
    if waiting(resource).raw or status.source != fingerprint(spec):
        return True
    refused = status.last_refresh and status.last_refresh.result == "Refused"
    return bool(refused) and status.observed_generation != resource.metadata.generation  # the change may be the remedy
