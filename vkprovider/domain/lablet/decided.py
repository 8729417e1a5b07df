"""What a decision leaves behind in memory and claim, before its step is executed, and which Events it calls for."""

from typing import Any

import msgspec

from vkprovider.api.messages import Fault, Notice
from vkprovider.api.objects import Pod
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet import intent
from vkprovider.domain.lablet.facts import Decision, Facts
from vkprovider.domain.lablet.memory import Memory
from vkprovider.domain.session.delivery import Session

_replace = msgspec.structs.replace


class After(msgspec.Struct, frozen=True, gc=False):
    """What is left behind.

    Attributes:
        claim: As it should be; None if the lablet has none (any more).
        lazy: Nothing waits until a changed claim is persisted.
        notices: Events to emit on the Pod.
    """

    memory: Memory
    claim: Claim | None
    lazy: bool = True
    notices: tuple[Notice, ...] = ()


def decided(memory: Memory, facts: Facts, decision: Decision, *, worker: str, now: float) -> After:
    """Record a decision, before its step is executed."""
    claim, report = decision.claim or facts.claim, decision.report
    changes: dict[str, Any] = {"refused": facts.refusal is not None}
    if (session := chosen_session(facts, decision)) is not None:
        changes["unasked"] = session.key
    if decision.claim is not None and not decision.claim.lab_id:
        changes |= {"absent": False, "assumed": None}
    if decision.retry_at is not None:
        changes["retry_at"] = decision.retry_at
    if decision.anew:
        changes |= {"starting_since": 0.0, "start_sent_at": 0.0}
    if report is not None:
        changes["state"] = report.state
        if not report.ready:
            changes["ready_since"] = 0.0
        elif not memory.ready_since:
            changes |= {"ready_since": now, "retry_at": 0.0, "starting_since": 0.0, "warned": None}
    memory = _replace(memory, **changes)
    notices: list[Notice] = []
    for notice in decision.events:
        if notice.type == "Warning":
            memory = warn(memory, facts.pod, notice, notices)
        else:
            notices.append(notice)
    memory = _notice_pod(memory, facts, claim, worker, notices)
    return After(memory, claim, lazy=claim is None or not _is_awaited(claim), notices=tuple(notices))


def chosen_session(facts: Facts, decision: Decision) -> Session | None:
    """Return the session that a decision chooses a deployment for; None if it chooses none."""
    before = facts.claim.session if facts.claim is not None else None
    return decision.claim.session if decision.claim is not None and before is None else None


def _is_awaited(claim: Claim) -> bool:
    """Return whether the next step waits for the claim: at an end, or before a session is made."""
    return bool(claim.outcome or claim.closing_reason) or (claim.session is not None and not claim.session.ready_at)


def _notice_pod(memory: Memory, facts: Facts, claim: Claim | None, worker: str, notices: list[Notice]) -> Memory:
    """Add Events about what users did to the Pod."""
    pod, changes = facts.pod, dict[str, Any]()
    if facts.inputs.faults != memory.input_faults:
        changes["input_faults"] = facts.inputs.faults
        if facts.inputs.faults:
            notices.append(Notice("Warning", "AnnotationInvalid", "; ".join(facts.inputs.faults)))
    image = intent.changed_image(pod, claim) if pod is not None and claim is not None else ""
    if image != memory.image_changed:
        changes["image_changed"] = image
        if image:
            notices.append(Notice("Warning", "ImageChangeIgnored", image))
    if pod is not None and pod.metadata.deletion_timestamp is not None and not memory.killing:
        changes["killing"] = True
        if claim is not None:
            notices.append(Notice("Normal", "Killing", f"Removing the lab from worker {worker}"))
    return _replace(memory, **changes) if changes else memory


def warn(memory: Memory, pod: Pod | None, notice: Notice, notices: list[Notice]) -> Memory:
    """Add a Warning to `notices`, unless it was the last one, or the Pod's status shows that an earlier replica did."""
    before, warned = memory.warned, Fault(notice.reason, notice.message)
    if before == warned:
        return memory
    if before is not None or not _says(pod, notice):
        notices.append(notice)
    return _replace(memory, warned=warned)


def _says(pod: Pod | None, notice: Notice) -> bool:
    waiting = [status.state.get("waiting", {}) for status in pod.status.container_statuses] if pod is not None else []
    return any(w.get("reason") == notice.reason and w.get("message", "").startswith(notice.message) for w in waiting)
