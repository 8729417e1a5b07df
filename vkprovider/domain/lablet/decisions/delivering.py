"""A learner's session: provision it, follow it, collect and grade at its end, make the lablet warm again.

READY → RUNNING comes from the LDS alone (`session.started`); RUNNING → COLLECTING from `session.ended`, from the end
of the timeslot, or on request. What was collected is graded if there is a grader, and then the lablet ends, with the
verdict as its exit code; one that was lent by a pool is wiped instead and goes back as a warm one.
"""

from typing import Final

import msgspec

from vkprovider.api.labs import DeviceFact
from vkprovider.api.messages import Fault, Notice
from vkprovider.api.objects import Pod
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.decisions.learner import learner_of
from vkprovider.domain.lablet.decisions.takedown import extraction, finish, is_on, switch_off
from vkprovider.domain.lablet.facts import Decision, Facts, Report, phase_of
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.lablet.steps import (
    SAVE,
    WAIT,
    ArchiveSession,
    ClearLearner,
    Collect,
    Grade,
    Provision,
    Reschedule,
    Start,
)
from vkprovider.domain.session.delivery import Session, client_key
from vkprovider.settings.cluster import LabletSettings

PATCHED_S: Final = 2.0
"""How soon to look whether the Pod shows a patch: it gives way to any other change, also to our own status."""
_RESCHEDULE_AGAIN_S: Final = 10.0
"""The pause before an LDS that did not answer is asked again for another end of a session."""
_LOOK_AGAIN_S: Final = 5.0
"""How soon to look again for an LDS with free capacity; no event says when there is one."""


def state_of(claim: Claim) -> State:
    """Return the state of a lablet whose devices run."""
    session = claim.session
    return State.RUNNING if session is not None and session.started_at and not session.ended_at else State.READY


def worked(facts: Facts, claim: Claim) -> bool:
    """Return whether a learner may have worked in the lab, so that it must not be destroyed without a request.

    A session that was requested and has no id may have been made, and started, before a crash lost its id.
    """
    if facts.delivery.wanted:
        return claim.session is not None and (claim.session.started_at > 0 or not claim.session.id)
    return claim.ready_at > 0


def provision(facts: Facts, claim: Claim) -> Decision | None:
    """Make the session of a lablet whose devices run; None if there is nothing to do."""
    delivery, session, username = facts.delivery, claim.session, learner_of(facts, claim)
    if not delivery.wanted or claim.lent_back:
        return None
    if session is None:
        if not username:
            return None  # warm
        if delivery.refusal is not None:
            reason, message = delivery.refusal.reason, delivery.refusal.message
            report = Report(State.INSTANTIATING, phase_of(facts), Fault(reason, message), facts.devices)
            return Decision(WAIT, report, after_s=_LOOK_AGAIN_S, events=(Notice("Warning", reason, message),))
        session = Session(
            deployment=delivery.deployment,
            key=client_key(claim.pod_uid, claim.sessions + 1),
            username=username,
            slot_start=(start := facts.inputs.slot_start or facts.now_unix),
            slot_end=facts.inputs.slot_end or start + delivery.slot_s,
        )
        changed = claim.requesting(session)
        return Decision(SAVE, _provisioning(facts, claim, session), changed)
    if session.ready_at:
        return None
    report = _provisioning(facts, claim, session)
    first_request = facts.memory.unasked == session.key
    return Decision(Provision(claim, session, first_request) if facts.claim_saved else WAIT, report)


def _provisioning(facts: Facts, claim: Claim, session: Session) -> Report:
    text = f"a session for {session.username} is being made at LDS deployment {session.deployment}"
    if claim.ready_at:  # a warm lablet serves on
        return Report(State.READY, phase="Running", devices=facts.devices)
    return Report(State.INSTANTIATING, phase_of(facts), Fault("ProvisioningSession", text), facts.devices)


def follow(facts: Facts, claim: Claim) -> Decision | None:
    """Record the session's events in the claim; None if there are no new ones."""
    session, delivery = claim.session, facts.delivery
    if session is None:
        return None
    started = session.started_at or delivery.started_at or delivery.ended_at  # the end came first: it had begun
    ended = session.ended_at or delivery.ended_at
    if (started, ended) == (session.started_at, session.ended_at):
        return None
    changed = claim.with_session(msgspec.structs.replace(session, started_at=started, ended_at=ended))
    events = []
    if not session.started_at:
        events.append(Notice("Normal", "SessionStarted", f"{session.username} has logged in"))
    if ended and not session.ended_at:
        events.append(Notice("Normal", "SessionEnded", f"the session of {session.username} has ended"))
    return Decision(SAVE, None, changed, events=tuple(events))


def reschedule(facts: Facts, claim: Claim, decision: Decision, now: float) -> Decision:
    """Give the LDS the end of the timeslot that the Pod asks for, when there is nothing else to do.

    It waits for no worker, and holds nothing up: an LDS that does not answer is asked again later.
    """
    session, end = claim.session, facts.inputs.slot_end
    if decision.step is not WAIT or session is None or not session.ready_at or session.ended_at or claim.closing_reason:
        return decision
    if end in {0, session.slot_end} or end <= max(session.slot_start, facts.now_unix):
        return decision
    left = facts.memory.rescheduled_at + _RESCHEDULE_AGAIN_S - now
    if left <= 0:
        return msgspec.structs.replace(decision, step=Reschedule(claim, session, end))
    return decision.no_later_than(left)


def slot_end(facts: Facts, claim: Claim) -> int:
    """Return when the learner's time is over (Unix seconds), 0 if it is open."""
    if facts.inputs.slot_end:
        return facts.inputs.slot_end  # may have been extended since the session was made
    return claim.session.slot_end if claim.session is not None else 0


