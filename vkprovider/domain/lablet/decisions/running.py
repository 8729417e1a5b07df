"""Towards READY, and back to it: claim, import, start, wait, recover."""

from typing import Final

import msgspec

from vkprovider.api import labs
from vkprovider.api.labs import DeviceFact
from vkprovider.api.messages import Fault, Notice
from vkprovider.api.objects import Pod
from vkprovider.api.reasons import reason_of
from vkprovider.api.wording import count
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.decisions.delivering import (
    PATCHED_S,
    back_to_pool,
    closing_state,
    follow,
    pause,
    provision,
    ready_report,
    reschedule,
    state_of,
    worked,
    wrap_up,
)
from vkprovider.domain.lablet.decisions.learner import bound, learner_of, restore, restore_in_s, to_import_for, unnoted
from vkprovider.domain.lablet.decisions.recovering import (
    again,
    back_off,
    labels,
    needs_attention,
    not_ready,
    recover,
    reset,
    reset_on_request,
)
from vkprovider.domain.lablet.decisions.renewing import begin, renewing_report, replace_lab
from vkprovider.domain.lablet.decisions.unclear import outlast, unclear
from vkprovider.domain.lablet.facts import Decision, Facts, Report, phase_of
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.lablet.memory import Presence
from vkprovider.domain.lablet.steps import (
    SAVE,
    WAIT,
    Import,
    MakeClaim,
    NoteLearner,
    Release,
    ReturnToPool,
    Search,
    Start,
)
from vkprovider.settings.cluster import LabletSettings

_SAVED_S: Final = 1.0
"""How soon to look for a lazily written claim, whose write wakes no lablet."""

_START_AGAIN_S: Final = 30.0


def _waiting(
    reason: str, message: str, *, state: State = State.INSTANTIATING, devices: tuple[DeviceFact, ...] = ()
) -> Report:
    return Report(state, waiting=Fault(reason, message), devices=devices)


def _is_stray(pod: Pod) -> bool:
    """Return whether a Pod can never become a lablet and no controller would replace it.

    Like a Pod that a kubelet does not admit, it ends, so that the scheduler no longer counts what it requests. A Pod of
    a controller stays Pending: its successor would come here again, for ever.
    """
    return not pod.spec.runtime_class_name and not any(owner.controller for owner in pod.metadata.owner_references)


def wait_for_claims(facts: Facts) -> Decision:
    """Begin, end and forget nothing before it is known whether the lablet has a lab; its claim may be lost."""
    if facts.pod is None or facts.pod.terminal:
        return Decision(WAIT)
    if phase_of(facts) == "Running":
        return Decision(WAIT, Report(State.READY, phase="Running", silent=facts.silent) if facts.silent else None)
    if facts.silent:
        return Decision(WAIT, _waiting("WorkerUnreachable", facts.silent))
    text = "the worker's claims were lost: its labs are examined before a new one begins"
    return Decision(WAIT, _waiting("WaitingForClaims", text, state=facts.memory.state or State.SCHEDULED))


def _claiming(facts: Facts) -> Report:
    fault = facts.unsaved_because or Fault("AllocatingPorts", "the worker's claims are being written")
    return Report(State.INSTANTIATING, waiting=fault)


def run(facts: Facts, pod: Pod, now: float, limits: LabletSettings) -> Decision:
    """Bring a lablet to READY and keep it there."""
    claim = facts.claim
    if claim is None:
        if facts.refusal is not None:
            refusal = facts.refusal
            if _is_stray(pod):
                ended = Report(State.FAILED, phase="Failed", terminal=refusal.fault)
                return Decision(WAIT, ended, events=(Notice("Warning", refusal.reason, refusal.message),))
            report = _waiting(refusal.reason, refusal.message, state=State.SCHEDULED)
            event = Notice("Warning", refusal.reason, refusal.message)
            return Decision(WAIT, report, events=() if reason_of(refusal.reason).passing else (event,))
        return Decision(MakeClaim(pod), _claiming(facts))
    claim = bound(facts, claim)
    restore_s = restore_in_s(facts, claim, now)
    decision = restore(facts, pod, claim) if restore_s == 0 else _serve(facts, pod, claim, now, limits)
    decision = reschedule(facts, claim, decision, now)
    if decision.claim is None and claim is not facts.claim:
        decision = msgspec.structs.replace(decision, claim=claim)
    return decision.no_later_than(restore_s or None)


