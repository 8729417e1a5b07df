"""Towards READY, and back to it: claim, import, start, wait, recover."""

from typing import Final

import msgspec

from vkprovider.api import labs
from vkprovider.api.labs import DeviceFact
from vkprovider.api.messages import Notice
from vkprovider.api.objects import Pod
from vkprovider.api.reasons import known
from vkprovider.domain.backoff import delay_s
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.delivering import (
    back_to_pool,
    closing_state,
    follow,
    pause,
    provision,
    ready_report,
    state_of,
    worked,
    wrap_up,
)
from vkprovider.domain.lablet.ending import extract_due, extraction, stop
from vkprovider.domain.lablet.facts import Decision, Facts, Limits, Report, phase_of
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.lablet.memory import Presence
from vkprovider.domain.lablet.steps import SAVE, WAIT, Extract, Import, MakeClaim, ReturnToPool, Search, Start, Wipe

_SAVED_S: Final = 1.0
"""A row that changes in mid-life is written with others, and nobody is woken when it is."""

_START_AGAIN_S: Final = 30.0


def _waiting(
    reason: str, message: str, *, state: State = State.INSTANTIATING, devices: tuple[DeviceFact, ...] = ()
) -> Report:
    return Report(state, waiting=(reason, message), devices=devices)


def run(facts: Facts, pod: Pod, now: float, limits: Limits) -> Decision:
    """Bring a lablet to READY and keep it there."""
    claim = facts.claim
    if claim is None:
        if facts.refusal is not None:
            refusal = facts.refusal
            report = _waiting(refusal.reason, refusal.message, state=State.SCHEDULED)
            event = Notice("Warning", refusal.reason, refusal.message)
            return Decision(WAIT, report, events=() if known(refusal.reason).passing else (event,))
        return Decision(MakeClaim(pod), _waiting("AllocatingPorts", "the worker's claims are being written"))
    if not facts.claim_saved and not claim.lab_id and not claim.closing:
        if claim.restarts:
            report = _waiting("CrashLoopBackOff", f"{claim.last_message}; the lab is imported again")
            return Decision(WAIT, report, after_s=_SAVED_S)
        return Decision(WAIT, _waiting("AllocatingPorts", "the worker's claims are being written"))
    if (news := follow(facts, claim)) is not None:
        return news
    if facts.silent:
        text = f"{facts.silent}; the lablet goes on as soon as the worker answers"
        event = Notice("Warning", "WorkerUnreachable", text)
        return Decision(WAIT, _silent(facts, claim, text), events=(event,))
    if claim.lab_id and facts.presence is Presence.UNKNOWN:
        return Decision(WAIT, observe=True)
    if (over := wrap_up(facts, pod, claim)) is not None:
        return over
    return _keep(facts, pod, claim, now, limits)


def _keep(facts: Facts, pod: Pod, claim: Claim, now: float, limits: Limits) -> Decision:
    """Have the lab there and running, or stopped if that was asked for; it is known whether it is there."""
    if not claim.lab_id:
        if now < facts.memory.retry_at:
            return _back_off(facts, claim, now)
        report = _waiting("ImportingLab", f"lab {claim.title} is being imported")
        return Decision(Import(claim) if facts.memory.searched else Search(claim), report)
    if facts.presence is Presence.ABSENT:
        lost = msgspec.structs.replace(claim, lab_id="", started=0, resetting=False)
        return _again(facts, lost, now, limits, "LabLost", "the lab was deleted on the worker by somebody else")
    if facts.inputs.reset and facts.inputs.reset != claim.reset:
        return _reset_on_request(facts, claim, limits)
    if claim.resetting:
        return _reset(facts, claim, now)
    if (paused := pause(facts, claim, now, limits)) is not None:
        return paused
    return _present(facts, pod, claim, now, limits)


def _silent(facts: Facts, claim: Claim, message: str) -> Report:
    if phase_of(facts) != "Running":
        state = State.STOPPING if claim.closing else State.INSTANTIATING
        return _waiting("CleaningUp" if claim.closing else "WorkerUnreachable", message, state=state)
    state = state_of(claim) if claim.ready_at else State.INSTANTIATING
    if claim.closing:
        state = closing_state(facts, claim)
    elif claim.stopped:
        state = State.STOPPED
    return Report(state, phase="Running", silent=message)


