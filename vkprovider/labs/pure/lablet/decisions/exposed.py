"""Lending a lablet's ports to a mux, around the decision of its stage: before all else they are withdrawn.

A slice is written from the claim, once the claim that says so is stored, and withdrawn before the lab is stopped, wiped
or deleted, before its learner's work is collected, and before the claim is dropped: what the mux leads to the lablet's
ports leads to this learner's lab or to nothing.
"""

import math
from typing import Final

import msgspec

from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.decisions.living import had_by_nobody
from vkprovider.labs.pure.lablet.decisions.session import closing_of
from vkprovider.labs.pure.lablet.decisions.stage import Stage
from vkprovider.labs.pure.lablet.exposing import NoSlice
from vkprovider.labs.pure.lablet.facts import Decision, Facts
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, ConfirmGone, Expose, Withdraw
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.messages import Fault, Notice

_BEGINS: Final = frozenset({Stage.BOOTING, Stage.UNNOTED, Stage.SERVING})
"""The stages in which a slice is written."""
_KEPT: Final = _BEGINS | {Stage.UNSEEN, Stage.UNCLEAR, Stage.CRASHED}
"""Those in which one that stands stays: the lab is the same learner's, and may serve again by itself."""


def around(
    facts: Facts, claim: Claim, stage: Stage, decision: Decision, *, now: float, limits: LabletSettings
) -> Decision:
    """Return the decision of a stage, or what must come before it.

    Args:
        facts: What is known of the lablet.
        claim: The lablet's, with its learner.
        stage: The lablet's.
        decision: Of the stage.
        now: Monotonic seconds.
        limits: Say how long ports rest.
    """
    exposing = facts.exposing
    shown = exposing.seen_uid if exposing.seen_uid != facts.memory.withdrawn else ""
    stands = bool(claim.exposed or shown)
    if not stands and exposing.wanted is NoSlice.UNWANTED:
        return decision
    unwanted = exposing.wanted is NoSlice.UNWANTED or bool(claim.lent_back) or had_by_nobody(facts, claim)
    over = bool(claim.closing_reason) or closing_of(facts, claim) is not None
    if stands and (stage not in _KEPT or unwanted or over or isinstance(exposing.wanted, Fault)):
        if isinstance(decision.step, ConfirmGone):  # the Pod may be there, and its lablet in use
            return decision
        return Decision(Withdraw(claim, exposing.seen_uid, math.ceil(limits.port_rest_s)))
    if stage not in _BEGINS or unwanted or over or decision.step is not WAIT or claim is not facts.claim:
        return decision
    return _expose(facts, claim, decision, now)


def _expose(facts: Facts, claim: Claim, decision: Decision, now: float) -> Decision:
    """Write the slice, when the claim that says so is stored and nothing else is to be done."""
    exposing, wanted = facts.exposing, facts.exposing.wanted
    if isinstance(wanted, Fault):
        notice = Notice("Warning", wanted.reason, wanted.message)
        return msgspec.structs.replace(decision, events=(*decision.events, notice))
    if isinstance(wanted, NoSlice):
        return decision
    if claim.exposed != wanted.mux:
        changed = (decision.claim or claim).exposing(wanted.mux)
        return Decision(SAVE, decision.report, changed)
    if exposing.stands or not facts.claim_saved:
        return decision
    left = facts.memory.expose_at - now
    if left > 0:
        return decision.no_later_than(left)
    return Decision(Expose(wanted, exposing.seen_uid), decision.report)
