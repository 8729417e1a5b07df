"""Recovery: start again what stopped, start afresh, or wait for a person; a learner's work is never destroyed."""

from typing import Final

from vkprovider.api import labs
from vkprovider.api.labs import DeviceFact
from vkprovider.api.messages import Fault, Notice
from vkprovider.api.reasons import reason_of
from vkprovider.domain.backoff import delay_s
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.decisions.delivering import back_to_pool, worked
from vkprovider.domain.lablet.decisions.takedown import extract_due, extraction, finish, take_down
from vkprovider.domain.lablet.facts import Decision, Facts, Report, phase_of
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.lablet.steps import SAVE, WAIT, Extract, Start
from vkprovider.settings.cluster import LabletSettings

_LABELS_MAX: Final = 5
"""Labels in one message."""


def labels(devices: tuple[DeviceFact, ...], states: set[str] | frozenset[str]) -> str:
    """Return the labels of the devices in one of `states`, as many as fit in a message."""
    found = sorted(device.label for device in devices if device.state in states)
    more = f" and {len(found) - _LABELS_MAX} more" if len(found) > _LABELS_MAX else ""
    return ", ".join(found[:_LABELS_MAX]) + more


def not_ready(claim: Claim, reason: str, message: str, devices: tuple[DeviceFact, ...]) -> Report:
    """Return the report of a lablet whose devices do not all run; Running if it was ready before."""
    phase = "Running" if claim.ready_at else "Pending"
    return Report(State.INSTANTIATING, phase=phase, waiting=Fault(reason, message), devices=devices)


def recover(facts: Facts, claim: Claim, now: float, limits: LabletSettings) -> Decision:
    """Start what stopped again, without a wipe: a learner may have worked in it."""
    devices = facts.devices
    off = frozenset({labs.STOPPED, labs.DEFINED})
    what = f"{labels(devices, off)} stopped on the worker"
    if claim.recoveries >= limits.recoveries_max:
        if worked(facts, claim):
            return needs_attention(claim, devices, f"{what} and did not come back after {claim.recoveries} starts")
        return again(facts, claim, now, limits, "LabCrashed", f"{what} while it booted")
    if not facts.memory.retry_at:
        pause = delay_s(claim.recoveries, first_s=limits.start_retry_first_s, cap_s=limits.start_retry_cap_s)
        text = f"{what}; starting again without a wipe"
        report = not_ready(claim, "Recovering", text, devices)
        event = Notice("Warning", "BackOff" if claim.recoveries else "Recovering", text)
        return Decision(WAIT, report, after_s=pause, retry_at=now + pause, events=(event,))
    if now < facts.memory.retry_at:
        text = f"{what}; starting again in {facts.memory.retry_at - now:.0f} s"
        return Decision(WAIT, not_ready(claim, "Recovering", text, devices), after_s=facts.memory.retry_at - now)
    stopped = tuple(sorted(device.label for device in devices if device.state in off))
    changed = claim.continued(stopped, what, facts.now_unix)
    report = not_ready(claim, "Recovering", f"{what}; starting again", devices)
    return Decision(Start(claim), report, changed, retry_at=0.0, anew=True)


def needs_attention(claim: Claim, devices: tuple[DeviceFact, ...], what: str) -> Decision:
    """Keep the lab as it is until a person decides."""
    text = (
        f"{what}; lab {claim.title} is kept as it is, because a learner may have worked in it: "
        "look at it on the worker, wipe it with kubectl lablet reset, or delete the pod"
    )
    event = Notice("Warning", "NeedsAttention", text)
    return Decision(WAIT, not_ready(claim, "NeedsAttention", text, devices), events=(event,))


def again(facts: Facts, claim: Claim, now: float, limits: LabletSettings, reason: str, text: str) -> Decision:
    """Start afresh, or end, as the Pod's restartPolicy says."""
    event = Notice("Warning", reason, text)
    if facts.pod is not None and facts.pod.spec.restart_policy == "Never":
        return finish(facts, "Failed", reason, text, claim)
    calm = facts.now_unix - claim.last_at > limits.stable_s
    pause = delay_s(0 if calm else claim.afresh, first_s=limits.start_retry_first_s, cap_s=limits.start_retry_cap_s)
    changed = claim.restarted(reason, text, facts.now_unix)
    report = Report(
        State.INSTANTIATING, phase=phase_of(facts), waiting=Fault("CrashLoopBackOff", text), devices=facts.devices
    )
    return Decision(SAVE, report, changed, retry_at=now + pause, anew=True, events=(event,))


def reset_on_request(facts: Facts, claim: Claim, limits: LabletSettings) -> Decision:
    """Begin to wipe the lab and start it afresh on request; the session stays."""
    text = "the lab is wiped and started again on request"
    if extract_due(facts, claim, limits):
        report = Report(State.INSTANTIATING, phase_of(facts), Fault("Resetting", text), facts.devices)
        return Decision(extraction(facts, claim, Extract), report)
    changed = claim.reset_on(facts.inputs.reset, text, facts.now_unix)
    report = Report(State.INSTANTIATING, phase=phase_of(facts), waiting=Fault("Resetting", text), devices=facts.devices)
    return Decision(SAVE, report, changed, retry_at=0.0, anew=True, events=(Notice("Normal", "Resetting", text),))


def reset(facts: Facts, claim: Claim, now: float) -> Decision:
    """Stop and wipe the lab, then let it start afresh; one without devices is deleted and imported again."""
    states = {device.state for device in facts.devices}
    if claim.lent_back:
        report = back_to_pool(facts, claim)
    else:
        why = Fault("CrashLoopBackOff", f"back-off after {claim.last_reason}: the lab is wiped and started again")
        if reason_of(claim.last_reason).asked_for:
            why = Fault("Resetting", claim.last_message)
        report = Report(State.INSTANTIATING, phase=phase_of(facts), waiting=why, devices=facts.devices)
    if states == {labs.DEFINED}:
        return Decision(SAVE, report, claim.wiped())
    return take_down(facts, claim, report, now)  # without devices it is deleted: a wipe gives none of them back


def back_off(facts: Facts, claim: Claim, now: float) -> Decision:
    """Wait for the time of the next start."""
    left = facts.memory.retry_at - now
    reason = "CrashLoopBackOff" if claim.restarts else "Recovering"
    text = f"back-off {claim.last_reason or 'after a failure'}: starting again"
    report = Report(State.INSTANTIATING, phase=phase_of(facts), waiting=Fault(reason, text), devices=facts.devices)
    return Decision(WAIT, report, after_s=left)
