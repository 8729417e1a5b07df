"""A report as a Pod's status, and the patch that yields it.

Patches are strategic merges with the Pod's UID as precondition: conditions of others are kept, `containerStatuses` is
replaced whole. `podIPs` and `hostIPs` merge by `ip`, so they are sent only when they change, and then as a replacement.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from vkprovider.lablet import names, observations
from vkprovider.lablet.ports import INFRASTRUCTURE_NODE_TYPES
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim, Wish
from vkprovider.labs.pure.console.writers import NO_ACTIVITY, Activity, reported
from vkprovider.labs.pure.lablet.facts import Report
from vkprovider.labs.pure.lablet.memory import last_end_of, restarts_of
from vkprovider.platform.messages import TimelessCondition
from vkprovider.platform.objects import Condition as PodCondition
from vkprovider.platform.objects import Container, ContainerStatus, Pod
from vkprovider.platform.reasons import NO_REASON, Reason, reason_of
from vkprovider.platform.times import iso

_PHASES: Final = {"": 0, "Pending": 0, "Unknown": 0, "Running": 1, "Succeeded": 2, "Failed": 2}

ContainerKey = tuple[str, bool, int, str, str, str, str]
"""Name, ready, restart count, state, reason, message, why it last ended."""
ConditionKey = tuple[str, str, str, str]
"""Type, status, reason, message."""


class Extras(msgspec.Struct, frozen=True, gc=False):
    """What a status contains besides the report.

    Attributes:
        port_mappings: JSON; "" if the lablet has no ports.
        ports_open: The condition `PortsOpen`; None while it is not known.
        access: JSON; "" if no port is lent to a mux.
        activity: The input at its consoles that was noted last.
        worker_url: Where CML is; "" where only an agent knows it.
    """

    port_mappings: str = ""
    ports_open: TimelessCondition | None = None
    access: str = ""
    activity: Activity = NO_ACTIVITY
    worker_url: str = ""


NO_EXTRAS: Final = Extras()


class LabletStatus(msgspec.Struct, frozen=True, gc=False):
    """A status without its times, so that two of them can be compared.

    Attributes:
        containers: None leaves them as they are.
        annotations: Reports; pairs of key and value.
        generation: Of the Pod's spec that was acted on.
    """

    phase: str
    reason: str
    conditions: tuple[ConditionKey, ...]
    containers: tuple[ContainerKey, ...] | None
    ip: str
    annotations: tuple[tuple[str, str], ...]
    generation: int = 0

    @property
    def headline(self) -> tuple[str, str, str]:
        """Phase, Ready and the first waiting reason: what `kubectl get pods` shows."""
        ready = next((status for type_, status, _, _ in self.conditions if type_ == "Ready"), "")
        waiting = next((c[4] for c in self.containers or () if c[3] == "waiting"), "")
        return self.phase, ready, waiting

    @property
    def is_progress(self) -> bool:
        """Whether it only reports progress, which may be written late."""
        return reason_of(self.headline[2]).deferrable


def render(
    pod: Pod, report: Report, claim: Claim | None, devices: Mapping[str, str], ip: str, extras: Extras = NO_EXTRAS
) -> LabletStatus:
    """Render a report as a Pod's status.

    Args:
        pod: The Pod as the API server has it.
        report: What to render.
        claim: The lablet's claim, if it has one.
        devices: Container name → device label, for the containers that stand for a device.
        ip: The worker's address, or "" while it is unknown.
        extras: What the status contains besides.
    """
    phase = report.phase if _PHASES[report.phase] >= _PHASES.get(pod.status.phase, 0) else pod.status.phase
    terminal_reason = report.terminal.reason if report.terminal and report.phase == "Failed" else ""
    containers = None
    if not report.silent:
        restarts = restarts_of(pod, claim)
        containers = tuple(_container(c, report, claim, devices, restarts.get(c.name, 0)) for c in pod.spec.containers)
    annotations = [(names.ANNOTATION_STATE, str(report.state))]
    learner = claim.learner if claim is not None else ""
    if learner or names.ANNOTATION_LEARNER in pod.metadata.annotations:
        annotations.append((names.ANNOTATION_LEARNER, learner))
    if shown := [device for device in report.devices if device.definition not in INFRASTRUCTURE_NODE_TYPES]:
        booted = sum(device.state == observations.BOOTED for device in shown)
        annotations.append((names.ANNOTATION_DEVICES, f"{booted}/{len(shown)}"))
    if claim is not None:
        annotations.append(_content_of(claim.version, claim.digest))
        if claim.lab_id:
            annotations.append((names.ANNOTATION_LAB_ID, claim.lab_id))
            if link := names.lab_url(extras.worker_url, claim.lab_id):
                annotations.append((names.ANNOTATION_LAB_URL, link))
        if extras.port_mappings:
            annotations.append((names.ANNOTATION_PORT_MAPPINGS, extras.port_mappings))
        if extras.access or names.ANNOTATION_ACCESS in pod.metadata.annotations:
            annotations.append((names.ANNOTATION_ACCESS, extras.access))
        active = reported(extras.activity, pod.metadata.annotations, claim)
        if active or names.ANNOTATION_LAST_ACTIVITY in pod.metadata.annotations:
            annotations.append((names.ANNOTATION_LAST_ACTIVITY, active))
        if claim.sessions:
            session = claim.session
            annotations.append((names.ANNOTATION_SESSION_ID, session.id if session else ""))
            annotations.append((names.ANNOTATION_SESSION_BASE_URL, session.base_url if session else ""))
            annotations.append((names.ANNOTATION_SESSION_LOGIN_URL, session.login_url if session else ""))
    conditions = _conditions(report, claim, extras)
    if report.counts and report.waiting is not None:
        conditions = _with_ready(conditions, ("Ready", "True", report.waiting.reason, report.waiting.message))
        ip = ""  # without an address, no Service leads to it
    elif pod.spec.readiness_gates and report.ready:
        conditions = _gated(pod, conditions)
    return LabletStatus(phase, terminal_reason, conditions, containers, ip, tuple(annotations), pod.metadata.generation)


@lru_cache(maxsize=256)
def _content_of(version: str, digest: str) -> tuple[str, str]:
    return names.ANNOTATION_CONTENT, f"{version}@sha256:{digest}"


def _conditions(report: Report, claim: Claim | None, extras: Extras) -> tuple[ConditionKey, ...]:
    if report.silent:
        why = (Trouble.WORKER_UNREACHABLE, report.silent)
        return (("ContainersReady", "False", *why), ("Ready", "False", *why))
    if report.terminal is not None:
        reason: Reason = Happened.POD_COMPLETED if report.phase == "Succeeded" else Happened.POD_FAILED
    else:
        reason = report.waiting.reason if report.waiting else NO_REASON
    imported = "True" if claim is not None and claim.lab_id else "False"
    booted = bool(report.devices) and all(device.state == observations.BOOTED for device in report.devices)
    converged = "True" if report.ready or (booted and report.terminal is None) else "False"
    sessions = _session_conditions(claim) if claim is not None and claim.sessions else ()
    return _usual_conditions(
        "True" if report.ready else "False", reason, imported, converged, extras.ports_open, sessions
    )


@lru_cache(maxsize=256)
def _usual_conditions(
    ready: str,
    reason: str,
    imported: str,
    converged: str,
    ports_open: TimelessCondition | None,
    sessions: tuple[ConditionKey, ...],
) -> tuple[ConditionKey, ...]:
    """Return the conditions of a lablet whose worker answers; thousands of lablets share a few of these."""
    return (
        ("Initialized", "True", "", ""),
        ("ContainersReady", ready, reason, ""),
        ("Ready", ready, reason, ""),
        (names.CONDITION_LAB_IMPORTED, imported, "", ""),
        (names.CONDITION_LAB_CONVERGED, converged, "", ""),
        *((_ports_open(ports_open),) if ports_open is not None else ()),
        *sessions,
    )


def _gated(pod: Pod, conditions: tuple[ConditionKey, ...]) -> tuple[ConditionKey, ...]:
    """Turn Ready False unless the condition of each readiness gate is True: with a kubelet's words, as KEP-580 says."""
    known = {c.type: c.status for c in pod.status.conditions}
    known |= {type_: status for type_, status, _, _ in conditions if type_ != "Ready"}
    closed = []
    for gate in pod.spec.readiness_gates:
        status = known.get(gate.condition_type)
        if status is None:
            closed.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif status != "True":
            closed.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {status}')
    if not closed:
        return conditions
    return _with_ready(conditions, ("Ready", "False", Happened.READINESS_GATES_NOT_READY, ", ".join(closed)))