def _present(facts: Facts, pod: Pod, claim: Claim, now: float, limits: Limits) -> Decision:
    devices = facts.devices
    states = {device.state for device in devices}
    if not devices:
        text = f"lab {claim.title} has no devices any more: somebody removed them on the worker; delete the pod"
        return Decision(WAIT, _not_ready(claim, "LabEmpty", text, devices), observe=not claim.started)
    if states == {labs.BOOTED}:
        return provision(facts, claim) or _ready(facts, pod, claim, now, limits)
    afresh = claim.afresh or claim.lent_back
    if not claim.ready_at and not afresh and phase_of(facts) == "Running":  # shown, then lost in a crash
        claim = msgspec.structs.replace(claim, ready_at=claim.started or facts.now_unix)
    if unknown := states - labs.KNOWN:
        text = f"CML reports {', '.join(sorted(unknown))} for {_labels(devices, unknown)}; waiting for a state we know"
        return Decision(WAIT, _not_ready(claim, "UnknownState", text, devices), observe=True)
    if labs.DISCONNECTED in states:
        text = f"the compute host of {_labels(devices, {labs.DISCONNECTED})} is away; CML brings the devices back"
        return Decision(WAIT, _not_ready(claim, "ComputeDisconnected", text, devices), observe=True)
    if states & labs.BOOTING and labs.STOPPED not in states:
        return _booting(facts, claim, now, limits)
    if states <= {labs.DEFINED} and not claim.ready_at:
        if now < facts.memory.retry_at:
            return _back_off(facts, claim, now)
        return _start(facts, claim, now, limits)
    return _recover(facts, claim, now, limits)


def _start(facts: Facts, claim: Claim, now: float, limits: Limits) -> Decision:
    """Start the lab, or wait for an earlier start; one that has moved no device in time is sent again."""
    report = _waiting("StartingNodes", f"{len(facts.devices)} devices are being started", devices=facts.devices)
    if facts.memory.start_sent_at and facts.memory.starting_since:
        left = facts.memory.starting_since + limits.start_timeout_s - now
        if left <= 0 and facts.observed_at >= facts.memory.starting_since + limits.start_timeout_s:
            text = f"CML accepted the start, but moved no device within {limits.start_timeout_s:.0f} s"
            return _again(facts, claim, now, limits, "LabStartTimeout", text)
        pause = facts.memory.start_sent_at + _START_AGAIN_S - now
        if pause > 0:
            return Decision(WAIT, report, after_s=max(0.0, min(left, pause)) or pause, observe=True)
    return Decision(Start(claim), report, claim if claim.started else _started(facts, claim), retry_at=0.0)


def _started(facts: Facts, claim: Claim) -> Claim:
    return msgspec.structs.replace(claim, started=facts.now_unix)


def _labels(devices: tuple[DeviceFact, ...], states: set[str] | frozenset[str]) -> str:
    found = sorted(device.label for device in devices if device.state in states)
    return ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")  # noqa: PLR2004 (a line's worth)


def _not_ready(claim: Claim, reason: str, message: str, devices: tuple[DeviceFact, ...]) -> Report:
    phase = "Running" if claim.ready_at else "Pending"
    return Report(State.INSTANTIATING, phase=phase, waiting=(reason, message), devices=devices)


def _booting(facts: Facts, claim: Claim, now: float, limits: Limits) -> Decision:
    devices = facts.devices
    left = (
        facts.memory.starting_since + limits.start_timeout_s - now
        if facts.memory.starting_since
        else limits.start_timeout_s
    )
    queued = any(device.state == labs.QUEUED for device in devices)
    if left <= 0 and facts.observed_at < facts.memory.starting_since + limits.start_timeout_s:
        return Decision(WAIT, observe=True)  # this replica or the machine was paused: look before judging
    if left <= 0:
        late = _labels(devices, labs.BOOTING)
        text = f"not booted {limits.start_timeout_s:.0f} s after the start: {late}"
        if queued:
            text += "; CML has them queued: the worker lacks CPU, memory or node licences"
        if worked(facts, claim):
            return _needs_attention(claim, devices, text)
        return _again(facts, claim, now, limits, "LabStartTimeout", text)
    if queued:
        text = f"CML has queued {_labels(devices, {labs.QUEUED})} until CPU, memory and node licences are free"
        reason = "LabQueued"
    else:
        booted = sum(device.state == labs.BOOTED for device in devices)
        reason, text = (
            "StartingNodes",
            f"{booted} of {len(devices)} devices booted, waiting for {_labels(devices, labs.BOOTING)}",
        )
    if not claim.started:  # its row was lost in a crash, and without it this start would never be late
        return Decision(SAVE, _not_ready(claim, reason, text, devices), _started(facts, claim), observe=True)
    return Decision(WAIT, _not_ready(claim, reason, text, devices), after_s=left, observe=True)


