"""What the Pod reports in the stages of a lablet, where more than one stage reports it."""

from vkprovider.lablet.labs import DeviceFact
from vkprovider.lablet.lifecycle import State
from vkprovider.lablet.reasons import Progress
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.facts import Facts, Report, phase_of
from vkprovider.platform.messages import Fault
from vkprovider.platform.reasons import Reason


def state_of(claim: Claim) -> State:
    """Return the state of a lablet whose devices run."""
    session = claim.session
    return State.RUNNING if session is not None and session.started_at and not session.ended_at else State.READY


def pending(
    reason: Reason, message: str, *, state: State = State.INSTANTIATING, devices: tuple[DeviceFact, ...] = ()
) -> Report:
    """Report a lablet that has not run yet."""
    return Report(state, waiting=Fault(reason, message), devices=devices)


def instantiating(facts: Facts, reason: Reason, message: str) -> Report:
    """Report a lablet whose lab is on its way, for the first time or again."""
    return Report(State.INSTANTIATING, phase_of(facts), Fault(reason, message), facts.devices)


def not_ready(claim: Claim, reason: Reason, message: str, devices: tuple[DeviceFact, ...]) -> Report:
    """Report a lablet whose devices do not all run; its phase is Running if it was ready before."""
    phase = "Running" if claim.ready_at else "Pending"
    return Report(State.INSTANTIATING, phase=phase, waiting=Fault(reason, message), devices=devices)


def stopping(facts: Facts, message: str) -> Report:
    """Report that the lablet is ending, and why."""
    return Report(State.STOPPING, phase_of(facts), Fault(Progress.CLEANING_UP, message), facts.devices)


def returning(facts: Facts, claim: Claim) -> Report:
    """Report that a lent lablet is on its way back to its pool."""
    text = f"the lab is wiped and started again for pool {claim.lent_by or claim.lent_back}"
    return instantiating(facts, Progress.RETURNING_TO_POOL, text)


def renewing(facts: Facts) -> Report:
    """Report that the lab is being replaced by one of new content."""
    return instantiating(
        facts, Progress.RENEWING_CONTENT, "the definition has new content: the lab is replaced by one of it"
    )
