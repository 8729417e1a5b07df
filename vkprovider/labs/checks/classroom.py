"""Checks of one namespace, of what an instructor can mend there, or can tell an admin."""

from collections.abc import Iterable, Sequence

import msgspec

from vkprovider.doctor.findings import Finding, admission_remedy, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.doctor.rights import CheckedRight, by_what
from vkprovider.lablet import names
from vkprovider.lablet.models.status import worker_status
from vkprovider.labs.pure.worker.registration import unapproved
from vkprovider.platform import quantities
from vkprovider.platform.objects import CustomResource, Metadata


class _QuotaStatus(msgspec.Struct, frozen=True):
    hard: dict[str, str] = {}
    used: dict[str, str] = {}


class Quota(msgspec.Struct, frozen=True):
    """A ResourceQuota, and how much of it is used."""

    metadata: Metadata
    status: _QuotaStatus = _QuotaStatus()


def check_rights(role: str, missing: Sequence[CheckedRight], command: str) -> list[Finding]:
    """Report what a user lacks of a role.

    Args:
        role: The ClusterRole.
        missing: Its rights that the user has not.
        command: By which an admin makes the user an instructor.
    """
    if not missing:
        return []
    text = "you may not " + "; ".join(f"{verbs} {what}" for what, verbs in by_what(missing).items())
    return [
        fault(f"ClusterRole/{role}", DoctorReason.INSTRUCTOR_RIGHTS_MISSING, text, f"An admin grants it: {command}")
    ]


def of_class(definitions: Iterable[CustomResource], namespace: str, used: Iterable[str]) -> list[CustomResource]:
    """Return the definitions that concern a class: those that it owns, and those that it runs.

    Args:
        definitions: All of them.
        namespace: That of the class.
        used: The names that Pods and pools of the namespace have as runtimeClassName.
    """
    run = set(used)
    return [each for each in definitions if owner(each) == namespace or each.metadata.name in run]


def owner(definition: CustomResource) -> str:
    """Return the namespace that owns a definition; "" for one of the admins."""
    return definition.metadata.labels.get(names.LABEL_OWNER_NAMESPACE, "")


def check_workers(definition: CustomResource, workers: Iterable[CustomResource]) -> list[Finding]:
    """Check that there is a worker for the lablets of a definition; whether one is large enough its condition tells."""
    environment = names.environment_of(definition.spec)
    mates = [each for each in workers if names.environment_of(each.spec) == environment]
    if any(worker_status(each).is_ready and unapproved(each) is None for each in mates):
        return []
    why = f": {'; '.join(_unready(each) for each in mates)}" if mates else ", for there is none"
    text = f"no worker of its environment {environment} is Ready{why}"
    about, reason = f"LabletDefinition/{definition.metadata.name}", DoctorReason.NO_WORKER_READY
    return [fault(about, reason, text, reason.remedy)]


def _unready(worker: CustomResource) -> str:
    if waits := unapproved(worker):
        return f"{worker.metadata.name} ({waits.reason})"
    ready = worker_status(worker).ready
    return f"{worker.metadata.name} ({ready.reason if ready is not None else DoctorReason.NOT_OBSERVED})"


def check_quota(quota: Quota) -> list[Finding]:
    """Report what is used up of a quota."""
    hard, used = quota.status.hard, quota.status.used
    full = [f"{used[name]} of {hard[name]} {name}" for name in sorted(hard) if name in used and _is_full(quota, name)]
    if not full:
        return []
    about = f"ResourceQuota/{quota.metadata.namespace}/{quota.metadata.name}"
    text = f"{', '.join(full)} {'is' if len(full) == 1 else 'are'} used"
    return [note(about, DoctorReason.QUOTA_FULL, text, DoctorReason.QUOTA_FULL.remedy)]


def _is_full(quota: Quota, name: str) -> bool:
    try:
        return quantities.parse(quota.status.used[name]) >= quantities.parse(quota.status.hard[name])
    except ValueError:
        return False


def check_refusal(definition: str, namespace: str, message: str, command: str) -> Finding:
    """Report that the API server would not make a lablet.

    Args:
        definition: Of which.
        namespace: Where.
        message: The API server's.
        command: By which an admin makes the user an instructor, and lets the namespace run lablets.
    """
    if "may not use LabletDefinition" in message:
        text = f"ServiceAccount {namespace}/default may not use LabletDefinition {definition}"
        about = f"ServiceAccount/{namespace}/default"
        return fault(about, DoctorReason.USE_MISSING, text, f"An admin grants it: {command}")
    about = f"LabletDefinition/{definition}"
    if "exceeded quota" in message:
        return note(
            about,
            DoctorReason.QUOTA_FULL,
            f"there is no room for one more lablet: {message}",
            DoctorReason.QUOTA_FULL.remedy,
        )
    return fault(
        about, DoctorReason.FAILED_CREATE, f"a lablet of it would be refused: {message}", admission_remedy(message)
    )
