"""The lab's notes are behind the claim, from which a lost claim would be rebuilt: they are written first."""

from typing import Final

from vkprovider.labs.pure.lablet.decisions.living import Living
from vkprovider.labs.pure.lablet.facts import Decision
from vkprovider.labs.pure.lablet.steps import WAIT, NoteLearner

_SAVED_S: Final = 1.0
"""How soon to look whether the claim is written that names the learner."""


def decide(lablet: Living) -> Decision:
    """Write learner and session into the notes, once the stored claim names the learner."""
    facts, claim = lablet.facts, lablet.claim
    stored = facts.claim_saved and facts.claim is not None and facts.claim.learner == claim.learner
    if stored or not claim.learner:
        return Decision(NoteLearner(claim))
    return Decision(WAIT, after_s=_SAVED_S)
