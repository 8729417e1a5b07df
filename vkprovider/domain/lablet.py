"""What to do next for one lablet, and what to report: the heart of the bridge.

`decide` looks at everything that is known of one Pod UID and names one step. The step is carried out, the facts change,
and it is asked again; so any step may be repeated, interrupted, or continued by another replica. The order is

    claim → (search) → import → start → wait → READY      and, at the end,      stop → wipe → delete → release

CML wants stop before wipe and wipe before delete. A lab is booted when all of its devices are, never when CML calls
the lab `STARTED`.
"""

from typing import Final

import msgspec

from vkprovider.api import names
from vkprovider.domain.ending import end, finish
from vkprovider.domain.facts import Decision, Facts, Limits, Step
from vkprovider.domain.lifecycle import State
from vkprovider.domain.running import run

ANNOTATION_DESIRED: Final = f"{names.GROUP}/desired-state"


def decide(facts: Facts, now: float, limits: Limits) -> Decision:
    """Name the next step for a lablet.

    Args:
        facts: What is known of it.
        now: Monotonic seconds, the clock of the times in `facts`.
        limits: Settings.
    """
    pod, claim = facts.pod, facts.claim
    if pod is None or pod.metadata.deletion_timestamp is not None:
        return end(facts, now)
    if claim is not None and claim.outcome:
        return end(facts, now) if facts.claim_saved else Decision(Step.NONE)
    if pod.terminal:
        return end(facts, now) if claim is not None else Decision(Step.NONE)
    if pod.metadata.annotations.get(ANNOTATION_DESIRED, "").upper() == State.TERMINATED:
        return finish(facts, "Succeeded", "Completed", "ended on request")
    if facts.deadline_at and now >= facts.deadline_at:
        text = f"the lablet ran longer than its activeDeadlineSeconds of {pod.spec.active_deadline_seconds}"
        return finish(facts, "Failed", "DeadlineExceeded", text)
    decision = run(facts, now, limits)
    if facts.deadline_at and (decision.after_s is None or decision.after_s > facts.deadline_at - now):
        return msgspec.structs.replace(decision, after_s=max(0.0, facts.deadline_at - now))
    return decision
