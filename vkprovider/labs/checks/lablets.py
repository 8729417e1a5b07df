"""Checks of LabletDefinitions and of Pods on the provider's Nodes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import UNSET

from vkprovider.doctor.findings import Finding, fault, named, note, once, remedy_of
from vkprovider.doctor.reasons import DOCTOR, DoctorReason
from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of, tag_of
from vkprovider.lablet.models.definition import parse_definition_spec
from vkprovider.lablet.models.status import definition_status
from vkprovider.lablet.reasons import (
    DEFINITIONS,
    PROGRESS,
    TROUBLE,
    WORKERS,
    DefinitionReason,
    Happened,
    Progress,
    Trouble,
)
from vkprovider.labs.checks.workers import check_observed, node_ready
from vkprovider.labs.pure.definition import status as definitionstatus
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import Condition, Container, CustomResource, Node, Pod, PodSpec, RuntimeClass
from vkprovider.platform.reasons import Reason, reason_of

STUCK_S: Final = 900.0
"""A Pod that is on its way for longer is a fault, beside the time that its devices have to boot."""
UNREPORTED_S: Final = 60.0
"""A Pod with a Node of which nothing is reported for longer is a fault: the first report comes within a second."""
OVERDUE_S: Final = 15.0
"""A Pod with a worker that does not answer is a fault when its grace period has ended for longer."""

_SMALLER: Final = (
    "Lower the requests of its containers or spec.resources of its definition, or raise spec.capacity of a CMLWorker."
)

_UNREPORTED: Final = frozenset({"ContainerCreating", "PodInitializing", ""})
"""The API server's own reasons for containers without a reported status."""


def check_definition(resource: CustomResource, runtime_class: RuntimeClass | None) -> list[Finding]:
    """Check one LabletDefinition: spec, condition, RuntimeClass, last refresh; the first fault counts."""
    about = f"LabletDefinition/{resource.metadata.name}"
    return (
        _check_report(resource)
        or _check_runtime_class(about, resource, runtime_class)
        or _check_refresh(about, resource)
        or _check_impeded(about, resource)
    )


def _check_report(resource: CustomResource) -> list[Finding]:
    """Check spec and condition, which tell why a LabletDefinition is not Ready."""
    about = f"LabletDefinition/{resource.metadata.name}"
    try:
        parse_definition_spec(resource.spec)
    except InputError as error:
        return [_definition(about, error.reason, error.message)]
    return _check_condition(about, resource)


def check_own(resource: CustomResource) -> list[Finding]:
    """Check one LabletDefinition without its RuntimeClass, which only admins read; the first fault counts."""
    about = f"LabletDefinition/{resource.metadata.name}"
    return _check_report(resource) or _check_refresh(about, resource) or _check_impeded(about, resource)


def _check_condition(about: str, resource: CustomResource) -> list[Finding]:
    status = definition_status(resource)
    if unobserved := check_observed(about, resource, status):
        return unobserved
    ready = status.ready
    if ready is None or status.is_ready:
        return []
    return [_definition(about, reason_of(ready.reason or DoctorReason.NOT_READY), ready.message)]


def _check_runtime_class(about: str, resource: CustomResource, runtime_class: RuntimeClass | None) -> list[Finding]:
    meta = resource.metadata
    if runtime_class is None:
        text = f"RuntimeClass {meta.name} does not exist, so every new Pod is refused"
        return [fault(about, DoctorReason.RUNTIME_CLASS_MISSING, text, "Look at the provider's log.")]
    if all(owner.uid != meta.uid for owner in runtime_class.metadata.owner_references):
        text = f"RuntimeClass {meta.name} does not belong to this definition"
        return [_definition(about, DefinitionReason.RUNTIME_CLASS_CONFLICT, text)]
    return []


def _check_refresh(about: str, resource: CustomResource) -> list[Finding]:
    refused = definitionstatus.refused(resource)
    if refused is None:
        return []
    return [_definition(about, refused.reason, f"the last refresh changed nothing: {refused.message}")]


