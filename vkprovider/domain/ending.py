"""The end of a lablet: take the lab down in CML's order, then write what the Pod's owner waits for."""

from typing import Final

import msgspec

from vkprovider.api import labs
from vkprovider.domain.facts import Decision, Facts, Presence, Report, Step, phase_of
from vkprovider.domain.lifecycle import State

_STOP_AGAIN_S: Final = 30.0


def finish(facts: Facts, phase: str, reason: str, message: str) -> Decision:
    """Begin to end a lablet whose Pod stays: the outcome is remembered in the row before anything is taken down."""
    if facts.claim is None:
        state = State.TERMINATED if phase == "Succeeded" else State.FAILED
        return Decision(Step.NONE, Report(state, phase=phase, terminal=(reason, message)))
    changed = msgspec.structs.replace(
        facts.claim, outcome=phase, outcome_reason=reason, outcome_message=message, resetting=False
    )
    report = Report(State.STOPPING, phase=phase_of(facts), waiting=("CleaningUp", message))
    event = ("Warning" if phase == "Failed" else "Normal", reason, message)
    return Decision(Step.SAVE, report, changed, events=(event,))


def _cleaning(facts: Facts, text: str) -> Report | None:
    if facts.pod is None or facts.pod.terminal:
        return None
    return Report(State.STOPPING, phase=phase_of(facts), waiting=("CleaningUp", text), nodes=facts.nodes)


def end(facts: Facts, now: float) -> Decision:
    """Take the lab down in CML's order; the Pod's end is written when the lab is known to be absent."""
    pod, claim = facts.pod, facts.claim
    if claim is None:
        return _gone(facts)
    if pod is None and not facts.gone_confirmed:
        return Decision(Step.CONFIRM_GONE)
    if not claim.lab_id and facts.searched:
        return _gone(facts)
    if facts.silent:
        text = f"{facts.silent}; the lab is removed as soon as the worker answers"
        return Decision(Step.NONE, _cleaning(facts, text), events=(("Warning", "WorkerUnreachable", text),))
    report = _cleaning(facts, f"lab {claim.title} is being removed")
    if not claim.lab_id:
        return Decision(Step.SEARCH, report)
    if facts.presence is Presence.UNKNOWN:
        return Decision(Step.NONE, report, observe=True)
    if facts.presence is Presence.ABSENT:
        return _gone(facts)
    states = {node.state for node in facts.nodes}
    if states & labs.ACTIVE or states - labs.KNOWN:
        return stop(facts, report, now)
    return Decision(Step.WIPE if labs.STOPPED in states else Step.DELETE_LAB, report)


def stop(facts: Facts, report: Report | None, now: float) -> Decision:
    """Stop the lab, or wait for an earlier stop; one that has not stopped every device in time is sent again."""
    left = facts.stop_sent_at + _STOP_AGAIN_S - now if facts.stop_sent_at else 0.0
    if left > 0:
        return Decision(Step.NONE, report, observe=True, after_s=left)
    return Decision(Step.STOP, report, observe=True)


def _gone(facts: Facts) -> Decision:
    """Write the end: there is no lab (any more)."""
    pod, claim = facts.pod, facts.claim
    if pod is None:
        return Decision(Step.RELEASE if claim is not None else Step.FORGET)
    if claim is not None and claim.outcome and not pod.terminal:
        if not facts.claim_saved:
            return Decision(Step.NONE)
        if claim.lab_id:
            return Decision(Step.SAVE, None, msgspec.structs.replace(claim, lab_id=""))
        state = State.TERMINATED if claim.outcome == "Succeeded" else State.FAILED
        return Decision(
            Step.NONE, Report(state, phase=claim.outcome, terminal=(claim.outcome_reason, claim.outcome_message))
        )
    if pod.metadata.deletion_timestamp is None:
        return Decision(Step.RELEASE if claim is not None else Step.NONE)
    if pod.metadata.finalizers and not pod.terminal:
        return Decision(Step.NONE, Report(State.FAILED, phase="Failed", terminal=("Deleted", "deleted before its end")))
    if facts.delete_sent:
        return Decision(Step.NONE)
    return Decision(Step.DELETE_POD)
