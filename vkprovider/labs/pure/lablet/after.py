"""What decisions and steps leave behind in memory and claim, and which Events they call for.

    (memory, facts) ──decide──▶ decision ──decided──▶ (memory, claim, notices)        before the step
                                          ──begun──▶ memory                            right before its first call
                       step, outcome ──after / failed──▶ (memory, claim, notices)      after it

All of it is pure; the controllers' turn applies the results and is the only writer of memory and claim.
"""

from typing import Any, Final

import msgspec

from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.lablet.reasons import Happened, Trouble
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import outcomes, steps
from vkprovider.labs.pure.lablet.decisions.stage import Stage, stage_of
from vkprovider.labs.pure.lablet.exposing import EXPOSE_AGAIN_S
from vkprovider.labs.pure.lablet.facts import Decision, Facts, boots_of
from vkprovider.labs.pure.lablet.memory import Memory, deletion_of, unclear_since
from vkprovider.labs.pure.lablet.notices import Emitted, archived, ignored, imported_with, news, pod_news
from vkprovider.labs.pure.lablet.outcomes import Circumstances, Failure, Outcome
from vkprovider.labs.pure.lablet.steps import Step, System
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.errors import Forbidden, Invalid, NotFound, Unavailable
from vkprovider.platform.messages import Notice
from vkprovider.platform.times import iso

_replace = msgspec.structs.replace
_TOLD_AGAIN_S: Final = 30.0
"""How soon CML is told again to stop or wipe a device that has not moved."""


class After(msgspec.Struct, frozen=True, gc=False):
    """What is left behind.

    Attributes:
        claim: As it should be; None if the lablet has none (any more).
        lazy: Nothing waits until a changed claim is persisted.
        notices: Events to emit on the Pod.
    """

    memory: Memory
    claim: Claim | None
    lazy: bool = True
    notices: tuple[Notice, ...] = ()


def decided(memory: Memory, facts: Facts, decision: Decision, *, worker: str, now: float) -> After:
    """Record a decision, before its step is executed."""
    claim, report = decision.claim or facts.claim, decision.report
    changes: dict[str, Any] = {
        "refused": facts.refusal is not None,
        "boots": boots_of(facts, now),
        "unclear_since": unclear_since(memory, facts.presence, facts.devices, silent=bool(facts.silent), now=now),
    }
    if (session := chosen_session(facts, decision)) is not None:
        changes["unasked"] = session.key
    if decision.claim is not None and not decision.claim.lab_id:
        changes |= {"absent": False, "assumed": None}
    if memory.extracted and stage_of(facts, now) is Stage.SERVING:  # a stop, or reset, was taken back
        changes["extracted"] = False
    if facts.silent:  # a start may have been lost with what CML's host was doing
        changes["start_sent_at"] = 0.0
    if decision.retry_at is not None:
        changes["retry_at"] = decision.retry_at
    if facts.claim is not None and claim is not None and claim.bound_to != facts.claim.bound_to:
        changes["access_since"] = 0.0  # the next learner's session waits by itself
    if decision.awaits_access:
        changes["access_since"] = changes.get("access_since", memory.access_since) or now
    if decision.announces_end:
        changes["announced_end"] = decision.announces_end
    if decision.forgets_starts:
        changes |= {"starting_since": 0.0, "start_sent_at": 0.0}
    if report is not None:
        changes["state"] = report.state
        if not report.ready:
            changes["ready_since"] = 0.0
        elif not memory.ready_since:
            changes |= {"ready_since": now, "retry_at": 0.0, "starting_since": 0.0, "warned": None}
    memory = _replace(memory, **changes)
    emitted = pod_news(memory, facts, claim, worker, decision.events)
    memory = _remember(memory, emitted)
    return After(memory, claim, lazy=claim is None or not _is_awaited(facts.claim, claim), notices=emitted.notices)


def _remember(memory: Memory, emitted: Emitted) -> Memory:
    return _replace(
        memory,
        warned=emitted.warned,
        input_faults=emitted.input_faults,
        image_changed=emitted.image_changed,
        killing=emitted.killing,
    )


