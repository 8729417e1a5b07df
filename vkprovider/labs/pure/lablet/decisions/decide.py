"""The next step of one lablet, and what to report meanwhile: the heart of the bridge.

`decide` reads all facts about one Pod UID, finds the lablet's stage, and asks the function of that stage for one step.
The step is executed, the facts change, and `decide` runs again; so any step may be repeated, interrupted, or continued
by another replica.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from vkprovider.labs.pure.lablet.decisions.exposed import Ports, StageConduct, around
from vkprovider.labs.pure.lablet.decisions.living import Living, bound, restore, restore_in_s
from vkprovider.labs.pure.lablet.decisions.session import announce_end, follow, reschedule, slot_end
from vkprovider.labs.pure.lablet.decisions.stage import Stage, stage_of
from vkprovider.labs.pure.lablet.decisions.stages import close, pause, serve, start, unsure
from vkprovider.labs.pure.lablet.decisions.stepfault import fault_report
from vkprovider.labs.pure.lablet.facts import UNSURE_S, Decision, Facts
from vkprovider.labs.settings.cluster import LabletSettings

_LIVING: Final[Mapping[Stage, StageConduct]] = {
    Stage.CLAIMING: start.while_claiming,
    Stage.UNSEEN: unsure.while_unseen,
    Stage.FRESH: start.while_fresh,
    Stage.IMPORTED: start.while_imported,
    Stage.BOOTING: start.while_booting,
    Stage.UNCLEAR: unsure.while_unclear,
    Stage.CHANGING: serve.while_changing,
    Stage.CRASHED: serve.while_crashed,
    Stage.UNNOTED: start.while_unnoted,
    Stage.SERVING: serve.while_serving,
    Stage.PAUSED: pause.while_paused,
    Stage.WIPING: pause.while_wiping,
    Stage.RENEWING: serve.while_renewing,
    Stage.PORTLESS: unsure.while_portless,
    Stage.CLOSING: close.while_closing,
    Stage.RETURNING: serve.while_returning,
}
"""What decides for a lablet that has a claim and whose Pod stays; each function says what becomes of its ports."""


def decide(facts: Facts, now: float, limits: LabletSettings) -> Decision:
    """Return the next step of a lablet.

    Args:
        facts: What is known of the lablet.
        now: Monotonic seconds, the clock of the times in `facts`.
        limits: Settings.
    """
    decision, claim = _decide(facts, now, limits), facts.claim
    ends = claim is not None and (claim.closing_reason or claim.outcome)  # what serves goes on as it is shown
    if ends and decision.awaits_claim and decision.report is None and facts.unsaved_because is not None:
        return msgspec.structs.replace(decision, report=fault_report(facts, facts.unsaved_because))
    return decision


def _decide(facts: Facts, now: float, limits: LabletSettings) -> Decision:
    pod, claim, stage = facts.pod, facts.claim, stage_of(facts, now)
    if stage is Stage.UNEXAMINED:
        return start.await_claims(facts)
    if stage is Stage.ENDING or pod is None:
        decision = close.while_ending(facts, now, limits)
        if claim is None:
            return decision
        return around(facts, claim, Ports.WITHDRAWN, decision, now=now, limits=limits)
    ends = facts.memory.acts_in_s(now)
    if facts.memory.deadline_at:
        ends.append(_due_s(facts, facts.memory.deadline_at - now))
    if claim is None:
        decision = start.make(facts, pod)
    else:
        lablet = Living(facts, pod, bound(facts, claim), now, limits)
        decision = announce_end(lablet, _live(lablet, stage))
        decision = around(facts, lablet.claim, _LIVING[stage].ports, decision, now=now, limits=limits)
        if not claim.closing_reason and (over := slot_end(facts, claim)):
            ends.append(_due_s(facts, over - facts.now_unix))
    ahead = [left_s for left_s in ends if left_s > 0]  # an end that has passed was seen; nothing waits for it
    return decision.no_later_than(min(ahead)) if ahead else decision


def _due_s(facts: Facts, left_s: float) -> float:
    """Return in how many seconds to look at an end: by a clock that is not certain none has come."""
    return left_s if facts.sure else max(left_s, UNSURE_S)


def _live(lablet: Living, stage: Stage) -> Decision:
    """Ask the stage, unless the username is to be put back or the session has news."""
    facts, claim = lablet.facts, lablet.claim
    restore_s = restore_in_s(facts, claim, lablet.now)
    if restore_s == 0:
        decision = restore(facts, lablet.pod, claim)
    elif stage is not Stage.CLAIMING and (news := follow(facts, claim)) is not None:
        decision = news
    else:
        decision = reschedule(lablet, _LIVING[stage].decide(lablet))
    if decision.claim is None and claim is not facts.claim:
        decision = msgspec.structs.replace(decision, claim=claim)
    return decision.no_later_than(restore_s or None)