def _with_ready(conditions: tuple[ConditionKey, ...], ready: ConditionKey) -> tuple[ConditionKey, ...]:
    return tuple(ready if condition[0] == "Ready" else condition for condition in conditions)


def _ports_open(condition: TimelessCondition) -> ConditionKey:
    """Return the Pod's form of a condition that the CMLWorker shows too."""
    return names.CONDITION_PORTS_OPEN, condition.status, condition.reason, condition.message


def _session_conditions(claim: Claim) -> tuple[ConditionKey, ...]:
    session = claim.session
    ready = session is not None and session.ready_at > 0 and not session.archived_at
    started = session is not None and session.started_at > 0
    ended = (Happened.SESSION_ENDED, "") if session is not None and session.ended_at else ("", "")
    return (
        (names.CONDITION_SESSION_READY, "True" if ready else "False", *ended),
        (names.CONDITION_SESSION_STARTED, "True" if started else "False", "", ""),
    )


def _container(
    container: Container, report: Report, claim: Claim | None, devices: Mapping[str, str], restarts: int
) -> ContainerKey:
    name, label = container.name, devices.get(container.name)
    last_end = last_end_of(claim, label)
    if report.terminal is not None:
        return (name, False, restarts, "terminated", report.terminal.reason, report.terminal.message, last_end)
    state = next((device.state for device in report.devices if device.label == label), "") if label else ""
    if wish := claim.wishes.get(label) if claim is not None and label else None:
        return (name, False, restarts, "waiting", *_wished(wish, str(label)), last_end)
    if report.waiting is None or (state == observations.BOOTED and report.state is not State.STOPPING):
        return _running(name, restarts, last_end)
    off = state in {observations.STOPPED, observations.DEFINED} and claim is not None and claim.ready_at
    if off and not report.waiting.reason.asked_for:
        return (name, False, restarts, "waiting", Trouble.DEVICE_STOPPED, f"{label} is off", last_end)
    return (name, False, restarts, "waiting", report.waiting.reason, report.waiting.message, last_end)


