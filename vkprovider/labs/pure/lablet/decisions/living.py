"""A lablet that lives, as its stages see it: what its Pod reports, and whose lablet it is.

The annotation `vkprovider.io/username` is a request. From the import of the lab on the claim names the learner, and
only the end of the learner's time changes that: another name would give one learner's session and lab to the next. A
name that is changed or removed meanwhile is put back.

The lab's notes name the learner too, before the lablet is shown Ready and before the session is requested: a claim that
is lost is rebuilt from them.
"""

from typing import Final

import msgspec

from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report, phase_of
from vkprovider.labs.pure.lablet.steps import WAIT, RestoreUsername
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import Pod
from vkprovider.platform.reasons import Reason


class Living(msgspec.Struct, frozen=True, gc=False):
    """A lablet with a claim whose Pod stays.

    Attributes:
        claim: Names the learner to whom the lablet is bound, even if `facts.claim` does not yet.
        now: Monotonic seconds, the clock of the times in `facts`.
    """

    facts: Facts
    pod: Pod
    claim: Claim
    now: float
    limits: LabletSettings

    @property
    def recalled(self) -> "Living":
        """The lablet with the time at which it was ready, if its Pod shows that and a crash lost it."""
        claim = self.claim
        if was_shown_ready(self.facts, claim):
            return msgspec.structs.replace(self, claim=claim.shown_ready(self.facts.now_unix))
        return self


def was_shown_ready(facts: Facts, claim: Claim) -> bool:
    """Return whether the Pod shows that the lablet was ready, and the claim does not."""
    afresh = claim.afresh or claim.lent_back
    return not claim.ready_at and not afresh and facts.pod is not None and facts.pod.status.phase == "Running"


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


def begun_afresh(facts: Facts, claim: Claim) -> Report:
    """Report that the lab is taken down to begin afresh, and why: for a pool, on request, or after a failure."""
    if claim.lent_back:
        return returning(facts, claim)
    if claim.last_reason.asked_for:
        return instantiating(facts, Progress.RESETTING, claim.last_message)
    text = f"back-off after {claim.last_reason}: the lab is wiped and started again"
    return instantiating(facts, Trouble.CRASH_LOOP_BACK_OFF, text)


def renewing(facts: Facts) -> Report:
    """Report that the lab is being replaced by one of new content."""
    return instantiating(
        facts, Progress.RENEWING_CONTENT, "the definition has new content: the lab is replaced by one of it"
    )


_SAVED_S: Final = 1.0
"""How soon to look for a lazily written claim, whose write wakes no lablet."""


def until_saved(report: Report | None = None) -> Decision:
    """Wait until the claim is stored, as it is here."""
    return Decision(WAIT, report, after_s=_SAVED_S, awaits_claim=True)


PATCHED_S: Final = 2.0
"""How soon to look whether the Pod shows a patch: it gives way to any other change, also to our own status."""
_RESTORE_EVERY_S: Final = 2.0
"""The pause between two attempts, in which the lablet's other steps have their turn: another client may write the
name all the time."""


def learner_of(facts: Facts, claim: Claim) -> str:
    """Return the learner that the claim names, else the one that the Pod requests; "" for a warm lablet."""
    return claim.bound_to or facts.inputs.username


def bound(facts: Facts, claim: Claim) -> Claim:
    """Return the claim with its learner: from the import on, and in a pool only while the lab is a fresh one."""
    learner = claim.bound_to
    if not learner and claim.lab_id and not claim.closing_reason and not claim.lent_back:
        learner = facts.inputs.username
    return claim if learner == claim.learner else claim.of_learner(learner)


def to_import_for(facts: Facts, claim: Claim) -> str:
    """Return whom the notes of a new lab name; "" for a warm lablet."""
    return claim.bound_to if claim.lent_back else learner_of(facts, claim)


def had_by_nobody(facts: Facts, claim: Claim) -> bool:
    """Return whether the lab is one of a pool that nobody was given: no work is in it.

    A lablet of no pool may be worked in without a username.
    """
    return not learner_of(facts, claim) and bool(facts.inputs.pool or claim.lent_back)


def unnoted(facts: Facts, claim: Claim) -> bool:
    """Return whether the lab's notes are behind the claim.

    Where a session follows, they name it and the learner at once: until it is requested the learner has seen nothing.
    """
    if claim.binding == claim.noted:
        return False
    return claim.session is not None or not claim.learner or not facts.delivery.wanted


def restore_in_s(facts: Facts, claim: Claim, now: float) -> float | None:
    """Return in how many seconds the Pod's username is to be put back; None if it is right, or about to be cleared."""
    if not claim.learner or claim.closing_reason or facts.inputs.username == claim.learner:
        return None
    return max(0.0, facts.memory.restored_at + _RESTORE_EVERY_S - now)


def restore(facts: Facts, pod: Pod, claim: Claim) -> Decision:
    """Put the Pod's username back, and look whether it is: the Pod may have changed meanwhile."""
    return Decision(RestoreUsername(pod, claim.learner, facts.inputs.username), after_s=_RESTORE_EVERY_S)
