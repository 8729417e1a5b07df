"""Whose lablet it is: the learner that the claim names.

The annotation `vkprovider.io/username` is a request. From the import of the lab on the claim names the learner, and
only the end of the learner's time changes that: another name would give one learner's session and lab to the next. A
name that is changed or removed meanwhile is put back.

The lab's notes name the learner too, before the lablet is shown Ready and before the session is requested: a claim that
is lost is rebuilt from them.
"""

from typing import Final

from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.facts import Decision, Facts
from vkprovider.labs.pure.lablet.steps import RestoreUsername
from vkprovider.platform.objects import Pod

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