def _check_impeded(about: str, resource: CustomResource) -> list[Finding]:
    impeded = definition_status(resource).condition(definitionstatus.IMPEDED)
    if impeded is None or impeded.status != "True":
        return []
    return [_definition(about, reason_of(impeded.reason), impeded.message)]


def _definition(about: str, reason: Reason, message: str) -> Finding:
    return fault(about, reason, message, remedy_of(DEFINITIONS, reason, "See docs/why.md."))


class _Resources(msgspec.Struct, frozen=True):
    requests: dict[str, str] = {}


class _Container(Container, frozen=True, rename="camel"):
    resources: _Resources = _Resources()


class _Spec(PodSpec, frozen=True, rename="camel"):
    containers: list[_Container]  # type: ignore[assignment] # a frozen struct's list is only read
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)


class SeenPod(Pod, frozen=True):
    """A Pod, with what it asks of a Node."""

    spec: _Spec

    @property
    def demand(self) -> Resources | None:
        """What the scheduler looks for; None if it cannot be read."""
        amounts = (self.spec.overhead, *(container.resources.requests for container in self.spec.containers))
        total = Resources()
        try:
            for amount in amounts:
                total = total.plus(Resources.from_quantities(amount))
        except ValueError:
            return None
        return total


def is_relevant(pod: Pod, definitions: Collection[str]) -> bool:
    """Return whether a Pod is bound to one of the provider's Nodes, is a lablet to be bound, or is meant as one."""
    bound = pod.spec.node_name.startswith(names.NODE_PREFIX)
    return bound or pod.spec.runtime_class_name in definitions or bool(_meant(pod, definitions))


def _meant(pod: Pod, definitions: Collection[str]) -> str:
    """Return the definition whose name a waiting Pod has as image, though it has no runtimeClassName; "" if none."""
    if pod.spec.runtime_class_name or pod.status.phase != "Pending":
        return ""
    return next((name for each in pod.spec.containers if (name := tag_of(each.image)[0]) in definitions), "")


def check_pods(
    pods: Iterable[SeenPod],
    now: datetime,
    definitions: Collection[str] = (),
    workers: Sequence[Node] = (),
    boot_s: Mapping[str, int] = MappingProxyType({}),
) -> list[Finding]:
    """Check Pods; those of one owner that have the same fault are one finding.

    Args:
        pods: The relevant ones.
        now: The wall clock.
        definitions: Names of LabletDefinitions.
        workers: The Nodes of workers; none if they are not known.
        boot_s: How long a device may take to boot, by definition.
    """
    groups: dict[tuple[str, Finding], list[Pod]] = {}
    for pod in pods:
        meant = _meant(pod, definitions)
        finding = _no_lablet(meant) if meant else _check_pod(pod, now, workers, boot_s)
        if finding is not None:
            owner = next((o.uid for o in pod.metadata.owner_references if o.controller), pod.key)
            groups.setdefault((owner, finding), []).append(pod)
    found = []
    for (_, finding), same in groups.items():
        first = min(pod.key for pod in same)
        more = f" (and {len(same) - 1} more like it)" if len(same) > 1 else ""
        about, message = f"Pod/{first}", finding.message + more
        found.append(Finding(finding.level, about, finding.reason, message, named(finding.remedy, about)))
    return once(found)


def _no_lablet(definition: str) -> Finding:
    text = f"its image names LabletDefinition {definition}, but it has no runtimeClassName, so that it is not a lablet"
    return fault("", Trouble.NOT_A_LABLET, text, f"Set spec.runtimeClassName: {definition}")


def boot_timeouts(resources: Iterable[CustomResource]) -> dict[str, int]:
    """Return how long a device may take to boot, by the name of the definition, as far as its status says so."""
    told = {resource.metadata.name: definition_status(resource).boot_timeout_seconds for resource in resources}
    return {name: seconds for name, seconds in told.items() if seconds is not UNSET}


def _check_pod(pod: SeenPod, now: datetime, workers: Sequence[Node], boot_s: Mapping[str, int]) -> Finding | None:
    """Return the fault of one Pod, without its name."""
    if pod.status.phase == "Failed":
        return _check_failed(pod)
    if pod.terminal:
        return None
    return _check_state(pod, now, workers, boot_s) or _check_annotations(pod)