def closing_of(facts: Facts, claim: Claim) -> tuple[str, str] | None:
    """Return why the learner's work is to be collected now, as reason and message; None if it is not."""
    session, inputs = claim.session, facts.inputs
    if session is not None and session.ended_at:
        return "SessionEnded", f"the session of {session.username} has ended"
    end = slot_end(facts, claim)
    if end and facts.now_unix >= end and (learner := learner_of(facts, claim)):
        return "TimeslotEnded", f"the timeslot of {learner} is over"
    if inputs.desired is State.COLLECTING:
        return "Collecting", "collecting on request"
    return None


def wrap_up(facts: Facts, pod: Pod, claim: Claim) -> Decision | None:
    """Collect, grade, and end or go back to the pool; None while the learner's time is not over."""
    if not claim.closing_reason:
        why = closing_of(facts, claim)
        if why is None:
            return None
        changed = claim.closing(why[0], lent_by=facts.inputs.lent_by)
        announced = claim.session is not None and claim.session.ended_at  # when its event came
        events = () if announced else (Notice("Normal", *why),)
        return Decision(SAVE, _during(facts, State.COLLECTING), changed, events=events)
    if not facts.claim_saved:
        return Decision(WAIT)
    if not claim.collected_at:
        return Decision(extraction(facts, claim, Collect), _during(facts, State.COLLECTING))
    if facts.delivery.grader and claim.verdict is None:
        return Decision(Grade(claim), _during(facts, State.GRADING))
    if claim.lent_by:
        return _give_back(facts, pod, claim)
    return finish(facts, *_outcome(claim))


def closing_state(facts: Facts, claim: Claim) -> State:
    """Return the state of a lablet whose learner's time is over."""
    if not claim.collected_at:
        return State.COLLECTING
    if facts.delivery.grader and claim.verdict is None:
        return State.GRADING
    return State.INSTANTIATING if claim.lent_by else State.STOPPING


def _during(facts: Facts, state: State) -> Report:
    """Report that what the learner leaves is being collected or graded; running containers stay running."""
    if phase_of(facts) == "Running":
        return Report(state, phase="Running", devices=facts.devices)
    return Report(
        State.STOPPING, phase_of(facts), Fault("CleaningUp", "what the learner leaves is collected"), facts.devices
    )


def _outcome(claim: Claim) -> tuple[str, str, str]:
    """Return phase, reason and message of the end."""
    if claim.verdict is not None:
        passed = claim.verdict.passed
        return (
            ("Succeeded", "Passed", claim.verdict.message) if passed else ("Failed", "NotPassed", claim.verdict.message)
        )
    if not claim.ready_at:
        return "Failed", claim.closing_reason, "the lablet was never ready"
    return "Succeeded", "Completed", f"collected, no grader is configured ({claim.closing_reason})"


def _give_back(facts: Facts, pod: Pod, claim: Claim) -> Decision:
    """Make a lent lablet warm again: archive its session, clear its learner, wipe it."""
    session = claim.session
    report = back_to_pool(facts, claim)
    if session is not None and not session.archived_at:
        return Decision(ArchiveSession(claim, session), report)
    if facts.inputs.username or facts.inputs.desired is State.COLLECTING:
        return Decision(ClearLearner(pod), report, after_s=PATCHED_S)
    said = claim.verdict.message if claim.verdict is not None else claim.closing_reason
    note = f"made warm again for pool {claim.lent_by}; the last learner's work: {said}"
    events = (Notice("Normal", "BackToPool", note),)
    return Decision(SAVE, report, claim.handed_back(), retry_at=0.0, anew=True, events=events)


def back_to_pool(facts: Facts, claim: Claim) -> Report:
    """Report that a lent lablet is on its way back."""
    text = f"the lab is wiped and started again for pool {claim.lent_by or claim.lent_back}"
    return Report(State.INSTANTIATING, phase_of(facts), Fault("ReturningToPool", text), facts.devices)


def pause(facts: Facts, claim: Claim, now: float, limits: LabletSettings) -> Decision | None:
    """Stop the lab on request, keep it stopped for a while, start it again; None without a request.

    What runs in the lab is lost as when a machine is switched off; its disks are kept.
    """
    wanted = facts.inputs.desired is State.STOPPED
    if not claim.stopped_at:
        if not wanted or not claim.ready_at:
            return None
        changed = claim.paused(facts.now_unix)
        return Decision(SAVE, _paused(facts), changed, events=(Notice("Normal", "Stopping", "stopped on request"),))
    if not wanted:
        changed = claim.resumed(facts.now_unix)
        report = Report(
            State.INSTANTIATING, phase_of(facts), Fault("StartingNodes", "started on request"), facts.devices
        )
        return Decision(Start(claim), report, changed, retry_at=0.0, anew=True)
    left = claim.stopped_at + limits.stopped_max_s - facts.now_unix
    if left <= 0:
        text = f"stopped for more than {limits.stopped_max_s / 3600:.0f} hours"
        return finish(facts, "Failed", "StoppedTooLong", text)
    if not is_on(facts.devices):
        return Decision(WAIT, _paused(facts), after_s=left)
    return switch_off(facts, claim, _paused(facts), now, limits)


def _paused(facts: Facts) -> Report:
    text = f"stopped on request; go on with: kubectl lablet start {facts.pod.metadata.name if facts.pod else ''}"
    return Report(State.STOPPED, phase_of(facts), Fault("LabStopped", text), facts.devices)


def ready_report(claim: Claim, devices: tuple[DeviceFact, ...]) -> Report:
    """Report a lablet whose devices run."""
    return Report(state_of(claim), phase="Running", devices=devices)
