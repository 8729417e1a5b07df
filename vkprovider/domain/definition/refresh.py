"""Refreshing: when a source is read again, who asked for it, and what became of it.

Content reaches the cluster only when an admin says so: by changing version or source of a definition, or by the
annotation that `kubectl lablet refresh` sets. Each such request is answered once.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from vkprovider.api import names
from vkprovider.api.models import LabletDefinitionSpec
from vkprovider.api.objects import CustomResource

CONDITION: Final = "Refreshed"
"""Type of the condition that tells how the last refresh went."""
ANSWER: Final[Mapping[str, str]] = {"Stored": "ContentStored", "Unchanged": "VersionUnchanged"}
"""Result of a refresh: its reason."""

Result = Literal["Stored", "Unchanged", "Refused"]


@dataclass(frozen=True, slots=True)
class Request:
    """A refresh request.

    Attributes:
        raw: The annotation as it stands there; empty if nobody asked.
        by: Who asked; the admission policy lets nobody write another's name. Empty if it cannot be read.
        force: Take the content even if its version is that of the current one.
    """

    raw: str = ""
    by: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of reading a source.

    Attributes:
        version: Of the content that was read; empty if it was not understood.
        devices: How many it has.
    """

    result: Result
    reason: str
    message: str
    version: str = ""
    devices: int = 0


def write(by: str, at: str, *, force: bool) -> str:
    """Write a request as the admission policy expects it: the caller's name last, nothing left to chance."""
    document = {"requestedAt": at, "force": force, "requestedBy": by}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def read(raw: str) -> Request:
    """Read a request; any text that is none asks for a refresh too, in nobody's name."""
    try:
        document = json.loads(raw)
        by, force = document["requestedBy"], document.get("force", False)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Request(raw)
    return Request(raw, by if isinstance(by, str) else "", force is True)


def asked(resource: CustomResource) -> Request:
    """Read the request that stands on a definition."""
    return read(resource.metadata.annotations.get(names.ANNOTATION_REFRESH, ""))


def waiting(resource: CustomResource) -> Request:
    """Read the request that was not answered yet; an empty one if there is none. To remove a request asks nothing."""
    request = asked(resource)
    return Request() if resource.status.get("refresh", "") == request.raw else request


def fingerprint(spec: LabletDefinitionSpec) -> str:
    """Name what a spec says of its content, so that a change of anything else reads nothing."""
    wanted = [spec.version, spec.source.model_dump(mode="json"), spec.package_key]
    return hashlib.sha256(json.dumps(wanted, sort_keys=True).encode()).hexdigest()


def is_due(resource: CustomResource, spec: LabletDefinitionSpec) -> bool:
    """Tell whether a definition's source should be read (again)."""
    status: Mapping[str, Any] = resource.status
    if waiting(resource).raw or status.get("source", "") != fingerprint(spec):
        return True
    refused = status.get("lastRefresh", {}).get("result") == "Refused"
    return refused and status.get("observedGeneration") != resource.metadata.generation  # that may be the remedy