def _wished(wish: Wish, label: str) -> tuple[Reason, str]:
    if wish in {Wish.OFF, Wish.CLEAR}:
        return Progress.DEVICE_OFF, f"{label} is stopped on request; start it with: kubectl lablet device start {label}"
    return Progress.DEVICE_CHANGING, f"{label} is being started on request"


@lru_cache(maxsize=256)
def _running(name: str, restarts: int, last_end: str) -> ContainerKey:
    return (name, True, restarts, "running", "", "", last_end)


def read_status(pod: Pod, wanted: LabletStatus) -> LabletStatus:
    """Read a Pod's status, restricted to what `wanted` contains.

    No `observedGeneration` is no difference: an API server before 1.34 drops it (KEP-5067), in 1.33 although it counts
    the Pod's generations.
    """
    by_type = {c.type: c for c in pod.status.conditions}
    conditions = tuple(
        (c.type, c.status, c.reason, c.message) if (c := by_type.get(key[0])) else (key[0], "", "", "")
        for key in wanted.conditions
    )
    containers = None if wanted.containers is None else tuple(_read_container(c) for c in pod.status.container_statuses)
    annotations = tuple((key, pod.metadata.annotations.get(key, "")) for key, _ in wanted.annotations)
    reason = pod.status.reason if wanted.reason else ""
    ip = pod.status.pod_ip if wanted.ip else ""
    generation = pod.status.observed_generation or wanted.generation
    return LabletStatus(pod.status.phase, reason, conditions, containers, ip, annotations, generation)


