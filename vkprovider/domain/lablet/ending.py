"""The end of a lablet: take the lab down in CML's order, then write what the Pod's owner waits for."""

from typing import Final

import msgspec

from vkprovider.api import labs
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.facts import Decision, Facts, Limits, Presence, Report, Step, phase_of
from vkprovider.domain.lablet.lifecycle import State

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
    return Report(State.STOPPING, phase=phase_of(facts), waiting=("CleaningUp", text), devices=facts.devices)


def extract_due(facts: Facts, claim: Claim, limits: Limits) -> bool:
    """Tell whether the devices' configurations are to be kept before a stop: they may be somebody's work."""
    if not limits.extract_on_stop or facts.extracted or not claim.ready_at:
        return False
    return any(device.state == labs.BOOTED for device in facts.devices)


def end(facts: Facts, now: float, limits: Limits) -> Decision:
    """Take the lab down in CML's order; the Pod's end is written when the lab is known to be absent.

    The session is archived first, so that nobody logs in any more; if that fails, the lab goes all the same, and the
    end waits for the session.
    """
    pod, claim = facts.pod, facts.claim
    if claim is None:
        return _gone(facts)
    if pod is None and not facts.gone_confirmed:
        return Decision(Step.CONFIRM_GONE)
    if _has_session(claim) and not facts.delivery.archive_failed:
        return Decision(Step.ARCHIVE, _cleaning(facts, "the session is being archived"))
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
    states = {device.state for device in facts.devices}
    if states & labs.ACTIVE or states - labs.KNOWN:
        if extract_due(facts, claim, limits):
            return Decision(Step.EXTRACT, report)
        return stop(facts, report, now)
    return Decision(Step.WIPE if labs.STOPPED in states else Step.DELETE_LAB, report)


def _has_session(claim: Claim) -> bool:
    """Tell whether there is, or may be, a session that is not archived."""
    return claim.session is not None and not claim.session.archived


def stop(facts: Facts, report: Report | None, now: float) -> Decision:
    """Stop the lab, or wait for an earlier stop; one that has not stopped every device in time is sent again."""
    left = facts.stop_sent_at + _STOP_AGAIN_S - now if facts.stop_sent_at else 0.0
    if left > 0:
        return Decision(Step.NONE, report, observe=True, after_s=left)
    return Decision(Step.STOP, report, observe=True)


def _gone(facts: Facts) -> Decision:
    """Write the end: there is no lab (any more)."""
    pod, claim = facts.pod, facts.claim
    if claim is not None and _has_session(claim):
        return Decision(Step.ARCHIVE, _cleaning(facts, "the lab is gone; the session is being archived"))
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