def chosen_session(facts: Facts, decision: Decision) -> Session | None:
    """Return the session that a decision chooses a deployment for; None if it chooses none."""
    before = facts.claim.session if facts.claim is not None else None
    return decision.claim.session if decision.claim is not None and before is None else None


def _is_awaited(before: Claim | None, claim: Claim) -> bool:
    """Return whether the claim is written at once: at an end, before a session is made, a lab imported or wiped."""
    if before is not None and _what_waits(before) != _what_waits(claim):
        return True
    if claim.exposed and (before is None or before.exposed != claim.exposed):
        return True
    if claim.renews and (before is None or not before.renews):
        return True
    return bool(claim.outcome or claim.closing_reason) or (claim.session is not None and not claim.session.ready_at)


def _what_waits(claim: Claim) -> tuple[object, ...]:
    """Return the fields of a claim each change of which something waits for."""
    return (claim.learner, claim.asked_at, claim.wishes, claim.reimports, claim.resetting)


def begun(memory: Memory, step: Step) -> Memory:
    """Record that a step begins: what must hold even if its answer never arrives."""
    match step:
        case steps.Import():
            return _replace(memory, searched=False)
        case steps.Start():
            return _replace(memory, stop_sent_at=0.0, extracted=False)
        case steps.Wipe():
            return _replace(memory, stop_sent_at=0.0, start_sent_at=0.0, starting_since=0.0)
        case steps.Provision():
            return _replace(memory, unasked="")
        case _:
            return memory


def after(memory: Memory, claim: Claim | None, step: Step, outcome: Outcome, place: Circumstances) -> After:
    """Record a step that did not fail.

    Args:
        memory: As it is now.
        claim: As it is now; it may have changed since the step was decided.
        step: What was done.
        outcome: What came of it.
        place: Where and when.
    """
    if not isinstance(step, steps.Search):  # it only leads up to an import, and that may be what fails
        memory = _replace(memory, failures=0, fault=None)
    if isinstance(outcome, outcomes.Abandoned):
        return After(memory, claim)
    match step, outcome:
        case steps.MakeClaim(pod=pod), outcomes.Claimed(claim=made):
            # A Pod that has begun may have lost an earlier claim that named a lab.
            memory = _replace(memory, searched=pod.status.start_time is None)
            return After(memory, made, lazy=False, notices=ignored(pod))
        case steps.Renew(), outcomes.Claimed(claim=renewed):
            if renewed.digest == renewed.renews:  # the replaced content is the current one again
                renewed = renewed.keeping_content()
            return After(_replace(memory, absent=False, assumed=None, searched=True), renewed, lazy=False)
        case steps.Release(), _:
            return After(memory, None)
        case steps.ConfirmGone(), _:
            return After(_replace(memory, gone_confirmed=True), claim)
        case steps.ConfirmDeletion(), _:
            return After(_replace(memory, delete_sent=True), claim)
        case steps.Expose(), _:
            return After(_replace(memory, expose_at=place.now + EXPOSE_AGAIN_S), claim)
        case steps.Withdraw(seen_uid=seen_uid, rest_s=rest_s), _:
            claim = claim.withdrawn(place.now_unix + rest_s) if claim is not None else None
            return After(_replace(memory, withdrawn=seen_uid), claim, lazy=False)
        case steps.RestoreUsername(), _:
            return After(_replace(memory, restored_at=place.now), claim, notices=(_restored(step, place),))
        case steps.Search(), outcomes.Adopted(claim=adopted, devices=devices):
            memory = _replace(memory, acted_at=place.now, assumed=devices, searched=True, matches=())
            note = f"found lab {adopted.title} on worker {place.worker}"
            if claim is not None:
                claim = claim.with_lab_of(adopted)
            return After(memory, claim, lazy=False, notices=(Notice("Normal", Happened.ADOPTED, note),))
        case steps.Search(), outcomes.Unsure(labs=labs):
            return After(_replace(memory, matches=labs, searched_at=place.now), claim)
        case steps.Search(claim=searched), _:
            return After(_replace(memory, searched=True, spent=searched.asked_at, matches=()), claim)
        case steps.NoteLearner(claim=noted), _:
            claim = claim.with_notes(noted.binding) if claim is not None else None
            return After(memory, claim, lazy=False)  # the request for the session waits for it
        case _, outcomes.Acted():
            return _acted(memory, claim, step, outcome, place)
        case _:
            return _delivered(memory, claim, step, outcome, place) if claim is not None else After(memory, claim)


