"""A lent lablet whose learner's work is collected and graded: nothing of the learner stays, and it is warm again."""

from vkprovider.lablet.reasons import Happened
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.lablet.decisions import living
from vkprovider.labs.pure.lablet.decisions.living import PATCHED_S, Living
from vkprovider.labs.pure.lablet.facts import Decision
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, ArchiveSession, ClearLearner
from vkprovider.platform.messages import Notice


def decide(lablet: Living) -> Decision:
    """Archive the session, clear the learner, then let the lab be wiped."""
    facts, claim, session = lablet.facts, lablet.claim, lablet.claim.session
    if not facts.claim_saved:
        return Decision(WAIT)
    report = living.returning(facts, claim)
    if session is not None and not session.archived_at:
        return Decision(ArchiveSession(claim, session), report)
    if facts.inputs.username or facts.inputs.desired is State.COLLECTING:
        return Decision(ClearLearner(lablet.pod), after_s=PATCHED_S)  # a report would name the learner again
    graded = " and graded" if claim.verdict is not None else ""
    note = (
        f"the learner's work was collected{graded} ({claim.closing_reason}); the lab is wiped, and the lablet goes "
        f"back to its pool {claim.lent_by} for the next learner"
    )
    event = Notice("Normal", Happened.BACK_TO_POOL, note)
    return Decision(SAVE, report, claim.handed_back(), retry_at=0.0, forgets_starts=True, events=(event,))
