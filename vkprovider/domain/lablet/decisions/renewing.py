"""A warm lablet takes up new content: its lab goes, and one of the new content takes its place. The Pod stays.

    Ready → shown not Ready, claim saved → stop → wipe → delete → new content and ports in the claim → import

The lab is touched only when the Pod is seen not Ready and without a learner: `kubectl lablet assign` gives nobody a
lablet that is not Ready, so that one which is assigned at the same moment is seen, and kept as it is.
"""

from typing import Final

from vkprovider.api.messages import Fault, Notice
from vkprovider.api.objects import Pod
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.decisions.takedown import take_down
from vkprovider.domain.lablet.facts import Decision, Facts, Report, phase_of
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.lablet.memory import Presence
from vkprovider.domain.lablet.pod.renewal import is_ready
from vkprovider.domain.lablet.steps import SAVE, WAIT, Renew

_SEEN_S: Final = 1.0
"""How soon to look whether the watch shows the Pod not Ready; the echo of an own write wakes no lablet."""


def renewing_report(facts: Facts) -> Report:
    """Report that the lab is being replaced."""
    why = Fault("RenewingContent", "the definition has new content: the lab is replaced by one of it")
    return Report(State.INSTANTIATING, phase_of(facts), why, facts.devices)


def begin(facts: Facts, claim: Claim) -> Decision | None:
    """Begin to replace the lab of a Ready lablet, if it is free and its turn has come; else None."""
    inputs = facts.inputs
    if not facts.renewal or facts.renewal == claim.digest or not inputs.pool:
        return None
    if claim.bound_to or inputs.username or inputs.lent_by or inputs.desired is not None:
        return None
    report = renewing_report(facts)
    text = report.waiting.message if report.waiting is not None else ""
    changed = claim.renewing(text, facts.now_unix)
    event = Notice("Normal", "RenewingContent", f"version {claim.version} is replaced by the current one")
    return Decision(SAVE, report, changed, retry_at=0.0, anew=True, events=(event,))


def replace_lab(facts: Facts, pod: Pod, claim: Claim, now: float) -> Decision | None:
    """Replace the lab of the old content; None if there is none any more."""
    if claim.renews != claim.digest or not claim.lab_id:
        return None
    report = renewing_report(facts)
    if facts.presence is Presence.ABSENT:
        return Decision(Renew(pod, claim), report)
    if claim.bound_to:  # assigned at the same moment
        return Decision(SAVE, None, claim.keeping_content())
    if is_ready(pod) or not facts.claim_saved:
        return Decision(WAIT, report, after_s=_SEEN_S)
    return take_down(facts, claim, report, now)
