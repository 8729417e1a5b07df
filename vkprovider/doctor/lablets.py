"""Checks of LabletDefinitions and of Pods on our Nodes."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Final

from vkprovider.api import names
from vkprovider.api.errors import InputError
from vkprovider.api.models import parse_definition_spec
from vkprovider.api.objects import CustomResource, Pod, RuntimeClass
from vkprovider.api.reasons import DEFINITIONS, DOCTOR, PROGRESS, TROUBLE, WORKERS
from vkprovider.doctor.findings import Finding, fault, note, once, remedy_of
from vkprovider.doctor.workers import ready_of
from vkprovider.domain.definition import status as definitionstatus

STUCK_S: Final = 900.0
"""From then on somebody should know that a Pod is still on its way."""

_NO_PATIENCE: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
"""What the API server says of containers of which nobody has reported anything."""


def check_definition(resource: CustomResource, runtime_class: RuntimeClass | None) -> list[Finding]:
    """Check one LabletDefinition."""
    meta, status = resource.metadata, resource.status
    about = f"LabletDefinition/{meta.name}"
    try:
        parse_definition_spec(resource.spec)
    except InputError as error:
        return [_definition(about, error.reason, error.message)]
    ready = ready_of(status.get("conditions", []))
    if not ready or status.get("observedGeneration") != meta.generation:
        text = "the provider has not looked at it" if not ready else "the provider has not looked at its last change"
        return [fault(about, "NotObserved", text, "See that the provider runs, and look at its log.")]
    if ready.get("status") != "True":
        return [_definition(about, ready.get("reason", "NotReady"), ready.get("message", ""))]
    if runtime_class is None:
        text = f"RuntimeClass {meta.name} does not exist, so every new Pod is refused"
        return [fault(about, "RuntimeClassMissing", text, "Look at the provider's log.")]
    if all(owner.uid != meta.uid for owner in runtime_class.metadata.owner_references):
        return [_definition(about, "RuntimeClassConflict", f"RuntimeClass {meta.name} is not of this definition")]
    refused = definitionstatus.refused(resource)
    if refused is not None:
        return [_definition(about, refused.reason, f"the last refresh took nothing: {refused.message}")]
    return []


def _definition(about: str, reason: str, message: str) -> Finding:
    return fault(about, reason, message, remedy_of(DEFINITIONS, reason, "See docs/why.md."))


def concerns_us(pod: Pod, definitions: Collection[str]) -> bool:
    """Tell whether a Pod is bound to one of our Nodes, or is a lablet that waits for one."""
    return pod.spec.node_name.startswith(names.NODE_PREFIX) or pod.spec.runtime_class_name in definitions


def check_pods(pods: Iterable[Pod], now: datetime) -> list[Finding]:
    """Check Pods; those of one owner that have the same fault are one finding.

    Args:
        pods: Those that concern us.
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
    """Find what is wrong with one Pod, without naming it."""
    status, bound = pod.status, bool(pod.spec.node_name)
    if pod.status.phase == "Failed":
        ended = [s for c in status.container_statuses for kind, s in c.state.items() if kind == "terminated"]
        message = next((s.get("message", "") for s in ended), "") or "it ended with phase Failed"
        return note("", status.reason or "Failed", message)
    if pod.terminal:
        return None
    conditions = {c.type: c for c in status.conditions}
    scheduled, ready = conditions.get("PodScheduled"), conditions.get("Ready")
    if not bound:
        if scheduled is None or scheduled.status != "False":
            return None
        return _pod(scheduled.reason or "Unschedulable", scheduled.message)
    reason, message = _waiting(pod)
    if reason == "LabStopped":
        return note("", reason, message, remedy_of(PROGRESS, reason))
    if reason in PROGRESS or reason in _NO_PATIENCE:
        if ready is not None and ready.status == "True":
            return None
        if ready is not None and ready.reason in WORKERS:
            return _pod(ready.reason, ready.message)
        since = ready.last_transition_time if ready is not None and status.phase == "Running" else status.start_time
        age_s = _age_s(pod.metadata.deletion_timestamp or since or pod.metadata.creation_timestamp, now)
        if age_s < STUCK_S:
            return None
        text = f"{reason or 'no container status'} for {age_s / 60:.0f} min: {message or 'nobody reports anything'}"
        return fault("", "Stuck", text, remedy_of(TROUBLE, "Stuck", "Look at the CMLWorker and the provider's log."))
    return _pod(reason, message)


def _waiting(pod: Pod) -> tuple[str, str]:
    """Give reason and message of the container that waits for the worst reason."""
    states = [s.state["waiting"] for s in pod.status.container_statuses if "waiting" in s.state]
    states.sort(key=lambda state: state.get("reason", "") in PROGRESS)
    return (states[0].get("reason", ""), states[0].get("message", "")) if states else ("", "")


def _pod(reason: str, message: str) -> Finding:
    table = {**DOCTOR, **WORKERS, **TROUBLE}
    return fault("", reason, message, remedy_of(table, reason, "kubectl describe tells more."))


def _age_s(stamp: str | None, now: datetime) -> float:
    try:
        return (now - datetime.fromisoformat(stamp or "").astimezone(UTC)).total_seconds()
    except ValueError:
        return 0.0