def _restored(step: steps.RestoreUsername, place: Circumstances) -> Notice:
    name = place.pod.metadata.name if place.pod is not None else "POD"
    what = f"changed to {step.found!r}" if step.found else "removed or cannot be read"
    note = (
        f"the username was {what} and is {step.username!r} again: the session and the lab are that learner's until "
        f"their end; for the next learner, first end them with: kubectl lablet release {name}"
    )
    return Notice("Warning", Happened.USERNAME_RESTORED, note)


def _acted(memory: Memory, claim: Claim | None, step: Step, outcome: outcomes.Acted, place: Circumstances) -> After:
    """Record a step of the worker; what it leaves behind is assumed until it is observed."""
    notices: tuple[Notice, ...] = ()
    changes: dict[str, Any] = {"acted_at": place.now, "assumed": outcome.devices}
    if outcome.gone:
        changes["absent"] = True
    match step:
        case steps.Import(claim=imported):
            changes["searched"] = True
            text = f"Imported lab {imported.title} on worker {place.worker}"
            notices = (*outcome.notices, Notice("Normal", Happened.CREATED, text), *imported_with(outcome.warnings))
        case steps.Start(claim=started):
            since = memory.starting_since or place.now
            changes |= {"start_sent_at": place.now, "starting_since": since}
            notices = (Notice("Normal", Happened.STARTED, f"Started lab {started.title}"),)
        case steps.Stop():  # recorded only now: a refused stop is sent again soon
            changes |= {"stop_sent_at": place.now, "start_sent_at": 0.0}
        case steps.ChangeDevice(device=device, act=act) if act is not DeviceAct.START:  # the wish is another one then
            memory = memory.after_act(claim, device.label, act, place.now + _TOLD_AGAIN_S)
        case steps.DeleteLab():
            changes = {"absent": True}
        case _:
            pass
    if isinstance(step, steps.Import) and claim is not None:
        claim = claim.with_lab(
            outcome.lab_id, asked_at=step.claim.asked_at, learner=step.learner, noted=step.noted.binding
        )
    return After(_replace(memory, **changes), claim, lazy=not outcome.lab_id, notices=notices)


def _delivered(memory: Memory, claim: Claim, step: Step, outcome: Outcome, place: Circumstances) -> After:
    """Record a step of the session, of the archive or of the grader; an end waits for its claim."""
    notices: tuple[Notice, ...] = ()
    lazy = not (claim.closing_reason or claim.outcome)
    match outcome:
        case outcomes.Archived():
            memory, notices = _replace(memory, extracted=True), archived(step, outcome)
            if isinstance(step, steps.Collect):
                claim, lazy = claim.collected(place.now_unix), False
        case outcomes.Provisioned(session=session):
            memory = _replace(memory, access_since=0.0)
            claim = claim.with_session(session)
            where = f"{session.login_url or session.base_url} (LDS deployment {session.deployment})"
            notices = (Notice("Normal", Happened.SESSION_READY, f"{session.username} can log in at {where}"),)
        case outcomes.SessionArchived(problem=problem) if isinstance(step, steps.ArchiveSession):
            memory = _replace(memory, archive_failed=False)
            claim = claim.with_session(_replace(step.session, archived_at=place.now_unix))
            if problem:
                notices = (Notice("Warning", Trouble.LDS_DEPLOYMENT_UNKNOWN, problem),)
            elif step.session.id:
                notices = (
                    Notice("Normal", Happened.SESSION_ARCHIVED, f"the session of {step.session.username} is archived"),
                )
        case outcomes.Rescheduled() if isinstance(step, steps.Reschedule):
            memory, claim, notices = _rescheduled(memory, claim, step, outcome, place)
        case outcomes.Graded(verdict=verdict):
            claim = claim.graded(verdict)
            passed = "passed" if verdict.passed else "not passed"
            notices = (Notice("Normal", Happened.GRADED, f"{passed}, {verdict.message}"),)
        case _:
            pass
    return After(memory, claim, lazy=lazy, notices=notices)