def _serve(facts: Facts, pod: Pod, claim: Claim, now: float, limits: LabletSettings) -> Decision:
    """Bring the lab of a claim to READY and keep it there, until the learner's time is over."""
    if not facts.claim_saved and not claim.lab_id and not claim.closing_reason:
        if claim.renews:
            return Decision(WAIT, renewing_report(facts), after_s=_SAVED_S)
        if claim.restarts:
            report = _waiting("CrashLoopBackOff", f"{claim.last_message}; the lab is imported again")
            return Decision(WAIT, report, after_s=_SAVED_S)
        if claim.lent_back:
            return Decision(WAIT, back_to_pool(facts, claim), after_s=_SAVED_S)
        return Decision(WAIT, _claiming(facts))
    if (news := follow(facts, claim)) is not None:
        return news
    if facts.silent:
        text = f"{facts.silent}; the lablet continues as soon as the worker answers"
        event = Notice("Warning", "WorkerUnreachable", text)
        return Decision(WAIT, _silent(facts, claim, text), events=(event,))
    if claim.lab_id and facts.presence is Presence.UNKNOWN:
        return Decision(WAIT, observe=True)
    if (over := wrap_up(facts, pod, claim)) is not None:
        return over
    if claim.ports_fault is not None:
        return _without_ports(facts, claim, claim.ports_fault)
    return _keep(facts, pod, claim, now, limits)


def _without_ports(facts: Facts, claim: Claim, fault: Fault) -> Decision:
    """Leave a lab alone whose ports are unknown, or another one's: a learner may be working in it."""
    if facts.presence is Presence.ABSENT:
        return Decision(Release(claim))
    event = Notice("Warning", fault.reason, fault.message)
    report = Report(State.INSTANTIATING, phase_of(facts), fault, facts.devices)
    return Decision(WAIT, report, events=(event,))


def _keep(facts: Facts, pod: Pod, claim: Claim, now: float, limits: LabletSettings) -> Decision:
    """Keep the lab imported and running, or stopped on request; its presence is known."""
    if not claim.lab_id:
        if now < facts.memory.retry_at:
            return back_off(facts, claim, now)
        report = _waiting("ImportingLab", f"lab {claim.title} is being imported")
        if not facts.memory.searched:
            return Decision(Search(claim), report)
        return Decision(Import(claim, pod, to_import_for(facts, claim)), report)
    if (renewal := replace_lab(facts, pod, claim, now)) is not None:
        return renewal
    if facts.presence is Presence.ABSENT:
        lost = claim.lost_lab()
        if claim.resetting:  # a wipe could not give it its devices back
            return Decision(SAVE, None, lost)
        return again(facts, lost, now, limits, "LabLost", "the lab was deleted on the worker by another client")
    if facts.inputs.reset and facts.inputs.reset != claim.reset:
        return reset_on_request(facts, claim, limits)
    if claim.resetting:
        return reset(facts, claim, now)
    if unnoted(facts, claim):
        stored = facts.claim_saved and facts.claim is not None and facts.claim.learner == claim.learner
        if stored or claim.session is not None or not claim.learner:
            return Decision(NoteLearner(claim))
        return Decision(WAIT, after_s=_SAVED_S)  # the claim names the learner first
    if (paused := pause(facts, claim, now, limits)) is not None:
        return paused
    return _present(facts, pod, claim, now, limits)


def _silent(facts: Facts, claim: Claim, message: str) -> Report:
    if phase_of(facts) != "Running":
        state = State.STOPPING if claim.closing_reason else State.INSTANTIATING
        return _waiting("CleaningUp" if claim.closing_reason else "WorkerUnreachable", message, state=state)
    state = state_of(claim) if claim.ready_at else State.INSTANTIATING
    if claim.closing_reason:
        state = closing_state(facts, claim)
    elif claim.stopped_at:
        state = State.STOPPED
    return Report(state, phase="Running", silent=message)


def _present(facts: Facts, pod: Pod, claim: Claim, now: float, limits: LabletSettings) -> Decision:
    states = {device.state for device in facts.devices}
    if states == {labs.BOOTED}:
        return provision(facts, claim) or _ready(facts, pod, claim, now, limits)
    afresh = claim.afresh or claim.lent_back
    if not claim.ready_at and not afresh and phase_of(facts) == "Running":  # shown, then lost in a crash
        claim = claim.shown_ready(facts.now_unix)
    if (fault := unclear(claim.title, facts.devices)) is not None:
        return outlast(facts, claim, fault, now, limits)
    if states & labs.BOOTING and labs.STOPPED not in states:
        return _booting(facts, claim, now, limits)
    if states <= {labs.DEFINED} and not claim.ready_at:
        if now < facts.memory.retry_at:
            return back_off(facts, claim, now)
        return _start(facts, claim, now, limits)
    return recover(facts, claim, now, limits)


