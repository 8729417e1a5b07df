"""A lab that has booted: its learner works, a lent lablet is given back, new content is taken up."""

from typing import Final

from vkprovider.lablet import names, observations
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.lablet.standing import is_ready
from vkprovider.labs.pure.claims.claim import Wish
from vkprovider.labs.pure.claims.document import rest_left_s
from vkprovider.labs.pure.lablet.decisions import living
from vkprovider.labs.pure.lablet.decisions.exposed import Ports, ports
from vkprovider.labs.pure.lablet.decisions.living import (
    PATCHED_S,
    Living,
    instantiating,
    learner_of,
    not_ready,
    renewing,
    state_of,
    until_saved,
)
from vkprovider.labs.pure.lablet.decisions.session import await_access, via, warm, without_access
from vkprovider.labs.pure.lablet.decisions.takedown import again_or_kept, labels, take_down
from vkprovider.labs.pure.lablet.devicework import work_of
from vkprovider.labs.pure.lablet.facts import Decision, Report
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.lablet.steps import (
    SAVE,
    WAIT,
    ArchiveSession,
    ChangeDevice,
    ClearLearner,
    Provision,
    Renew,
    ReturnToPool,
    Start,
    Step,
)
from vkprovider.labs.pure.session.delivery import Session, client_key
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.messages import Notice

_LOOK_AGAIN_S: Final = 5.0
"""How soon to look again for an LDS with free capacity; no event says when there is one."""


@ports(Ports.LENT)
def while_serving(lablet: Living) -> Decision:
    """Make the session, then keep the lablet Ready.

    A lab whose devices are all booted: its learner gets a session, and the lablet is Ready.
    """
    return _provision(lablet) or _keep(lablet)


def _provision(lablet: Living) -> Decision | None:
    """Make the session; None if there is nothing to do."""
    facts, claim = lablet.facts, lablet.claim
    delivery, session, username = facts.delivery, claim.session, learner_of(facts, claim)
    if not delivery.wanted or claim.lent_back:
        return None
    if session is not None:
        if session.ready_at:
            return None
        if (wait := await_access(lablet)) is not None:
            return wait
        first_request = facts.memory.unasked == session.key
        report, events = _provisioning(lablet, session), without_access(facts)
        if not facts.claim_saved:
            return Decision(WAIT, report, events=events, awaits_claim=True)
        return Decision(Provision(claim, session, first_request, via(facts)), report, events=events)
    if not username:
        return None  # warm
    if (wait := await_access(lablet)) is not None:
        return wait
    if delivery.refusal is not None:
        reason, message = delivery.refusal.reason, delivery.refusal.message
        event = Notice("Warning", reason, message)
        return Decision(WAIT, instantiating(facts, reason, message), after_s=_LOOK_AGAIN_S, events=(event,))
    session = Session(
        deployment=delivery.deployment,
        key=client_key(claim.pod_uid, claim.sessions + 1),
        username=username,
        slot_start=(start := facts.inputs.slot_start or facts.now_unix),
        slot_end=facts.inputs.slot_end or start + delivery.slot_s,
    )
    return Decision(SAVE, _provisioning(lablet, session), claim.requesting(session))


def _provisioning(lablet: Living, session: Session) -> Report:
    text = f"a session for {session.username} is being made at LDS deployment {session.deployment}"
    return warm(lablet) or instantiating(lablet.facts, Progress.PROVISIONING_SESSION, text)


