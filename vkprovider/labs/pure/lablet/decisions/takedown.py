"""Taking a lab down in CML's order, stop → wipe → delete, and starting it afresh after a failure."""

from typing import Final

from vkprovider.lablet import observations
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.lablet.standing import State, allowed
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.boots import LABELS_MAX
from vkprovider.labs.pure.lablet.decisions.living import (
    Living,
    had_by_nobody,
    instantiating,
    not_ready,
    stopping,
    was_shown_ready,
)
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, DeleteLab, Extract, Stop, Wipe
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.messages import Fault, Notice, listed
from vkprovider.platform.reasons import Reason

_STOP_AGAIN_S: Final = 30.0
_SOON_S: Final = 0.5
_EXTRACT_TRIES: Final = 5
"""How often a failed archiving of what a learner leaves is tried again before the end goes on without it."""


def finish(facts: Facts, phase: str, reason: Reason, message: str, claim: Claim | None = None) -> Decision:
    """Begin to end a lablet whose Pod stays: the claim records the outcome before anything is taken down.

    Args:
        facts: Of the lablet.
        phase: `Succeeded` or `Failed`.
        reason: Why, and
        message: in words.
        claim: With what the decision has changed of it; the lablet's without.
    """
    claim = claim or facts.claim
    if claim is None:
        state = State.TERMINATED if phase == "Succeeded" else State.FAILED
        if not allowed(facts.memory.state, state):  # claim and lab were both lost
            return Decision(WAIT, stopping(facts, message), after_s=_SOON_S)
        return Decision(WAIT, Report(state, phase=phase, terminal=Fault(reason, message)))
    event = Notice("Warning" if phase == "Failed" else "Normal", reason, message)
    return Decision(SAVE, stopping(facts, message), claim.ended(phase, reason, message), events=(event,))


def extract_due(facts: Facts, claim: Claim, limits: LabletSettings) -> bool:
    """Return whether the devices' configurations are to be archived before a stop: they may be a learner's work."""
    if not limits.extract_on_stop or facts.extracted or had_by_nobody(facts, claim):
        return False
    if not claim.ready_at and not was_shown_ready(facts, claim):
        return False
    return any(device.state == observations.BOOTED for device in facts.devices)


def extraction(facts: Facts, claim: Claim, kind: type[Extract], report: Report | None) -> Decision:
    """Archive the devices' configurations; after a few failures do without some.

    The claim notes that first, and nothing may stop the lab before it is stored: devices that run are extracted again
    after a crash, those that are off are not.
    """
    changed = claim.extracting()
    return Decision(_extract(facts, changed, kind), report, changed)


def _extract(facts: Facts, claim: Claim, kind: type[Extract]) -> Extract:
    insist = facts.memory.failures < _EXTRACT_TRIES
    return kind(claim, facts.devices, claim.bound_to or facts.inputs.username, insist)


def is_on(devices: tuple[DeviceFact, ...]) -> bool:
    """Return whether a lab must be stopped before it is wiped: a device runs, or is in an unknown state."""
    states = {device.state for device in devices}
    return bool(states & observations.ACTIVE or states - observations.KNOWN)


def take_down(
    facts: Facts, claim: Claim, report: Report | None, now: float, limits: LabletSettings | None = None
) -> Decision:
    """Take the next step from a lab that may run to none: stop, wipe, delete.

    Args:
        facts: Of the lablet; its lab is on the worker.
        claim: Names the lab.
        report: What to report meanwhile.
        now: Monotonic seconds.
        limits: Of a lablet that ends: say whether configurations are archived before the stop. None for a lab in which
            nobody has worked, or whose configurations are archived.
    """
    if is_on(facts.devices):
        if limits is not None and extract_due(facts, claim, limits):
            return Decision(_extract(facts, claim, Extract), report)
        return switch_off(facts, claim, report, now)
    if any(device.state == observations.STOPPED for device in facts.devices):
        return Decision(Wipe(claim), report, observe=True)
    return Decision(DeleteLab(claim), report)


def switch_off(facts: Facts, claim: Claim, report: Report | None, now: float) -> Decision:
    """Stop the lab, or wait for an earlier stop; one that has not stopped every device in time is sent again."""
    left = facts.memory.stop_sent_at + _STOP_AGAIN_S - now if facts.memory.stop_sent_at else 0.0
    if left > 0:
        return Decision(WAIT, report, observe=True, after_s=left)
    return Decision(Stop(claim), report, observe=True)


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
