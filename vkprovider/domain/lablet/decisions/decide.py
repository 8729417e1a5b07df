"""The next step of one lablet, and what to report meanwhile: the heart of the bridge.

`decide` reads all facts about one Pod UID and returns one step. The step is executed, the facts change, and `decide`
runs again; so any step may be repeated, interrupted, or continued by another replica. The order is

    claim → (search) → import → start → wait → READY      and, at the end,      stop → wipe → delete → release

CML wants stop before wipe and wipe before delete. A lab is booted when all of its devices are, never when CML calls
the lab `STARTED`.
"""

from vkprovider.domain.lablet.decisions.delivering import slot_end
from vkprovider.domain.lablet.decisions.ending import end
from vkprovider.domain.lablet.decisions.running import run, wait_for_claims
from vkprovider.domain.lablet.decisions.takedown import finish
from vkprovider.domain.lablet.facts import Decision, Facts, phase_of
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.lablet.steps import WAIT
from vkprovider.settings.cluster import LabletSettings


def decide(facts: Facts, now: float, limits: LabletSettings) -> Decision:
    """Return the next step of a lablet.

    Args:
        facts: What is known of the lablet.
        now: Monotonic seconds, the clock of the times in `facts`.
        limits: Settings.
    """
    pod, claim = facts.pod, facts.claim
    if claim is None and facts.unexamined and (facts.refusal is None or phase_of(facts) == "Running"):
        return wait_for_claims(facts)
    if pod is None or pod.metadata.deletion_timestamp is not None:
        return end(facts, now, limits)
    if claim is not None and claim.outcome:
        return end(facts, now, limits) if facts.claim_saved else Decision(WAIT)
    if pod.terminal:
        return end(facts, now, limits) if claim is not None else Decision(WAIT)
    if facts.inputs.desired is State.TERMINATED:
        return finish(facts, "Succeeded", "Completed", "ended on request")
    if facts.memory.deadline_at and now >= facts.memory.deadline_at:
        text = f"the lablet ran longer than its activeDeadlineSeconds of {pod.spec.active_deadline_seconds}"
        return finish(facts, "Failed", "DeadlineExceeded", text)
    decision = run(facts, pod, now, limits)
    ends = [facts.memory.deadline_at - now] if facts.memory.deadline_at else []
    if claim is not None and not claim.closing_reason and (over := slot_end(facts, claim)):
        ends.append(over - facts.now_unix)
    # `run` saw an end that has passed; if it waits, not for the time.
    return decision.no_later_than(min((left_s for left_s in ends if left_s > 0), default=None))
