"""While the lab cannot be seen: nothing is done to it, and what was reported stays."""

from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.lablet.decisions.living import Living, pending, state_of
from vkprovider.labs.pure.lablet.decisions.session import closing_state
from vkprovider.labs.pure.lablet.facts import Decision, Report, phase_of
from vkprovider.labs.pure.lablet.steps import WAIT
from vkprovider.platform.messages import Notice


def decide(lablet: Living) -> Decision:
    """Wait for an observation, or for the worker."""
    if not lablet.facts.silent:
        return Decision(WAIT, observe=True)
    text = f"{lablet.facts.silent}; the lablet continues as soon as the worker answers"
    return Decision(WAIT, _silent(lablet, text), events=(Notice("Warning", Trouble.WORKER_UNREACHABLE, text),))


def _silent(lablet: Living, message: str) -> Report:
    facts, claim = lablet.facts, lablet.claim
    if phase_of(facts) != "Running":
        state = State.STOPPING if claim.closing_reason else State.INSTANTIATING
        return pending(
            Progress.CLEANING_UP if claim.closing_reason else Trouble.WORKER_UNREACHABLE, message, state=state
        )
    state = state_of(claim) if claim.ready_at else State.INSTANTIATING
    if claim.closing_reason:
        state = closing_state(facts, claim)
    elif claim.stopped_at:
        state = State.STOPPED
    return Report(state, phase="Running", silent=message)
