"""A learner's session, in every stage: its events, and the mux's address in it.

READY → RUNNING comes from the LDS alone (`session.started`); RUNNING → COLLECTING from `session.ended`, from the end
of the timeslot, or on request.
"""

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from vkprovider.lablet import exposure
from vkprovider.lablet.exposure import Exposure
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.decisions.living import Living, instantiating, learner_of
from vkprovider.labs.pure.lablet.exposing import NO_ANSWER, NoSlice
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, Reschedule
from vkprovider.platform.messages import Notice, count, listed
from vkprovider.platform.reasons import Reason
from vkprovider.platform.times import iso

_RESCHEDULE_AGAIN_S: Final = 10.0
"""The pause before an LDS that did not answer is asked again for another end of a session."""


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
        events.append(Notice("Normal", Happened.SESSION_STARTED, f"{session.username} has logged in"))
    if ended and not session.ended_at:
        events.append(Notice("Normal", Happened.SESSION_ENDED, f"the session of {session.username} has ended"))
    return Decision(SAVE, None, changed, events=tuple(events))


def reschedule(lablet: Living, decision: Decision) -> Decision:
    """Give the LDS the end of the timeslot that the Pod asks for, when there is nothing else to do.

    It waits for no worker, and holds nothing up: an LDS that does not answer is asked again later.
    """
    facts, claim = lablet.facts, lablet.claim
    session, end = claim.session, facts.inputs.slot_end
    if decision.step is not WAIT or session is None or not session.ready_at or session.ended_at or claim.closing_reason:
        return decision
    if end in {0, session.slot_end} or end <= max(session.slot_start, facts.now_unix):
        return decision
    left = facts.memory.rescheduled_at + _RESCHEDULE_AGAIN_S - lablet.now
    if left <= 0:
        return msgspec.structs.replace(decision, step=Reschedule(claim, session, end))
    return decision.no_later_than(left)


def slot_end(facts: Facts, claim: Claim) -> int:
    """Return when the learner's time is over (Unix seconds), 0 if it is open."""
    if facts.inputs.slot_end:
        return facts.inputs.slot_end  # may have been extended since the session was made
    return claim.session.slot_end if claim.session is not None else 0


def announce_end(lablet: Living, decision: Decision) -> Decision:
    """Announce the end of the learner's time some time before, once for each end, or ask again when that is due.

    A replica that has taken the lablet over meanwhile announces it again: its learner has read it twice then.
    """
    facts, claim, before_s = lablet.facts, lablet.claim, lablet.limits.announce_end_s
    end, learner = slot_end(facts, claim), learner_of(facts, claim)
    left_s = end - facts.now_unix
    if not learner or not before_s or left_s <= 0 or facts.memory.announced_end == end:
        return decision
    if claim.closing_reason or closing_of(facts, claim) is not None:
        return decision
    if left_s > before_s:
        return decision.no_later_than(left_s - before_s)
    text = f"the time of {learner} ends in {count(math.ceil(left_s / 60), 'minute')}, at {iso(end)}"
    events = (*decision.events, Notice("Warning", Happened.TIMESLOT_ENDING, text))
    return msgspec.structs.replace(decision, events=events, announces_end=end)


def closing_of(facts: Facts, claim: Claim) -> tuple[Reason, str] | None:
    """Return why the learner's work is to be collected now, as reason and message; None if it is not."""
    session, inputs = claim.session, facts.inputs
    if session is not None and session.ended_at:
        return Happened.SESSION_ENDED, f"the session of {session.username} has ended"
    end = slot_end(facts, claim)
    if end and facts.sure and facts.now_unix >= end and (learner := learner_of(facts, claim)):
        return Happened.TIMESLOT_ENDED, f"the timeslot of {learner} is over"
    if inputs.desired is State.COLLECTING:
        return Happened.COLLECTING, "collecting on request"
    return None


def closing_state(facts: Facts, claim: Claim) -> State:
    """Return the state of a lablet whose learner's time is over."""
    if not claim.collected_at:
        return State.COLLECTING
    if facts.delivery.grader and claim.verdict is None:
        return State.GRADING
    return State.INSTANTIATING if claim.lent_by else State.STOPPING


_SLOTS_MAX: Final = 5
"""Ports in one message."""


def await_access(lablet: Living) -> Decision | None:
    """Wait until the mux leads to the lablet's ports; None if there is nothing to wait for, or not any longer."""
    facts, exposing, wait_s = lablet.facts, lablet.facts.exposing, lablet.limits.access_wait_s
    if not exposing.lds or not (exposing.wanted is NoSlice.UNKNOWN or exposing.unsettled):
        return None
    since = facts.memory.access_since
    left = since + wait_s - lablet.now if since else wait_s
    if left <= 0:
        return None
    slots = listed(exposing.unsettled, _SLOTS_MAX) or "the lablet's ports"
    text = f"the session is made when the mux leads to {slots}"
    report = warm(lablet) or instantiating(facts, Progress.WAITING_FOR_ACCESS, text)
    return Decision(WAIT, report, after_s=left, awaits_access=True)


def via(facts: Facts) -> Mapping[str, tuple[str, int]]:
    """Return the mux's address and port of each slot to which it leads, if the LDS is to be told."""
    exposing = facts.exposing
    if not exposing.lds or not exposing.stands:
        return {}
    return {slot: (one.address, one.port) for slot, one in exposing.access.items() if one.state == exposure.LIVE}


def without_access(facts: Facts) -> tuple[Notice, ...]:
    """Return the Event about slots for which the LDS is told the worker's address, although it should not be."""
    exposing, live = facts.exposing, via(facts)
    wanted = exposing.wanted
    if not exposing.lds:
        return ()
    if wanted is NoSlice.UNKNOWN:
        told = "the worker has no IP address that is known: the session has the worker's address"
        text = f"no mux leads to the lablet's ports, because {told}"
        return (Notice("Warning", Trouble.ACCESS_MISSING, text),)
    if not isinstance(wanted, Exposure):
        return ()
    lacking = [port.slot for port in wanted.ports if port.slot not in live]
    if not lacking:
        return ()
    told = listed([f"{slot} ({exposing.access.get(slot, NO_ANSWER).text})" for slot in lacking], _SLOTS_MAX)
    text = f"mux {wanted.mux} does not lead to {told}: the session has the worker's address"
    return (Notice("Warning", Trouble.ACCESS_MISSING, text),)


def warm(lablet: Living) -> Report | None:
    """Return the report of a lablet that was ready before it got its learner: it serves on; None for any other."""
    if not lablet.claim.ready_at:
        return None
    return Report(State.READY, phase="Running", devices=lablet.facts.devices)
