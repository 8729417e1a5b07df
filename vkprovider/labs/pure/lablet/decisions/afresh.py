"""Starting a lablet afresh after a failure, or keeping its lab for a person; a learner's work is never destroyed."""

from vkprovider.lablet.labs import DeviceFact
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.boots import LABELS_MAX
from vkprovider.labs.pure.lablet.decisions.living import Living
from vkprovider.labs.pure.lablet.decisions.reports import instantiating, not_ready
from vkprovider.labs.pure.lablet.decisions.takedown import finish
from vkprovider.labs.pure.lablet.facts import Decision, Facts
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.messages import Notice
from vkprovider.platform.reasons import Reason
from vkprovider.platform.wording import listed


def labels(devices: tuple[DeviceFact, ...], states: set[str] | frozenset[str]) -> str:
    """Return the labels of the devices in one of `states`, as many as fit in a message."""
    return listed(sorted(device.label for device in devices if device.state in states), LABELS_MAX)


def worked(facts: Facts, claim: Claim) -> bool:
    """Return whether a learner may have worked in the lab, so that it must not be destroyed without a request.

    A session that was requested and has no id may have been made, and started, before a crash lost its id.
    """
    if facts.delivery.wanted:
        return claim.session is not None and (claim.session.started_at > 0 or not claim.session.id)
    return claim.ready_at > 0


def again_or_kept(lablet: Living, reason: Reason, text: str, kept_because: str = "") -> Decision:
    """Start afresh, unless a learner may have worked in the lab.

    Args:
        lablet: Whose lab failed.
        reason: Why it starts afresh, and
        text: in words.
        kept_because: Why the lab is kept instead; `text` by default.
    """
    if worked(lablet.facts, lablet.claim):
        return _needs_attention(lablet, kept_because or text)
    return again(lablet, lablet.claim, reason, text)


def again(lablet: Living, claim: Claim, reason: Reason, text: str) -> Decision:
    """Start afresh, or end, as the Pod's restartPolicy says.

    Args:
        lablet: Whose lab failed.
        claim: The lablet's, with what the decision has changed of it.
        reason: Why, and
        text: in words.
    """
    facts, limits = lablet.facts, lablet.limits
    if lablet.pod.spec.restart_policy == "Never":
        return finish(facts, "Failed", reason, text, claim)
    calm = facts.now_unix - claim.last_at > limits.stable_s
    pause = delay_s(0 if calm else claim.afresh, first_s=limits.start_retry_first_s, cap_s=limits.start_retry_cap_s)
    changed = claim.restarted(reason, text, facts.now_unix)
    again = f" (start again number {changed.starts_again})" if claim.last_reason == reason else ""
    event = Notice("Warning", reason, f"{text}{again}")  # of equal ones only the first would be emitted
    report = instantiating(facts, Trouble.CRASH_LOOP_BACK_OFF, text)
    return Decision(SAVE, report, changed, retry_at=lablet.now + pause, forgets_starts=True, events=(event,))


def back_off(lablet: Living) -> Decision | None:
    """Wait for the time of the next start; None if it has come."""
    facts, claim = lablet.facts, lablet.claim
    if lablet.now >= facts.memory.retry_at:
        return None
    reason = Trouble.CRASH_LOOP_BACK_OFF if claim.restarts else Progress.RECOVERING
    text = f"back-off {claim.last_reason or 'after a failure'}: starting again"
    return Decision(WAIT, instantiating(facts, reason, text), after_s=facts.memory.retry_at - lablet.now)


def _needs_attention(lablet: Living, what: str) -> Decision:
    """Keep the lab as it is until a person decides."""
    text = (
        f"{what}; lab {lablet.claim.title} is kept as it is, because a learner may have worked in it: "
        "look at it on the worker, wipe it with kubectl lablet reset, or delete the pod"
    )
    event = Notice("Warning", Trouble.NEEDS_ATTENTION, text)
    return Decision(WAIT, not_ready(lablet.claim, Trouble.NEEDS_ATTENTION, text, lablet.facts.devices), events=(event,))
