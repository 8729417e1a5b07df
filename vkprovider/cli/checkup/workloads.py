"""Checks of what makes lablets: whose Pods are missing, and what does not wait as long as labs may boot."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import msgspec

from vkprovider.doctor.findings import Finding, admission_remedy, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform.objects import Condition, Metadata
from vkprovider.portal.checks.offer import STARTS_BESIDE_S

FAILED_CREATE: Final = DoctorReason.FAILED_CREATE
"""The reason of Events, and of a ReplicaSet's condition, when the API server refuses a Pod."""
PROGRESS_DEADLINE_S: Final = 600
"""`progressDeadlineSeconds` of a Deployment that names none."""


class _TemplateSpec(msgspec.Struct, frozen=True, rename="camel"):
    runtime_class_name: str = ""


class _Template(msgspec.Struct, frozen=True):
    spec: _TemplateSpec = _TemplateSpec()


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    template: _Template = _Template()
    replicas: int = 1
    parallelism: int = 1
    suspend: bool = False
    progress_deadline_seconds: int = PROGRESS_DEADLINE_S


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    conditions: list[Condition] = []
    replicas: int = 0
    active: int = 0
    desired_number_scheduled: int | None = None


class Workload(msgspec.Struct, frozen=True):
    """A Deployment, ReplicaSet, StatefulSet, Job or DaemonSet, as far as its Pods concern it."""

    metadata: Metadata
    spec: _Spec = _Spec()
    status: _Status = _Status()

    def condition(self, kind: str) -> Condition | None:
        """Return a condition that is True; None if there is none."""
        return next((each for each in self.status.conditions if each.type == kind and each.status == "True"), None)


class _About(msgspec.Struct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class PodRefusal(msgspec.Struct, frozen=True, rename="camel"):
    """An Event that says that a Pod was not made."""

    involved_object: _About = _About()
    message: str = ""
    last_timestamp: str | None = None


def check_workloads(
    workloads: Mapping[str, Iterable[Workload]], refusals: Iterable[PodRefusal], definitions: Collection[str]
) -> list[Finding]:
    """Check what makes lablets.

    Args:
        workloads: By kind: `ReplicaSet`, `StatefulSet`, `Job`, `DaemonSet`.
        refusals: Events `FailedCreate`.
        definitions: Names of LabletDefinitions.
    """
    said: dict[tuple[str, str, str], str] = {}
    for refusal in sorted(refusals, key=lambda each: each.last_timestamp or ""):
        about = refusal.involved_object
        said[about.kind, about.namespace, about.name] = refusal.message
    found = []
    for kind, items in workloads.items():
        for item in items:
            meta, wanted = item.metadata, item.spec.template.spec.runtime_class_name
            message = _refused(kind, item, said.get((kind, meta.namespace, meta.name), ""))
            if wanted not in definitions and f'RuntimeClass "{wanted}" not found' not in message:
                continue  # of somebody else, unless the name is misspelt
            if kind == "DaemonSet":
                found += _check_daemon_set(item)
            elif message:
                found.append(
                    fault(_owner(kind, meta), FAILED_CREATE, f"a Pod is refused: {message}", admission_remedy(message))
                )
    return found


def check_deadlines(deployments: Iterable[Workload], boot_s: Mapping[str, int]) -> list[Finding]:
    """Check that Deployments wait for their lablets as long as a device may take to boot.

    Args:
        deployments: Of all kinds.
        boot_s: How long a device may take to boot, by definition.
    """
    reason, found = DoctorReason.WAIT_TOO_SHORT, []
    for item in deployments:
        wanted, given_s = item.spec.template.spec.runtime_class_name, item.spec.progress_deadline_seconds
        if given_s >= boot_s.get(wanted, 0):
            continue
        about = f"Deployment/{item.metadata.namespace}/{item.metadata.name}"
        text = (
            f"its rollouts count as failed after {given_s} s, but a device of {wanted} may boot for {boot_s[wanted]} s"
        )
        least_s = boot_s[wanted] + STARTS_BESIDE_S
        found.append(note(about, reason, text, f"Set spec.progressDeadlineSeconds to {least_s} or more."))
    return found


def _check_daemon_set(item: Workload) -> list[Finding]:
    if item.status.desired_number_scheduled != 0:
        return []
    meta = item.metadata
    text = "it selects no Node: its controller does not see the selector and the tolerations of the RuntimeClass"
    about = f"DaemonSet/{meta.namespace}/{meta.name}"
    return [fault(about, DoctorReason.DAEMON_SET_EMPTY, text, DoctorReason.DAEMON_SET_EMPTY.remedy)]


def _refused(kind: str, item: Workload, said: str) -> str:
    """Return why a Pod is not made; "" if none is missing."""
    if kind == "ReplicaSet":
        failure = item.condition("ReplicaFailure")
        if failure is None or item.status.replicas >= item.spec.replicas:
            return ""
        return said or failure.message  # which its controller writes once, and never again for another cause
    if kind == "StatefulSet":
        return said if item.status.replicas < item.spec.replicas else ""
    over = item.spec.suspend or item.condition("Complete") is not None or item.condition("Failed") is not None
    return said if not over and not item.status.active and item.spec.parallelism else ""


def _owner(kind: str, meta: Metadata) -> str:
    """Return the Deployment of a ReplicaSet, which is what people know; else the object itself."""
    owner = next((owner for owner in meta.owner_references if owner.controller), None)
    if owner is None or not owner.name:
        return f"{kind}/{meta.namespace}/{meta.name}"
    return f"{owner.kind}/{meta.namespace}/{owner.name}"
