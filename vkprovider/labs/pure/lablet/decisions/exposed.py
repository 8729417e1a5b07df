"""Lending a lablet's ports to a mux: each stage says by `ports` what becomes of them before its own decision.

A slice is written from the claim, once the claim that says so is stored, and withdrawn before the lab is stopped, wiped
or deleted, before its learner's work is collected, and before the claim is dropped: what the mux leads to the lablet's
ports leads to this learner's lab or to nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

import msgspec

from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.decisions.living import Living, had_by_nobody
from vkprovider.labs.pure.lablet.decisions.session import closing_of
from vkprovider.labs.pure.lablet.exposing import NoSlice
from vkprovider.labs.pure.lablet.facts import Decision, Facts
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, ConfirmGone, Expose, Withdraw
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.messages import Fault, Notice


class Ports(Enum):
    """What becomes of the slice that leads a mux to the ports of a lablet, in one stage."""

    LENT = auto()  # one is written when the stage has nothing else to do, and stays
    KEPT = auto()  # one that stands stays: the lab is the same learner's, and may serve again by itself
    WITHDRAWN = auto()  # one that stands is withdrawn before the stage does anything


@dataclass(frozen=True, slots=True)
class StageConduct:
    """What a stage does with a lablet that lives.

    Attributes:
        decide: The function of the stage.
        ports: What becomes of the lablet's ports before its decision, and before one that its session or its username
            asks for in this stage.
    """

    decide: Callable[[Living], Decision]
    ports: Ports


def ports(what: Ports) -> Callable[[Callable[[Living], Decision]], StageConduct]:
    """Say of the function of a stage what becomes of the lablet's ports."""
    return lambda function: StageConduct(function, what)


def around(
    facts: Facts, claim: Claim, ports: Ports, decision: Decision, *, now: float, limits: LabletSettings
) -> Decision:
    """Return the decision of a stage, or what must come before it.

    Args:
        facts: What is known of the lablet.
        claim: The lablet's, with its learner.
        ports: What the stage says of them.
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
    if stands and (ports is Ports.WITHDRAWN or unwanted or over or isinstance(exposing.wanted, Fault)):
        if isinstance(decision.step, ConfirmGone):  # the Pod may be there, and its lablet in use
            return decision
        return Decision(Withdraw(claim, exposing.seen_uid, math.ceil(limits.port_rest_s)))
    if ports is not Ports.LENT or unwanted or over or decision.step is not WAIT or claim is not facts.claim:
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
    if exposing.stands:
        return decision
    if not facts.claim_saved:
        return decision.awaiting_claim()
    left = facts.memory.expose_at - now
    if left > 0:
        return decision.no_later_than(left)
    return Decision(Expose(wanted, exposing.seen_uid), decision.report)
