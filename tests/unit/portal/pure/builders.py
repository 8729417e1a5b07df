"""User labs for tests."""

from typing import Any

from vkprovider.lablet import names
from vkprovider.platform import wellknown
from vkprovider.platform.objects import Condition, Container, ContainerStatus, Metadata, Pod, PodSpec, PodStatus
from vkprovider.platform.times import iso
from vkprovider.portal.pure import portalnames, record
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.portalnames import namespace_of, pod_name, user_key
from vkprovider.portal.pure.record import Ending, LabOutcome, LabRequest

INSTALLATION = "vkprovider"
NOW = 1_769_860_800
REQUEST = LabRequest(id="r1", at=NOW, definition="netlab:1.0", by="alice", duration_s=14_400, secrets=())
ENDING = Ending(id="e1", at=NOW, by="alice", reason="DeleteRequested")
COMPLETE = LabOutcome(id="r1", kind="create", phase="complete", at=NOW)
FAILED = LabOutcome(id="r1", kind="create", phase="failed", at=NOW, reason="StartTimedOut", text="too long")


def namespace(
    user: str = "alice",
    *parts: LabRequest | Ending | LabOutcome,
    deleted: bool = False,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> Metadata:
    """The Namespace of a user, with the parts of its record."""
    noted = {portalnames.ANNOTATION_USER: user}
    for part in parts:
        noted |= record.annotation(part)
    return Metadata(
        namespace_of("nublado", user),
        uid=f"uid-{user}",
        resource_version="7",
        creation_timestamp=iso(NOW),
        deletion_timestamp=iso(NOW) if deleted else None,
        labels=record.labels_for(INSTALLATION, user) | (labels or {}),
        annotations=noted | (annotations or {}),
    )


def pod(
    user: str = "alice",
    *,
    request: str = "r1",
    phase: str = "Pending",
    ready: bool = False,
    deleted: bool = False,
    created_at: int = NOW,
    ready_at: int = NOW,
    end: int | None = NOW + 14_400,
    reason: str = "",
    message: str = "",
    finalizers: tuple[str, ...] = (),
    grace_s: int = 0,
    **annotations: str,
) -> Pod:
    """The lablet of a user, or of a warm lab; `reason` and `message` are those of its end, or of what it waits for."""
    noted = {f"{wellknown.GROUP}/{key.replace('_', '-')}": text for key, text in annotations.items()}
    if end is not None:
        noted[names.ANNOTATION_TIMESLOT_END] = iso(end)
    labels = {portalnames.LABEL_PORTAL: INSTALLATION} | ({portalnames.LABEL_USER: user_key(user)} if user else {})
    kind = "terminated" if phase in {"Succeeded", "Failed"} else "waiting"
    state: dict[str, dict[str, Any]] = {kind: {"reason": reason, "message": message}} if reason else {}
    return Pod(
        Metadata(
            pod_name(user_key(user)),
            namespace_of("nublado", user),
            uid=f"pod-{user or 'warm'}",
            creation_timestamp=iso(created_at),
            deletion_timestamp=iso(created_at) if deleted else None,
            deletion_grace_period_seconds=grace_s,
            finalizers=list(finalizers),
            labels=labels | {portalnames.LABEL_REQUEST: request},
            annotations=noted,
        ),
        PodSpec([Container("lab")]),
        PodStatus(
            phase,
            reason if phase == "Failed" else "",
            [Condition("Ready", "True" if ready else "False", last_transition_time=iso(ready_at))],
            [ContainerStatus("lab", state=state)],
        ),
    )


def lab(*parts: LabRequest | Ending | LabOutcome, the_pod: Pod | None = None, **meta: Any) -> UserLab:
    """The lab of alice, whose lablet may be opened without anybody knowing unless `exposed` is said."""
    found = record.record_of(namespace("alice", *parts, **meta), INSTALLATION)
    assert found is not None
    return UserLab(found, the_pod, exposed=False)
