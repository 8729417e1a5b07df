"""The end of a learner's time, and of a lablet: the work is collected, the lab is taken down."""

from vkprovider.lablet.reasons import Happened, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.decisions.exposed import Ports, ports
from vkprovider.labs.pure.lablet.decisions.living import Living, had_by_nobody, stopping
from vkprovider.labs.pure.lablet.decisions.session import closing_of
from vkprovider.labs.pure.lablet.decisions.takedown import extraction, finish, take_down
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report, phase_of
from vkprovider.labs.pure.lablet.identity import shown_lab
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.lablet.steps import (
    FORGET,
    SAVE,
    WAIT,
    ArchiveSession,
    Collect,
    ConfirmDeletion,
    ConfirmGone,
    Grade,
    Release,
    Search,
)
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.messages import Fault, Notice
from vkprovider.platform.reasons import Reason


@ports(Ports.WITHDRAWN)
def while_closing(lablet: Living) -> Decision:
    """Record that the time is over, collect, grade, end.

    The learner's time is over: the work is collected, then graded if there is a grader, and then the lablet ends.

    The verdict is its exit code. A lablet that was lent by a pool does not end: it is returned.
    """
    lablet = lablet.recalled
    facts, claim = lablet.facts, lablet.claim
    if not claim.closing_reason and (why := closing_of(facts, claim)) is not None:
        announced = claim.session is not None and claim.session.ended_at  # when its event came
        events = () if announced else (Notice("Normal", *why),)
        changed = claim.closing(why[0], lent_by=facts.inputs.lent_by)
        return Decision(SAVE, _during(facts, State.COLLECTING), changed, events=events)
    if not facts.claim_saved:
        return Decision(WAIT, awaits_claim=True)
    if not claim.lent_by and had_by_nobody(facts, claim):
        return finish(facts, *_outcome(claim, collected=False))
    if not claim.collected_at:
        return extraction(facts, claim, Collect, _during(facts, State.COLLECTING))
    if facts.delivery.grader and claim.verdict is None:
        return Decision(Grade(claim), _during(facts, State.GRADING))
    return finish(facts, *_outcome(claim, collected=True))


def _during(facts: Facts, state: State) -> Report:
    """Report that what the learner leaves is being collected or graded; running containers stay running."""
    if phase_of(facts) == "Running":
        return Report(state, phase="Running", devices=facts.devices)
    return stopping(facts, "what the learner leaves is collected")


def _outcome(claim: Claim, *, collected: bool) -> tuple[str, Reason, str]:
    """Return phase, reason and message of the end."""
    if claim.verdict is not None:
        phase, reason = ("Succeeded", Happened.PASSED) if claim.verdict.passed else ("Failed", Trouble.NOT_PASSED)
        return phase, reason, claim.verdict.message
    if not claim.ready_at:
        return "Failed", claim.closing_reason, "the lablet was never ready"
    if not collected:
        return "Succeeded", Happened.COMPLETED, f"nobody had it, nothing is collected ({claim.closing_reason})"
    return "Succeeded", Happened.COMPLETED, f"collected, no grader is configured ({claim.closing_reason})"


def while_ending(facts: Facts, now: float, limits: LabletSettings) -> Decision:
    """End the lablet; of one whose Pod stays, the claim has the outcome first.

    The end of a lablet: the lab is taken down, then what the Pod's owner waits for is written.
    """
    pod, claim = facts.pod, facts.claim
    if pod is None or pod.metadata.deletion_timestamp is not None:
        return _end(facts, now, limits)
    if claim is not None and claim.outcome:
        return _end(facts, now, limits) if facts.claim_saved else Decision(WAIT, awaits_claim=True)
    if pod.terminal:
        return _end(facts, now, limits) if claim is not None else Decision(WAIT)
    if facts.inputs.desired is State.TERMINATED:
        return finish(facts, "Succeeded", Happened.COMPLETED, "ended on request")
    text = f"the lablet ran longer than its activeDeadlineSeconds of {pod.spec.active_deadline_seconds}"
    return finish(facts, "Failed", Trouble.DEADLINE_EXCEEDED, text)


def _end(facts: Facts, now: float, limits: LabletSettings) -> Decision:
    """Take the lab down; the Pod's end is written when the lab is known to be absent.

    The session is archived first, so that no learner logs in any more; if that fails, the lab is removed all the same,
    and the end waits for the session.
    """
    pod, claim = facts.pod, facts.claim
    if claim is None:
        return _gone(facts)
    if pod is None and not facts.gone_confirmed:
        return Decision(ConfirmGone(claim))
    if (session := _live_session(facts)) is not None and not facts.delivery.archive_failed:
        return Decision(ArchiveSession(claim, session), _cleaning(facts, "the session is being archived"))
    if not claim.lab_id and not _may_have_lab(facts, claim, now):
        return _gone(facts)
    if facts.silent:
        text = f"{facts.silent}; the lab is removed as soon as the worker answers"
        return Decision(WAIT, _cleaning(facts, text), events=(Notice("Warning", Trouble.WORKER_UNREACHABLE, text),))
    report = _cleaning(facts, f"lab {claim.title} is being removed")
    if not claim.lab_id:
        return Decision(Search(claim, shown_lab(pod)), report)
    if facts.presence is Presence.UNKNOWN:
        return Decision(WAIT, report, observe=True)
    if facts.presence is Presence.ABSENT:
        return _gone(facts)
    return take_down(facts, claim, report, now, limits)


def _may_have_lab(facts: Facts, claim: Claim, now: float) -> bool:
    """Return whether a search may find the lab of a claim that names none, and be certain that it is no copy."""
    if facts.memory.searched or facts.memory.search_in_s(now) > 0:
        return False
    return bool(claim.asked_at or shown_lab(facts.pod))


def _live_session(facts: Facts) -> Session | None:
    """Return the session that exists, or may exist, and is not archived; None if there is none."""
    session = facts.claim.session if facts.claim is not None else None
    return session if session is not None and not session.archived_at else None


def _cleaning(facts: Facts, text: str) -> Report | None:
    return stopping(facts, text) if facts.pod is not None and not facts.pod.terminal else None


def _gone(facts: Facts) -> Decision:
    """Write the end: there is no lab (any more)."""
    pod, claim = facts.pod, facts.claim
    if claim is not None and (session := _live_session(facts)) is not None:
        report = _cleaning(facts, "the lab is gone; the session is being archived")
        return Decision(ArchiveSession(claim, session), report)
    if pod is None:
        return Decision(Release(claim) if claim is not None else FORGET)
    if claim is not None and claim.outcome and not pod.terminal:
        if not facts.claim_saved:
            return Decision(WAIT, awaits_claim=True)
        if claim.lab_id:
            return Decision(SAVE, None, claim.without_lab())
        state = State.TERMINATED if claim.outcome == "Succeeded" else State.FAILED
        final = Fault(claim.outcome_reason, claim.outcome_message)
        return Decision(WAIT, Report(state, phase=claim.outcome, terminal=final))
    if pod.metadata.deletion_timestamp is None:
        return Decision(Release(claim) if claim is not None else WAIT)
    if pod.metadata.finalizers and not pod.terminal:
        return Decision(
            WAIT, Report(State.FAILED, phase="Failed", terminal=Fault(Happened.DELETED, "deleted before its end"))
        )
    if pod.metadata.finalizers and claim is not None:
        return Decision(Release(claim))  # another controller may hold the Pod for long; its lab and ports are free
    return Decision(WAIT) if facts.memory.delete_sent else Decision(ConfirmDeletion(pod))