def _ready(facts: Facts, pod: Pod, claim: Claim, now: float, limits: Limits) -> Decision:
    report = ready_report(claim, facts.devices)
    if claim.last_at > claim.ready_at or not claim.ready_at:
        event = Notice("Normal", "Recovered" if claim.restarts else "Ready", f"all {len(facts.devices)} devices booted")
        ready_at = max(facts.now_unix, claim.last_at)  # a clock set back must not make this true for ever
        shown = None if (claim.afresh or claim.lent_back) and not claim.ready_at else report
        return Decision(SAVE, shown, msgspec.structs.replace(claim, ready_at=ready_at), events=(event,))
    if (
        claim.afresh or claim.lent_back
    ) and not facts.claim_saved:  # nobody may work in it before a crash cannot make us forget
        return Decision(WAIT, after_s=_SAVED_S)
    if claim.lent_back:
        return _back_in_pool(facts, pod, claim, report)
    if not claim.recoveries or not facts.memory.ready_since:
        return Decision(WAIT, report, after_s=limits.stable_s if claim.recoveries else None)
    left = facts.memory.ready_since + limits.stable_s - now
    if left > 0:
        return Decision(WAIT, report, after_s=left)
    return Decision(SAVE, report, msgspec.structs.replace(claim, recoveries=0))


def _back_in_pool(facts: Facts, pod: Pod, claim: Claim, report: Report) -> Decision:
    """Give a warm lablet its pool's label again; who has a user by now had it, and was assigned at once."""
    if facts.inputs.pool == claim.lent_back or facts.inputs.username:
        return Decision(SAVE, report, msgspec.structs.replace(claim, lent_back=""))
    return Decision(ReturnToPool(pod, claim.lent_back), report)


def _recover(facts: Facts, claim: Claim, now: float, limits: Limits) -> Decision:
    """Bring back what stopped, without destroying what somebody may have worked on."""
    devices = facts.devices
    off = frozenset({labs.STOPPED, labs.DEFINED})
    what = f"{_labels(devices, off)} stopped on the worker"
    if claim.recoveries >= limits.recoveries_max:
        if worked(facts, claim):
            return _needs_attention(claim, devices, f"{what} and did not come back after {claim.recoveries} starts")
        return _again(facts, claim, now, limits, "LabCrashed", f"{what} while it booted")
    if not facts.memory.retry_at:
        pause = delay_s(claim.recoveries, first_s=limits.retry_first_s, cap_s=limits.retry_cap_s)
        text = f"{what}; starting again without a wipe"
        report = _not_ready(claim, "Recovering", text, devices)
        event = Notice("Warning", "BackOff" if claim.recoveries else "Recovering", text)
        return Decision(WAIT, report, after_s=pause, retry_at=now + pause, events=(event,))
    if now < facts.memory.retry_at:
        text = f"{what}; starting again in {facts.memory.retry_at - now:.0f} s"
        return Decision(WAIT, _not_ready(claim, "Recovering", text, devices), after_s=facts.memory.retry_at - now)
    stopped = tuple(sorted(device.label for device in devices if device.state in off))
    changed = msgspec.structs.replace(
        claim,
        recoveries=claim.recoveries + 1,
        restarts=claim.restarts + 1,
        device_restarts=claim.device_restarts | {d: claim.device_restarts.get(d, 0) + 1 for d in stopped},
        started=facts.now_unix,
        last_reason="DeviceStopped",
        last_message=what,
        last_at=facts.now_unix,
        last_started=claim.ready_at or claim.started,
        last_devices=stopped,
    )
    report = _not_ready(claim, "Recovering", f"{what}; starting again", devices)
    return Decision(Start(claim), report, changed, retry_at=0.0, anew=True)


