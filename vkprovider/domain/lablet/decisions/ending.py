"""The end of a lablet: take the lab down in CML's order, then write what the Pod's owner waits for."""

from typing import Final

from vkprovider.api import labs
from vkprovider.api.messages import Fault, Notice
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.facts import Decision, Facts, Report, phase_of
from vkprovider.domain.lablet.lifecycle import State, allowed
from vkprovider.domain.lablet.memory import Presence
from vkprovider.domain.lablet.steps import (
    FORGET,
    SAVE,
    WAIT,
    ArchiveSession,
    ConfirmGone,
    DeleteLab,
    DeletePod,
    Extract,
    Release,
    Search,
    Stop,
    Wipe,
)
from vkprovider.domain.session.delivery import Session
from vkprovider.settings.cluster import LabletSettings

_STOP_AGAIN_S: Final = 30.0
_SOON_S: Final = 0.5
_EXTRACT_TRIES: Final = 5
"""How often a failed archiving of what a learner leaves is tried again before the end goes on without it."""


def finish(facts: Facts, phase: str, reason: str, message: str) -> Decision:
    """Begin to end a lablet whose Pod stays: the claim records the outcome before anything is taken down."""
    if facts.claim is None:
        state = State.TERMINATED if phase == "Succeeded" else State.FAILED
        if not allowed(facts.memory.state, state):  # claim and lab were both lost
            stopping = Report(State.STOPPING, phase=phase_of(facts), waiting=Fault("CleaningUp", message))
            return Decision(WAIT, stopping, after_s=_SOON_S)
        return Decision(WAIT, Report(state, phase=phase, terminal=Fault(reason, message)))
    changed = facts.claim.ended(phase, reason, message)
    report = Report(State.STOPPING, phase=phase_of(facts), waiting=Fault("CleaningUp", message))
    event = Notice("Warning" if phase == "Failed" else "Normal", reason, message)
    return Decision(SAVE, report, changed, events=(event,))


def _cleaning(facts: Facts, text: str) -> Report | None:
    if facts.pod is None or facts.pod.terminal:
        return None
    return Report(State.STOPPING, phase=phase_of(facts), waiting=Fault("CleaningUp", text), devices=facts.devices)


def extract_due(facts: Facts, claim: Claim, limits: LabletSettings) -> bool:
    """Return whether the devices' configurations are to be archived before a stop: they may be a learner's work."""
    if not limits.extract_on_stop or facts.extracted or not claim.ready_at:
        return False
    return any(device.state == labs.BOOTED for device in facts.devices)


def extraction(facts: Facts, claim: Claim, kind: type[Extract]) -> Extract:
    """Return the step that archives the devices' configurations; after a few failures it does without some."""
    insist = facts.memory.failures < _EXTRACT_TRIES
    return kind(claim, facts.devices, claim.bound_to or facts.inputs.username, insist)


def end(facts: Facts, now: float, limits: LabletSettings) -> Decision:
    """Take the lab down in CML's order; the Pod's end is written when the lab is known to be absent.

    The session is archived first, so that no learner logs in any more; if that fails, the lab is removed all the same,
    and the end waits for the session.
    """
    pod, claim = facts.pod, facts.claim
    if claim is None:
        return _gone(facts)
    if pod is None and not facts.gone_confirmed:
        return Decision(ConfirmGone(claim))
    if (session := _live_session(claim)) is not None and not facts.delivery.archive_failed:
        return Decision(ArchiveSession(claim, session), _cleaning(facts, "the session is being archived"))
    if not claim.lab_id and facts.memory.searched:
        return _gone(facts)
    if facts.silent:
        text = f"{facts.silent}; the lab is removed as soon as the worker answers"
        return Decision(WAIT, _cleaning(facts, text), events=(Notice("Warning", "WorkerUnreachable", text),))
    report = _cleaning(facts, f"lab {claim.title} is being removed")
    if not claim.lab_id:
        return Decision(Search(claim), report)
    if facts.presence is Presence.UNKNOWN:
        return Decision(WAIT, report, observe=True)
    if facts.presence is Presence.ABSENT:
        return _gone(facts)
    states = {device.state for device in facts.devices}
    if states & labs.ACTIVE or states - labs.KNOWN:
        if extract_due(facts, claim, limits):
            return Decision(extraction(facts, claim, Extract), report)
        return stop(facts, claim, report, now)
    return Decision(Wipe(claim) if labs.STOPPED in states else DeleteLab(claim), report)


def _live_session(claim: Claim) -> Session | None:
    """Return the session that exists, or may exist, and is not archived; None if there is none."""
    session = claim.session
    return session if session is not None and not session.archived_at else None


def stop(facts: Facts, claim: Claim, report: Report | None, now: float) -> Decision:
    """Stop the lab, or wait for an earlier stop; one that has not stopped every device in time is sent again."""
    left = facts.memory.stop_sent_at + _STOP_AGAIN_S - now if facts.memory.stop_sent_at else 0.0
    if left > 0:
        return Decision(WAIT, report, observe=True, after_s=left)
    return Decision(Stop(claim), report, observe=True)


def _gone(facts: Facts) -> Decision:
    """Write the end: there is no lab (any more)."""
    pod, claim = facts.pod, facts.claim
    if claim is not None and (session := _live_session(claim)) is not None:
        return Decision(
            ArchiveSession(claim, session), _cleaning(facts, "the lab is gone; the session is being archived")
        )
    if pod is None:
        return Decision(Release(claim) if claim is not None else FORGET)
    if claim is not None and claim.outcome and not pod.terminal:
        if not facts.claim_saved:
            return Decision(WAIT)
        if claim.lab_id:
            return Decision(SAVE, None, claim.without_lab())
        state = State.TERMINATED if claim.outcome == "Succeeded" else State.FAILED
        return Decision(
            WAIT, Report(state, phase=claim.outcome, terminal=Fault(claim.outcome_reason, claim.outcome_message))
        )
    if pod.metadata.deletion_timestamp is None:
        return Decision(Release(claim) if claim is not None else WAIT)
    if pod.metadata.finalizers and not pod.terminal:
        return Decision(WAIT, Report(State.FAILED, phase="Failed", terminal=Fault("Deleted", "deleted before its end")))
    if pod.metadata.finalizers and claim is not None:
        return Decision(Release(claim))  # another controller may hold the Pod for long; its lab and ports are free
    if facts.memory.delete_sent:
        return Decision(WAIT)
    return Decision(DeletePod(pod))