def _rescheduled(
    memory: Memory, claim: Claim, step: steps.Reschedule, outcome: outcomes.Rescheduled, place: Circumstances
) -> tuple[Memory, Claim, tuple[Notice, ...]]:
    """Record that the LDS was asked for another end of a session; a final refusal is not asked for again."""
    memory, fault = _replace(memory, rescheduled_at=place.now), outcome.fault
    if claim.session is not None and (fault is None or outcome.final):
        claim = claim.with_session(_replace(claim.session, slot_end=step.slot_end))
    if fault is None:
        note = f"the session of {step.session.username} now ends at {iso(step.slot_end)}"
        return memory, claim, (Notice("Normal", Happened.TIMESLOT_CHANGED, note),)
    emitted = news(memory, place.pod, [Notice("Warning", fault.reason, fault.message)])
    return _remember(memory, emitted), claim, emitted.notices


# ------------------------------------------------------------------------------------------ after a failure


def failed(memory: Memory, claim: Claim | None, step: Step, failure: Failure, place: Circumstances) -> After:
    """Record a step that failed; arguments as for `after`."""
    lazy, error = True, failure.error
    unsure = isinstance(error, Unavailable) and not failure.not_done
    changes: dict[str, Any] = {
        "failures": memory.failures + 1,
        "fault": failure.fault,
        "hold_until": place.now + failure.pause_s if step.holds else 0.0,
        "held_at_deletion": deletion_of(place.pod),
    }
    match step:
        case steps.Import():  # without an error nothing was sent; without an answer the lab may exist
            changes["searched"] = not isinstance(error, Unavailable)
        case steps.Start(claim=before) if claim is not None:
            claim = before  # a start that was refused, or not even sent, does not count as an attempt
            if not unsure or not before.started_at:  # a lab that boots all the same gets it from the next observation
                changes["starting_since"] = 0.0
        case steps.ChangeDevice(claim=before, device=device, act=act):
            claim = before if claim is not None else None
            memory = memory.after_act(before, device.label, act, place.now + failure.pause_s)
        case steps.RestoreUsername():
            changes["restored_at"] = place.now + failure.pause_s
        case steps.Expose():
            changes["expose_at"] = place.now + failure.pause_s
        case steps.ArchiveSession() if error is not None:
            changes["archive_failed"] = True
        case steps.Provision(session=session, first_request=True) if error is not None and failure.not_done:
            changes["unasked"] = session.key
            elsewhere = not isinstance(error, Invalid | Forbidden)  # every deployment would answer these
            if elsewhere and claim is not None and claim.session is not None and not claim.session.id:
                claim, lazy = claim.with_session(None), False
        case _:
            pass
    deleted = isinstance(error, NotFound) and System.WORKER in step.calls  # by another client
    if deleted or (unsure and step.changes_lab):
        changes |= {"acted_at": place.now, "assumed": None}  # observe before doing anything else
    memory = _replace(memory, **changes)
    if memory.failures > 1 and failure.fault.reason.silence:
        return After(memory, claim, lazy=lazy)
    emitted = news(memory, place.pod, [Notice("Warning", failure.fault.reason, failure.fault.message)])
    notices = emitted.notices
    if failure.event:
        notices = tuple(_replace(notice, reason=failure.event) for notice in notices)
    return After(_remember(memory, emitted), claim, lazy=lazy, notices=notices)