def _keep(lablet: Living) -> Decision:
    """Record that the lablet is Ready, and do what waits for that."""
    facts, claim, stable_s = lablet.facts, lablet.claim, lablet.limits.stable_s
    report = Report(state_of(claim), phase="Running", devices=facts.devices)
    is_new = bool(claim.afresh or claim.lent_back)
    began = max(claim.last_at, claim.started_at)
    if not claim.ready_at or began > claim.ready_at:
        number = len(facts.devices)
        text = f"all {number} devices booted" if number != 1 else "its device booted"
        event = Notice("Normal", Happened.RECOVERED if claim.starts_again else Happened.READY, text)
        changed = claim.ready(max(facts.now_unix, began))  # a clock that is set back must not undo it for ever
        return Decision(SAVE, None if is_new and not claim.ready_at else report, changed, events=(event,))
    if is_new and not facts.claim_saved:  # a crash must not lose `ready_at`
        return until_saved()
    if claim.lent_back:
        rest = rest_left_s(claim.rest_until, now_unix=facts.now_unix, rest_s=lablet.limits.port_rest_s)
        if rest:
            return Decision(WAIT, report, after_s=rest)  # a mux may lead its last learner here a little longer
        return _back_in_pool(lablet, report)
    if facts.inputs.lent_by and not learner_of(facts, claim):  # assigned, and taken back before anyone had it
        return Decision(ReturnToPool(lablet.pod, facts.inputs.lent_by), report, after_s=PATCHED_S)
    if (renewal := _renew(lablet)) is not None:
        return renewal
    if not claim.recoveries or not facts.memory.ready_since:
        return Decision(WAIT, report, after_s=stable_s if claim.recoveries else None)
    left = facts.memory.ready_since + stable_s - lablet.now
    return Decision(WAIT, report, after_s=left) if left > 0 else Decision(SAVE, report, claim.stable())


def _back_in_pool(lablet: Living, report: Report) -> Decision:
    """Set a warm lablet's pool label again; one with a username had its label and was assigned at once."""
    inputs, claim = lablet.facts.inputs, lablet.claim
    if inputs.pool == claim.lent_back or inputs.username:
        return Decision(SAVE, report, claim.back_in_pool())
    return Decision(ReturnToPool(lablet.pod, claim.lent_back), report, after_s=PATCHED_S)


def _renew(lablet: Living) -> Decision | None:
    """Begin to replace the lab by one of new content, if the lablet is free and its turn has come; else None."""
    facts, inputs, claim = lablet.facts, lablet.facts.inputs, lablet.claim
    if not facts.renewal or facts.renewal == claim.digest or not inputs.pool:
        return None
    if claim.bound_to or inputs.username or inputs.lent_by or inputs.desired is not None:
        return None
    report = renewing(facts)
    text = report.waiting.message if report.waiting is not None else ""
    event = Notice("Normal", Progress.RENEWING_CONTENT, f"version {claim.version} is replaced by the current one")
    return Decision(
        SAVE, report, claim.renewing(text, facts.now_unix), retry_at=0.0, forgets_starts=True, events=(event,)
    )


@ports(Ports.LENT)
def while_changing(lablet: Living) -> Decision:
    """Take up what is asked of single devices, and do it step by step; the lablet stays as it is shown.

    A lab of which single devices are stopped, wiped or started on request, while the others run.
    """
    facts, claim = lablet.facts, lablet.claim
    work = work_of(facts.inputs, claim, facts.devices, facts.memory.held_acts(lablet.now))
    if work is None:
        return Decision(WAIT)
    if work.device is None or work.act is None:
        events = tuple(Notice("Normal", Happened.DEVICE_REQUESTED, act.told(label)) for label, act in work.taken)
        return Decision(SAVE, claim=work.claim, events=events)
    return Decision(ChangeDevice(claim, work.device, work.act), claim=work.claim)


