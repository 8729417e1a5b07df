"""A lab that is stopped and wiped, to be started again: after a failure, on request, or for the next learner."""

from vkprovider.lablet import observations
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.labs.pure.lablet.decisions.living import Living, instantiating, returning
from vkprovider.labs.pure.lablet.decisions.takedown import extract_due, extraction, take_down
from vkprovider.labs.pure.lablet.facts import Decision, Report
from vkprovider.labs.pure.lablet.steps import SAVE, Extract
from vkprovider.platform.messages import Notice


def decide(lablet: Living) -> Decision:
    """Stop and wipe the lab, then let it start afresh; one without devices is deleted and imported again."""
    facts, claim = lablet.facts, lablet.claim
    if facts.inputs.reset and facts.inputs.reset != claim.reset:
        return _begin(lablet)
    report = _report(lablet)
    if {device.state for device in facts.devices} == {observations.DEFINED}:
        return Decision(SAVE, report, claim.wiped())
    return take_down(facts, claim, report, lablet.now)  # a wipe gives no device back that was removed


def _begin(lablet: Living) -> Decision:
    """Begin on request; the session stays."""
    facts, claim, text = lablet.facts, lablet.claim, "the lab is wiped and started again on request"
    report = instantiating(facts, Progress.RESETTING, text)
    if extract_due(facts, claim, lablet.limits):
        return Decision(extraction(facts, claim, Extract), report)
    changed = claim.reset_on(facts.inputs.reset, text, facts.now_unix)
    event = Notice("Normal", Progress.RESETTING, f"{text} (number {changed.starts_again})")
    return Decision(SAVE, report, changed, retry_at=0.0, forgets_starts=True, events=(event,))


def _report(lablet: Living) -> Report:
    facts, claim = lablet.facts, lablet.claim
    if claim.lent_back:
        return returning(facts, claim)
    if claim.last_reason.asked_for:
        return instantiating(facts, Progress.RESETTING, claim.last_message)
    text = f"back-off after {claim.last_reason}: the lab is wiped and started again"
    return instantiating(facts, Trouble.CRASH_LOOP_BACK_OFF, text)
