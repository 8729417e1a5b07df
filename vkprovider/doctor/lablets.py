"""Checks of LabletDefinitions and of Pods on the provider's Nodes."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Final

from vkprovider.api import names
from vkprovider.api.errors import InputError
from vkprovider.api.models.definition import parse_definition_spec
from vkprovider.api.objects import Condition, CustomResource, Pod, RuntimeClass
from vkprovider.api.reasons import DEFINITIONS, DOCTOR, PROGRESS, TROUBLE, WORKERS
from vkprovider.doctor.conditions import check_observed, ready_of
from vkprovider.doctor.findings import Finding, fault, note, once, remedy_of
from vkprovider.domain.definition import status as definitionstatus

STUCK_S: Final = 900.0
"""A Pod that is on its way for longer is a fault."""

_UNREPORTED: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
"""The API server's own reasons for containers without a reported status."""


def check_definition(resource: CustomResource, runtime_class: RuntimeClass | None) -> list[Finding]:
    """Check one LabletDefinition: spec, condition, RuntimeClass, last refresh; the first fault counts."""
    about = f"LabletDefinition/{resource.metadata.name}"
    try:
        parse_definition_spec(resource.spec)
    except InputError as error:
        return [_definition(about, error.reason, error.message)]
    return (
        _check_condition(about, resource)
        or _check_runtime_class(about, resource, runtime_class)
        or _check_refresh(about, resource)
        or _check_impeded(about, resource)
    )


def _check_condition(about: str, resource: CustomResource) -> list[Finding]:
    if unobserved := check_observed(about, resource):
        return unobserved
    ready = ready_of(resource)
    if ready.get("status") == "True":
        return []
    return [_definition(about, ready.get("reason", "NotReady"), ready.get("message", ""))]


def _check_runtime_class(about: str, resource: CustomResource, runtime_class: RuntimeClass | None) -> list[Finding]:
    meta = resource.metadata
    if runtime_class is None:
        text = f"RuntimeClass {meta.name} does not exist, so every new Pod is refused"
        return [fault(about, "RuntimeClassMissing", text, "Look at the provider's log.")]
    if all(owner.uid != meta.uid for owner in runtime_class.metadata.owner_references):
        text = f"RuntimeClass {meta.name} does not belong to this definition"
        return [_definition(about, "RuntimeClassConflict", text)]
    return []


def _check_refresh(about: str, resource: CustomResource) -> list[Finding]:
    refused = definitionstatus.refused(resource)
    if refused is None:
        return []
    return [_definition(about, refused.reason, f"the last refresh changed nothing: {refused.message}")]


def _check_impeded(about: str, resource: CustomResource) -> list[Finding]:
    impeded = definitionstatus.condition(resource, definitionstatus.IMPEDED)
    if impeded.get("status") != "True":
        return []
    return [_definition(about, impeded.get("reason", ""), impeded.get("message", ""))]


def _definition(about: str, reason: str, message: str) -> Finding:
    return fault(about, reason, message, remedy_of(DEFINITIONS, reason, "See docs/why.md."))


def is_relevant(pod: Pod, definitions: Collection[str]) -> bool:
    """Return whether a Pod is bound to one of the provider's Nodes, or is a lablet that is to be bound."""
    return pod.spec.node_name.startswith(names.NODE_PREFIX) or pod.spec.runtime_class_name in definitions


def check_pods(pods: Iterable[Pod], now: datetime) -> list[Finding]:
    """Check Pods; those of one owner that have the same fault are one finding.

    Args:
        pods: The relevant ones.
        now: The wall clock.
    """
    groups: dict[tuple[str, Finding], list[Pod]] = {}
    for pod in pods:
        finding = _check_pod(pod, now)
        if finding is not None:
            owner = next((o.uid for o in pod.metadata.owner_references if o.controller), pod.key)
            groups.setdefault((owner, finding), []).append(pod)
    found = []
    for (_, finding), same in groups.items():
        first = min(pod.key for pod in same)
        more = f" (and {len(same) - 1} more like it)" if len(same) > 1 else ""
        found.append(Finding(finding.level, f"Pod/{first}", finding.reason, finding.message + more, finding.remedy))
    return once(found)


def _check_pod(pod: Pod, now: datetime) -> Finding | None:
    """Return what is wrong with one Pod, without its name."""
    if pod.status.phase == "Failed":
        return _check_failed(pod)
    if pod.terminal:
        return None
    if not pod.spec.node_name:
        return _check_unbound(pod)
    reason, message = _waiting(pod)
    if reason in PROGRESS and PROGRESS[reason].remedy:  # it lasts until someone acts, as was asked for
        return note("", reason, message, PROGRESS[reason].remedy)
    if reason in PROGRESS or reason in _UNREPORTED:
        return _check_progress(pod, reason, message, now)
    return _pod(reason, message)


def _check_failed(pod: Pod) -> Finding:
    ended = [s for c in pod.status.container_statuses for kind, s in c.state.items() if kind == "terminated"]
    message = next((s.get("message", "") for s in ended), "") or "it ended with phase Failed"
    return note("", pod.status.reason or "Failed", message)


def _check_unbound(pod: Pod) -> Finding | None:
    scheduled = _condition(pod, "PodScheduled")
    if scheduled is None or scheduled.status != "False":
        return None
    return _pod(scheduled.reason or "Unschedulable", scheduled.message)


def _check_progress(pod: Pod, reason: str, message: str, now: datetime) -> Finding | None:
    """Check a Pod on its way: its worker may be at fault, or it may be on its way for too long."""
    ready = _condition(pod, "Ready")
    if ready is not None and ready.status == "True":
        return None
    if ready is not None and ready.reason in WORKERS:
        return _pod(ready.reason, ready.message)
    running = ready is not None and pod.status.phase == "Running"
    since = ready.last_transition_time if ready is not None and running else pod.status.start_time
    age_s = _age_s(pod.metadata.deletion_timestamp or since or pod.metadata.creation_timestamp, now)
    if age_s < STUCK_S:
        return None
    text = f"{reason or 'no container status'} for {age_s / 60:.0f} min: {message or 'nothing is reported'}"
    return fault("", "Stuck", text, remedy_of(TROUBLE, "Stuck", "Look at the CMLWorker and the provider's log."))


def _condition(pod: Pod, kind: str) -> Condition | None:
    return next((each for each in pod.status.conditions if each.type == kind), None)


def _waiting(pod: Pod) -> tuple[str, str]:
    """Return reason and message of the container that waits for the worst reason."""
    states = [s.state["waiting"] for s in pod.status.container_statuses if "waiting" in s.state]
    states.sort(key=lambda state: state.get("reason", "") in PROGRESS)
    return (states[0].get("reason", ""), states[0].get("message", "")) if states else ("", "")


def _pod(reason: str, message: str) -> Finding:
    table = {**DOCTOR, **WORKERS, **TROUBLE}
    return fault("", reason, message, remedy_of(table, reason, "kubectl describe shows more."))


def _age_s(stamp: str | None, now: datetime) -> float:
    try:
        return (now - datetime.fromisoformat(stamp or "").astimezone(UTC)).total_seconds()
    except ValueError:
        return 0.0