@ports(Ports.WITHDRAWN)
def while_returning(lablet: Living) -> Decision:
    """Archive the session, clear the learner, then let the lab be wiped.

    A lent lablet whose learner's work is collected and graded: nothing of the learner stays, and it is warm again.
    """
    facts, claim, session = lablet.facts, lablet.claim, lablet.claim.session
    if not facts.claim_saved:
        return Decision(WAIT, awaits_claim=True)
    report = living.returning(facts, claim)
    if session is not None and not session.archived_at:
        return Decision(ArchiveSession(claim, session), report)
    if names.OF_LEARNER & lablet.pod.metadata.annotations.keys():  # also without a username, which somebody removed
        return Decision(ClearLearner(lablet.pod), after_s=PATCHED_S)  # a report would name the learner again
    graded = " and graded" if claim.verdict is not None else ""
    note = (
        f"the learner's work was collected{graded} ({claim.closing_reason}); the lab is wiped, and the lablet goes "
        f"back to its pool {claim.lent_by} for the next learner"
    )
    event = Notice("Normal", Happened.BACK_TO_POOL, note)
    return Decision(SAVE, report, claim.handed_back(), retry_at=0.0, forgets_starts=True, events=(event,))


_SEEN_S: Final = 1.0
"""How soon to look whether the watch shows the Pod not Ready; the echo of an own write wakes no lablet."""


@ports(Ports.WITHDRAWN)
def while_renewing(lablet: Living) -> Decision:
    """Take the lab of the old content down, then take up the new content.

    A warm lablet takes up new content: its lab goes, and one of the new content takes its place. The Pod stays.

        Ready → shown not Ready, claim saved → stop → wipe → delete → new content and ports in the claim → import

    The lab is touched only when the Pod is seen not Ready and without a learner: `kubectl lablet assign` gives nobody a
    lablet that is not Ready, so that one which is assigned at the same moment is seen, and kept as it is.
    """
    facts, claim, report = lablet.facts, lablet.claim, living.renewing(lablet.facts)
    if facts.presence is Presence.ABSENT:
        return Decision(Renew(lablet.pod, claim), report)
    if claim.bound_to:  # assigned at the same moment
        return Decision(SAVE, None, claim.keeping_content())
    if is_ready(lablet.pod) or not facts.claim_saved:
        return Decision(WAIT, report, after_s=_SEEN_S, awaits_claim=not facts.claim_saved)
    return take_down(facts, claim, report, lablet.now)


_OFF: Final = frozenset({observations.STOPPED, observations.DEFINED})


@ports(Ports.KEPT)
def while_crashed(lablet: Living) -> Decision:
    """Start what stopped again after a pause, a few times.

    A lab of which devices have stopped: they are started again, without a wipe, for a learner may have worked in it.
    """
    lablet = lablet.recalled
    facts, claim, limits, devices = lablet.facts, lablet.claim, lablet.limits, lablet.facts.judged
    what = f"{labels(devices, _OFF)} stopped on the worker"
    if claim.recoveries >= limits.recoveries_max:
        kept = f"{what} and did not come back after {claim.recoveries} starts"
        return again_or_kept(lablet, Trouble.LAB_CRASHED, f"{what} while it booted", kept)
    if not facts.memory.retry_at:
        pause = delay_s(claim.recoveries, first_s=limits.start_retry_first_s, cap_s=limits.start_retry_cap_s)
        text = f"{what}; starting again without a wipe (number {claim.starts_again + 1})"
        event = Notice("Warning", Happened.BACK_OFF if claim.recoveries else Progress.RECOVERING, text)
        report = not_ready(claim, Progress.RECOVERING, text, devices)
        return Decision(WAIT, report, after_s=pause, retry_at=lablet.now + pause, events=(event,))
    if (left := facts.memory.retry_at - lablet.now) > 0:
        text = f"{what}; starting again in {left:.0f} s"
        return Decision(WAIT, not_ready(claim, Progress.RECOVERING, text, devices), after_s=left)
    stopped = tuple(sorted(device.label for device in devices if device.state in _OFF))
    report = not_ready(claim, Progress.RECOVERING, f"{what}; starting again", devices)
    changed = claim.continued(stopped, what, facts.now_unix)
    step: Step = Start(claim)
    if claim.wishes:  # a start of the lab would start what is to stay off
        changed, step = changed.wishing({**claim.wishes, **dict.fromkeys(stopped, Wish.START)}), SAVE
    return Decision(step, report, changed, retry_at=0.0, forgets_starts=True)