def _check_annotations(pod: Pod) -> Finding | None:
    faults = inputs_of(pod.metadata).faults
    if not faults:
        return None
    return fault("", Happened.ANNOTATION_INVALID, "; ".join(faults), Happened.ANNOTATION_INVALID.remedy)


def _check_state(pod: SeenPod, now: datetime, workers: Sequence[Node], boot_s: Mapping[str, int]) -> Finding | None:
    if not pod.spec.node_name:
        return _check_unbound(pod, workers)
    if overdue := _check_overdue(pod, now, workers):
        return overdue
    reason, message = _waiting(pod)
    if reason in PROGRESS and PROGRESS[reason].remedy:  # it lasts until someone acts, as was asked for
        return note("", reason, message, PROGRESS[reason].remedy)
    if reason in PROGRESS or reason in _UNREPORTED:
        boots_s = boot_s.get(pod.spec.runtime_class_name, 0) if reason is Progress.STARTING_NODES else 0
        return _check_progress(pod, reason, message, now, boots_s)
    if reason is Trouble.NOT_A_LABLET and (owner := _daemon_set(pod)):
        return _check_everywhere(pod, owner)
    return _pod(reason, message)


def _daemon_set(pod: Pod) -> str:
    """Return the name of a Pod's DaemonSet; "" if it has none, or is meant as a lablet."""
    if pod.spec.runtime_class_name in {tag_of(container.image)[0] for container in pod.spec.containers}:
        return ""
    owners = pod.metadata.owner_references
    return next((owner.name for owner in owners if owner.controller and owner.kind == "DaemonSet"), "")


def _check_everywhere(pod: Pod, owner: str) -> Finding:
    """Return the finding about a Pod of a DaemonSet that tolerates everything."""
    text = f"DaemonSet {owner} tolerates every taint, so that it has Pods on virtual nodes, where nothing of them runs"
    patch = '{"spec":{"template":{"spec":{"nodeSelector":{"kubernetes.io/os":"linux"}}}}}'
    remedy = f"kubectl -n {pod.metadata.namespace} patch daemonset {owner} --type merge -p '{patch}'"
    ready = _condition(pod, "Ready")
    if ready is not None and ready.status == "True":
        return note("", Trouble.NOT_A_LABLET, f"{text}; they count as available", remedy)
    return fault("", Trouble.NOT_A_LABLET, f"{text}; its updates wait for them, on ordinary nodes too", remedy)


def _check_overdue(pod: Pod, now: datetime, workers: Sequence[Node]) -> Finding | None:
    """Check a Pod that is being deleted: its lab stays until its worker answers."""
    meta = pod.metadata
    if meta.deletion_timestamp is None or _age_s(meta.deletion_timestamp, now) < OVERDUE_S:
        return None  # the timestamp is the end of the grace period
    name = pod.spec.node_name
    node = next((node for node in workers if node.metadata.name == name), None)
    ready = node_ready(node) if node is not None else None
    if ready is None or ready.status == "True":
        return None
    text = f"it is being deleted and waits for worker {names.worker_of(name)} to remove its lab: {ready.reason}"
    return fault("", DoctorReason.WAITS_FOR_WORKER, text, DoctorReason.WAITS_FOR_WORKER.remedy)


def _check_failed(pod: Pod) -> Finding:
    ended = [s for c in pod.status.container_statuses for kind, s in c.state.items() if kind == "terminated"]
    message = next((s.get("message", "") for s in ended), "") or "it ended with phase Failed"
    return note("", reason_of(pod.status.reason or DoctorReason.FAILED), message)