def _read_container(status: ContainerStatus) -> ContainerKey:
    for kind, detail in status.state.items():
        return (
            status.name,
            status.ready,
            status.restart_count,
            kind,
            detail.get("reason", ""),
            detail.get("message", ""),
            status.last_end,
        )
    return (status.name, status.ready, status.restart_count, "", "", "", status.last_end)


def patch(pod: Pod, wanted: LabletStatus, claim: Claim | None, now_unix: int) -> dict[str, Any]:
    """Return the strategic merge patch of `pods/status` that yields `wanted`; for the arguments see `render`."""
    now = iso(now_unix)
    status: dict[str, Any] = {
        "phase": wanted.phase,
        "conditions": _condition_patch(pod.status.conditions, wanted.conditions, now),
        "observedGeneration": wanted.generation,
    }
    if wanted.reason:
        status["reason"] = wanted.reason
    if pod.status.start_time is None:
        status["startTime"] = now
    if wanted.ip and pod.status.pod_ip != wanted.ip:
        replacement = [{"$patch": "replace"}, {"ip": wanted.ip}] if pod.status.pod_ip else [{"ip": wanted.ip}]
        status |= {"podIP": wanted.ip, "podIPs": replacement, "hostIP": wanted.ip, "hostIPs": replacement}
    if wanted.containers is not None:
        images = {container.name: container.image for container in pod.spec.containers}
        status["containerStatuses"] = [_container_patch(key, images, claim, now) for key in wanted.containers]
    annotations = {key: value or None for key, value in wanted.annotations}
    return {"metadata": {"uid": pod.metadata.uid, "annotations": annotations}, "status": status}


def _condition_patch(old: list[PodCondition], wanted: tuple[ConditionKey, ...], now: str) -> list[dict[str, Any]]:
    by_type = {c.type: c for c in old}
    result = []
    for type_, status, reason, message in wanted:
        before = by_type.get(type_)
        if before is not None and (before.status, before.reason, before.message) == (status, reason, message):
            continue
        entry = {"type": type_, "status": status, "reason": reason or None, "message": message or None}
        if before is None or before.status != status:
            entry["lastTransitionTime"] = now
        result.append(entry)
    return result


def _container_patch(key: ContainerKey, images: Mapping[str, str], claim: Claim | None, now: str) -> dict[str, Any]:
    name, ready, restarts, kind, reason, message, last_end = key
    if kind == "running":
        state: dict[str, Any] = {"startedAt": iso(claim.ready_at) if claim is not None and claim.ready_at else now}
    elif kind == "terminated":
        failed = claim is None or claim.outcome != "Succeeded"
        state = {"exitCode": int(failed and reason != Happened.COMPLETED), "reason": reason, "message": message}
        began = (claim.ready_at or claim.started_at) if claim is not None else 0
        state |= {"startedAt": iso(began) if began else now, "finishedAt": now}
    else:
        state = {"reason": reason, "message": message}
    entry = {
        "name": name,
        "image": f"{claim.definition}:{claim.version}" if claim is not None else images[name],
        "imageID": f"{claim.definition}@sha256:{claim.digest}" if claim is not None else "",
        "ready": ready,
        "started": kind == "running",
        "restartCount": restarts,
        "state": {kind: state},
    }
    if claim is not None and claim.lab_id:
        entry["containerID"] = f"cml://{claim.lab_id}"
    if claim is not None and last_end:
        entry["lastState"] = {
            "terminated": {
                "exitCode": 1,
                "reason": claim.last_reason,
                "message": last_end,
                "startedAt": iso(claim.last_started_at),
                "finishedAt": iso(claim.last_at),
            }
        }
    return entry
