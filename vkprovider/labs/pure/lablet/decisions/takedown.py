"""Taking a lab down in CML's order, stop → wipe → delete, and beginning the end of a lablet."""

from typing import Final

from vkprovider.lablet import labs
from vkprovider.lablet.labs import DeviceFact
from vkprovider.lablet.lifecycle import State, allowed
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.decisions.learner import had_by_nobody
from vkprovider.labs.pure.lablet.decisions.reports import stopping
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, DeleteLab, Extract, Stop, Wipe
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.messages import Fault, Notice
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
    if not limits.extract_on_stop or facts.extracted or not claim.ready_at or had_by_nobody(facts, claim):
        return False
    return any(device.state == labs.BOOTED for device in facts.devices)


def extraction(facts: Facts, claim: Claim, kind: type[Extract]) -> Extract:
    """Return the step that archives the devices' configurations; after a few failures it does without some."""
    insist = facts.memory.failures < _EXTRACT_TRIES
    return kind(claim, facts.devices, claim.bound_to or facts.inputs.username, insist)


def is_on(devices: tuple[DeviceFact, ...]) -> bool:
    """Return whether a lab must be stopped before it is wiped: a device runs, or is in an unknown state."""
    states = {device.state for device in devices}
    return bool(states & labs.ACTIVE or states - labs.KNOWN)


def take_down(
    facts: Facts, claim: Claim, report: Report | None, now: float, limits: LabletSettings | None = None
) -> Decision:
    """Take the next step from a lab that may run to none: stop, wipe, delete.

    Args:
        facts: Of the lablet; its lab is on the worker.
        claim: Names the lab.
        report: What to report meanwhile.
        now: Monotonic seconds.
        limits: Say whether configurations are archived before the stop; None for a lab in which nobody has worked, or
            whose configurations are archived.
    """
    if is_on(facts.devices):
        return switch_off(facts, claim, report, now, limits)
    if any(device.state == labs.STOPPED for device in facts.devices):
        return Decision(Wipe(claim), report, observe=True)
    return Decision(DeleteLab(claim), report)


def switch_off(
    facts: Facts, claim: Claim, report: Report | None, now: float, limits: LabletSettings | None
) -> Decision:
    """Stop the lab, or wait for an earlier stop; one that has not stopped every device in time is sent again."""
    if limits is not None and extract_due(facts, claim, limits):
        return Decision(extraction(facts, claim, Extract), report)
    left = facts.memory.stop_sent_at + _STOP_AGAIN_S - now if facts.memory.stop_sent_at else 0.0
    if left > 0:
        return Decision(WAIT, report, observe=True, after_s=left)
    return Decision(Stop(claim), report, observe=True)