def _needs_attention(claim: Claim, devices: tuple[DeviceFact, ...], what: str) -> Decision:
    text = (
        f"{what}; lab {claim.title} is kept as it is, because somebody may have worked in it: "
        "look at it on the worker, have it wiped with kubectl lablet reset, or delete the pod"
    )
    event = Notice("Warning", "NeedsAttention", text)
    return Decision(WAIT, _not_ready(claim, "NeedsAttention", text, devices), events=(event,))


def _again(facts: Facts, claim: Claim, now: float, limits: Limits, reason: str, text: str) -> Decision:
    """Start afresh, or end, as the Pod's restartPolicy says."""
    event = Notice("Warning", reason, text)
    if facts.pod is not None and facts.pod.spec.restart_policy == "Never":
        changed = msgspec.structs.replace(
            claim, outcome="Failed", outcome_reason=reason, outcome_message=text, resetting=False
        )
        report = Report(State.STOPPING, phase=phase_of(facts), waiting=("CleaningUp", text), devices=facts.devices)
        return Decision(SAVE, report, changed, events=(event,))
    calm = facts.now_unix - claim.last_at > limits.stable_s
    pause = delay_s(0 if calm else claim.afresh, first_s=limits.retry_first_s, cap_s=limits.retry_cap_s)
    changed = msgspec.structs.replace(
        claim,
        resetting=bool(claim.lab_id),
        restarts=claim.restarts + 1,
        afresh=claim.afresh + 1,
        recoveries=0,
        started=0,
        ready_at=0,
        last_reason=reason,
        last_message=text,
        last_at=facts.now_unix,
        last_started=claim.ready_at or claim.started or facts.now_unix,
        last_devices=(),
    )
    report = Report(
        State.INSTANTIATING, phase=phase_of(facts), waiting=("CrashLoopBackOff", text), devices=facts.devices
    )
    return Decision(SAVE, report, changed, retry_at=now + pause, anew=True, events=(event,))


def _reset_on_request(facts: Facts, claim: Claim, limits: Limits) -> Decision:
    """Begin to wipe the lab and start it afresh, because somebody asked for it; the session stays."""
    text = "the lab is wiped and started afresh on request"
    if extract_due(facts, claim, limits):
        report = Report(State.INSTANTIATING, phase_of(facts), ("Resetting", text), facts.devices)
        return Decision(extraction(facts, claim, Extract), report)
    changed = msgspec.structs.replace(
        claim,
        reset=facts.inputs.reset,
        resetting=True,
        restarts=claim.restarts + 1,
        afresh=claim.afresh + 1,
        recoveries=0,
        stopped=0,
        started=0,
        ready_at=0,
        last_reason="Reset",
        last_message=text,
        last_at=facts.now_unix,
        last_started=claim.ready_at or claim.started or facts.now_unix,
        last_devices=(),
    )
    report = Report(State.INSTANTIATING, phase=phase_of(facts), waiting=("Resetting", text), devices=facts.devices)
    return Decision(SAVE, report, changed, retry_at=0.0, anew=True, events=(Notice("Normal", "Resetting", text),))


def _reset(facts: Facts, claim: Claim, now: float) -> Decision:
    states = {device.state for device in facts.devices}
    if claim.lent_back:
        report = back_to_pool(facts, claim)
    else:
        why = ("CrashLoopBackOff", f"back-off after {claim.last_reason}: the lab is wiped and started afresh")
        if claim.last_reason == "Reset":
            why = ("Resetting", claim.last_message)
        report = Report(State.INSTANTIATING, phase=phase_of(facts), waiting=why, devices=facts.devices)
    if states & labs.ACTIVE or states - labs.KNOWN:
        return stop(facts, claim, report, now)
    if labs.STOPPED in states:
        return Decision(Wipe(claim), report, observe=True)
    return Decision(SAVE, report, msgspec.structs.replace(claim, resetting=False))


def _back_off(facts: Facts, claim: Claim, now: float) -> Decision:
    left = facts.memory.retry_at - now
    reason = "CrashLoopBackOff" if claim.restarts else "Recovering"
    text = f"back-off {claim.last_reason or 'after a failure'}: starting again"
    report = Report(State.INSTANTIATING, phase=phase_of(facts), waiting=(reason, text), devices=facts.devices)
    return Decision(WAIT, report, after_s=left)
