"""The stage of a lablet: which of its stages the claim and the facts show."""

from enum import Enum, auto

from vkprovider.lablet import observations
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.boots import awaits_stage
from vkprovider.labs.pure.lablet.decisions.living import bound, unnoted, was_shown_ready
from vkprovider.labs.pure.lablet.decisions.session import closing_of, closing_state
from vkprovider.labs.pure.lablet.devicework import work_of
from vkprovider.labs.pure.lablet.facts import Facts, boots_of, phase_of
from vkprovider.labs.pure.lablet.memory import Presence, is_clear


class Stage(Enum):
    """The stages of a lablet. A stage is derived each time; the Pod shows a `State`."""

    UNEXAMINED = auto()  # the worker's claims were lost, so that a lab of the lablet may be there without a claim
    CLAIMING = auto()  # there is no claim, or it is about to be written
    UNSEEN = auto()  # the worker does not answer, or the lab was not observed since it was last changed
    FRESH = auto()  # there is a claim and no lab
    IMPORTED = auto()  # no device has been started
    BOOTING = auto()  # every device that is not booted boots, or is to be started by CML in a later stage
    UNCLEAR = auto()  # the devices show nothing to go by
    CHANGING = auto()  # single devices are stopped, wiped or started on request, while the others run
    CRASHED = auto()  # devices have stopped, and nobody asked for that
    UNNOTED = auto()  # the notes of the lab do not name the learner or the session
    SERVING = auto()  # all devices are booted
    PAUSED = auto()  # the lab is stopped on request, or about to be
    WIPING = auto()  # the lab is stopped and wiped, to be started again
    RENEWING = auto()  # the lab of a warm lablet is replaced by one of new content
    PORTLESS = auto()  # the ports of the lab are unknown, or another lab's
    CLOSING = auto()  # the learner's time is over: the work is collected and graded
    RETURNING = auto()  # the learner's work is graded, and the lablet goes back to its pool
    ENDING = auto()  # the Pod is deleted or gone, or the lablet has an outcome, or is to get one


def stage_of(facts: Facts, now: float) -> Stage:
    """Return the stage of a lablet.

    Args:
        facts: What is known of the lablet.
        now: Monotonic seconds.
    """
    pod, claim = facts.pod, facts.claim
    if claim is None and facts.unexamined and (facts.refusal is None or phase_of(facts) == "Running"):
        return Stage.UNEXAMINED
    if pod is None or pod.metadata.deletion_timestamp is not None or pod.terminal:
        return Stage.ENDING
    over = facts.sure and facts.memory.deadline_at and now >= facts.memory.deadline_at
    if (claim is not None and claim.outcome) or facts.inputs.desired is State.TERMINATED or over:
        return Stage.ENDING
    return _of_claim(facts, bound(facts, claim), now) if claim is not None else Stage.CLAIMING


def _of_claim(facts: Facts, claim: Claim, now: float) -> Stage:
    if not facts.claim_saved and not claim.lab_id and not claim.closing_reason:
        return Stage.CLAIMING
    if facts.silent or (claim.lab_id and facts.presence is Presence.UNKNOWN):
        return Stage.UNSEEN
    if claim.closing_reason or closing_of(facts, claim) is not None:
        returns = claim.closing_reason and closing_state(facts, claim) is State.INSTANTIATING
        return Stage.RETURNING if returns else Stage.CLOSING
    if claim.ports_fault is not None:
        return Stage.PORTLESS
    if claim.lab_id and claim.renews == claim.digest:
        return Stage.RENEWING
    if not claim.lab_id or facts.presence is Presence.ABSENT:
        return Stage.FRESH
    return _of_lab(facts, claim, now)


def _of_lab(facts: Facts, claim: Claim, now: float) -> Stage:
    if claim.resetting or (facts.inputs.reset and facts.inputs.reset != claim.reset):
        return Stage.WIPING
    if unnoted(facts, claim):
        return Stage.UNNOTED
    started = claim.ready_at or was_shown_ready(facts, claim)
    if claim.stopped_at or (facts.inputs.desired is State.STOPPED and started):
        return Stage.PAUSED
    if claim.ready_at and work_of(facts.inputs, claim, facts.devices, facts.memory.held_acts(now)) is not None:
        return Stage.CHANGING
    states = {device.state for device in facts.judged}
    if states == {observations.BOOTED} or (claim.wishes and not states):
        return Stage.SERVING
    if not is_clear(states):
        return Stage.UNCLEAR
    if states & observations.BOOTING and observations.STOPPED not in states:
        return Stage.BOOTING
    if (
        states == {observations.BOOTED, observations.DEFINED}
        and not started
        and awaits_stage(boots_of(facts, now), now)
    ):
        return Stage.BOOTING
    return Stage.IMPORTED if states == {observations.DEFINED} and not started else Stage.CRASHED
