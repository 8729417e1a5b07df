"""The end of a lablet: take the lab down in CML's order, then write what the Pod's owner waits for."""

from vkprovider.api.messages import Fault, Notice
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet.decisions.takedown import stopping, take_down
from vkprovider.domain.lablet.facts import Decision, Facts, Report
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.domain.lablet.memory import Presence
from vkprovider.domain.lablet.steps import FORGET, SAVE, WAIT, ArchiveSession, ConfirmGone, DeletePod, Release, Search
from vkprovider.domain.session.delivery import Session
from vkprovider.settings.cluster import LabletSettings


def _cleaning(facts: Facts, text: str) -> Report | None:
    if facts.pod is None or facts.pod.terminal:
        return None
    return stopping(facts, text)


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
    return take_down(facts, claim, report, now, limits)


def _live_session(claim: Claim) -> Session | None:
    """Return the session that exists, or may exist, and is not archived; None if there is none."""
    session = claim.session
    return session if session is not None and not session.archived_at else None


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