def _start(facts: Facts, claim: Claim, now: float, limits: LabletSettings) -> Decision:
    """Start the lab, or wait for an earlier start; one that has moved no device in time is sent again."""
    report = _waiting("StartingNodes", f"starting {count(len(facts.devices), 'device')}", devices=facts.devices)
    if facts.memory.start_sent_at and facts.memory.starting_since:
        left = facts.memory.starting_since + limits.start_timeout_s - now
        if left <= 0 and facts.observed_at >= facts.memory.starting_since + limits.start_timeout_s:
            text = f"CML accepted the start, but moved no device within {limits.start_timeout_s:.0f} s"
            return again(facts, claim, now, limits, "LabStartTimeout", text)
        pause = facts.memory.start_sent_at + _START_AGAIN_S - now
        if pause > 0:
            return Decision(WAIT, report, after_s=max(0.0, min(left, pause)) or pause, observe=True)
    return Decision(Start(claim), report, claim if claim.started_at else claim.started(facts.now_unix), retry_at=0.0)


def _booting(facts: Facts, claim: Claim, now: float, limits: LabletSettings) -> Decision:
    devices = facts.devices
    left = (
        facts.memory.starting_since + limits.start_timeout_s - now
        if facts.memory.starting_since
        else limits.start_timeout_s
    )
    queued = any(device.state == labs.QUEUED for device in devices)
    if left <= 0 and facts.observed_at < facts.memory.starting_since + limits.start_timeout_s:
        return Decision(WAIT, observe=True)  # this replica or the machine was paused: observe before judging
    if left <= 0:
        late = labels(devices, labs.BOOTING)
        text = f"not booted {limits.start_timeout_s:.0f} s after the start: {late}"
        if queued:
            text += "; CML has them queued: the worker lacks CPU, memory or node licences"
        if worked(facts, claim):
            return needs_attention(claim, devices, text)
        return again(facts, claim, now, limits, "LabStartTimeout", text)
    if queued:
        text = f"CML has queued {labels(devices, {labs.QUEUED})} until CPU, memory and node licences are free"
        reason = "LabQueued"
    else:
        booted = sum(device.state == labs.BOOTED for device in devices)
        reason, text = (
            "StartingNodes",
            f"{booted} of {count(len(devices), 'device')} booted, waiting for {labels(devices, labs.BOOTING)}",
        )
    if not claim.started_at:  # lost in a crash; without it this start would never time out
        return Decision(SAVE, not_ready(claim, reason, text, devices), claim.started(facts.now_unix), observe=True)
    return Decision(WAIT, not_ready(claim, reason, text, devices), after_s=left, observe=True)


def _ready(facts: Facts, pod: Pod, claim: Claim, now: float, limits: LabletSettings) -> Decision:
    report = ready_report(claim, facts.devices)
    if claim.last_at > claim.ready_at or not claim.ready_at:
        number = len(facts.devices)
        text = f"all {number} devices booted" if number != 1 else "its device booted"
        event = Notice("Normal", "Recovered" if claim.restarts else "Ready", text)
        ready_at = max(facts.now_unix, claim.last_at)  # a clock set back must not make this true for ever
        shown = None if (claim.afresh or claim.lent_back) and not claim.ready_at else report
        return Decision(SAVE, shown, claim.ready(ready_at), events=(event,))
    if (
        claim.afresh or claim.lent_back
    ) and not facts.claim_saved:  # wait until the claim is persisted, so that a crash cannot lose `ready_at`
        return Decision(WAIT, after_s=_SAVED_S)
    if claim.lent_back:
        return _back_in_pool(facts, pod, claim, report)
    if facts.inputs.lent_by and not learner_of(facts, claim):  # assigned, and taken back before anyone had it
        return Decision(ReturnToPool(pod, facts.inputs.lent_by), report, after_s=PATCHED_S)
    if (renewal := begin(facts, claim)) is not None:
        return renewal
    if not claim.recoveries or not facts.memory.ready_since:
        return Decision(WAIT, report, after_s=limits.stable_s if claim.recoveries else None)
    left = facts.memory.ready_since + limits.stable_s - now
    if left > 0:
        return Decision(WAIT, report, after_s=left)
    return Decision(SAVE, report, claim.stable())


def _back_in_pool(facts: Facts, pod: Pod, claim: Claim, report: Report) -> Decision:
    """Set a warm lablet's pool label again; one with a username had its label and was assigned at once."""
    if facts.inputs.pool == claim.lent_back or facts.inputs.username:
        return Decision(SAVE, report, claim.back_in_pool())
    return Decision(ReturnToPool(pod, claim.lent_back), report, after_s=PATCHED_S)
