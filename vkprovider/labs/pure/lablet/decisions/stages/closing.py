"""The learner's time is over: the work is collected, then graded if there is a grader, and then the lablet ends.

The verdict is its exit code. A lablet that was lent by a pool does not end: it is returned.
"""

from vkprovider.lablet.reasons import Happened, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.decisions.living import Living, had_by_nobody, stopping
from vkprovider.labs.pure.lablet.decisions.session import closing_of
from vkprovider.labs.pure.lablet.decisions.takedown import extraction, finish
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report, phase_of
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, Collect, Grade
from vkprovider.platform.messages import Notice
from vkprovider.platform.reasons import Reason


def decide(lablet: Living) -> Decision:
    """Record that the time is over, collect, grade, end."""
    facts, claim = lablet.facts, lablet.claim
    if not claim.closing_reason and (why := closing_of(facts, claim)) is not None:
        announced = claim.session is not None and claim.session.ended_at  # when its event came
        events = () if announced else (Notice("Normal", *why),)
        changed = claim.closing(why[0], lent_by=facts.inputs.lent_by)
        return Decision(SAVE, _during(facts, State.COLLECTING), changed, events=events)
    if not facts.claim_saved:
        return Decision(WAIT)
    if not claim.lent_by and had_by_nobody(facts, claim):
        return finish(facts, *_outcome(claim, collected=False))
    if not claim.collected_at:
        return Decision(extraction(facts, claim, Collect), _during(facts, State.COLLECTING))
    if facts.delivery.grader and claim.verdict is None:
        return Decision(Grade(claim), _during(facts, State.GRADING))
    return finish(facts, *_outcome(claim, collected=True))


def _during(facts: Facts, state: State) -> Report:
    """Report that what the learner leaves is being collected or graded; running containers stay running."""
    if phase_of(facts) == "Running":
        return Report(state, phase="Running", devices=facts.devices)
    return stopping(facts, "what the learner leaves is collected")


def _outcome(claim: Claim, *, collected: bool) -> tuple[str, Reason, str]:
    """Return phase, reason and message of the end."""
    if claim.verdict is not None:
        phase, reason = ("Succeeded", Happened.PASSED) if claim.verdict.passed else ("Failed", Trouble.NOT_PASSED)
        return phase, reason, claim.verdict.message
    if not claim.ready_at:
        return "Failed", claim.closing_reason, "the lablet was never ready"
    if not collected:
        return "Succeeded", Happened.COMPLETED, f"nobody had it, nothing is collected ({claim.closing_reason})"
    return "Succeeded", Happened.COMPLETED, f"collected, no grader is configured ({claim.closing_reason})"