def _check_unbound(pod: SeenPod, workers: Sequence[Node]) -> Finding | None:
    scheduled = _condition(pod, "PodScheduled")
    if scheduled is None or scheduled.status != "False":
        return None
    if lacking := _never_fits(pod, workers):
        text = f"no worker is large enough, whatever else runs: it needs {lacking}"
        return fault("", DoctorReason.TOO_LARGE, text, _SMALLER)
    reason = reason_of(scheduled.reason or Happened.UNSCHEDULABLE)
    environment = pod.spec.node_selector.get(names.LABEL_ENV)
    if reason != Happened.UNSCHEDULABLE or environment is None:
        return _pod(reason, scheduled.message)
    text = f"it runs on workers of the environment {environment} only; the scheduler says: {scheduled.message}"
    remedy = f"Add a CMLWorker with spec.environment: {environment}, or wait until lablets on those that there are end."
    return fault("", reason, text, remedy)


def _never_fits(pod: SeenPod, workers: Sequence[Node]) -> str:
    """Return the requests of a Pod that no worker can hold; "" if it fits on one, or that is not known."""
    demand = pod.demand
    try:
        rooms = [Resources.from_quantities(node.status.capacity) for node in workers]
    except ValueError:
        return ""
    if demand is None or not rooms or any(room.covers(demand) for room in rooms):
        return ""
    largest = rooms[0]
    for room in rooms[1:]:
        largest = largest.union(room)
    return "; ".join(largest.shortage(demand))


def _check_progress(pod: Pod, reason: Reason, message: str, now: datetime, boots_s: int) -> Finding | None:
    """Check a Pod on its way: its worker may be at fault, or it may be on its way for too long.

    While its devices boot, they have `boots_s` beside the usual time.
    """
    ready = _condition(pod, "Ready")
    if ready is not None and ready.status == "True":
        return None
    if ready is not None and reason_of(ready.reason) is Happened.READINESS_GATES_NOT_READY:
        return note("", Happened.READINESS_GATES_NOT_READY, ready.message, Happened.READINESS_GATES_NOT_READY.remedy)
    if ready is not None and ready.reason in WORKERS:
        return _pod(reason_of(ready.reason), ready.message)
    running = ready is not None and pod.status.phase == "Running"
    since = ready.last_transition_time if ready is not None and running else pod.status.start_time
    age_s = _age_s(pod.metadata.deletion_timestamp or since or pod.metadata.creation_timestamp, now)
    if (silent_s := _unreported_s(pod, now)) >= UNREPORTED_S:
        text = f"the provider has reported nothing on it for {silent_s:.0f} seconds"
        return fault("", DoctorReason.NOT_REPORTED, text, DoctorReason.NOT_REPORTED.remedy)
    if age_s < STUCK_S + boots_s:
        return None
    text = f"{reason or 'no container status'} for {age_s / 60:.0f} min: {message or 'nothing is reported'}"
    return fault(
        "",
        DoctorReason.STUCK,
        text,
        DoctorReason.STUCK.remedy,
    )


def _unreported_s(pod: Pod, now: datetime) -> float:
    """Return for how long a Pod has had a Node and no reported status; 0 if it has one, or is being deleted."""
    scheduled = _condition(pod, "PodScheduled")
    if scheduled is None or pod.status.container_statuses or pod.metadata.deletion_timestamp:
        return 0.0
    return _age_s(scheduled.last_transition_time, now)


def _condition(pod: Pod, kind: str) -> Condition | None:
    return next((each for each in pod.status.conditions if each.type == kind), None)


def _waiting(pod: Pod) -> tuple[Reason, str]:
    """Return reason and message of the container that waits for the worst reason."""
    states = [s.state["waiting"] for s in pod.status.container_statuses if "waiting" in s.state]
    states.sort(key=lambda state: state.get("reason", "") in PROGRESS)
    worst = states[0] if states else {}
    return reason_of(worst.get("reason", "")), worst.get("message", "")


def _pod(reason: Reason, message: str) -> Finding:
    table = {**DOCTOR, **WORKERS, **TROUBLE, Happened.UNSCHEDULABLE.value: Happened.UNSCHEDULABLE}
    return fault("", reason, message, remedy_of(table, reason, "kubectl describe shows more."))


def _age_s(stamp: str | None, now: datetime) -> float:
    try:
        return (now - datetime.fromisoformat(stamp or "").astimezone(UTC)).total_seconds()
    except ValueError:
        return 0.0
