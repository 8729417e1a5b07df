"""From a Pod to a booted lab: the claim, the import, the notes, the start of its devices."""

from typing import Final

import msgspec

from vkprovider.lablet import observations
from vkprovider.lablet.inputs import tag_of
from vkprovider.lablet.reasons import Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet.boots import (
    LABELS_MAX,
    NO_BOOTS,
    BootLimit,
    Boots,
    Way,
    ends_at,
    limit_of,
    named,
    noted,
    told,
)
from vkprovider.labs.pure.lablet.decisions.exposed import Ports, ports
from vkprovider.labs.pure.lablet.decisions.living import (
    Living,
    begun_afresh,
    instantiating,
    not_ready,
    pending,
    renewing,
    to_import_for,
    until_saved,
)
from vkprovider.labs.pure.lablet.decisions.takedown import again, again_or_kept, back_off
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report, boots_of, phase_of
from vkprovider.labs.pure.lablet.identity import NOTE_S, shown_lab
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, Import, MakeClaim, NoteLearner, Search, Start
from vkprovider.platform.messages import Fault, Notice, count, listed
from vkprovider.platform.objects import Pod
from vkprovider.platform.reasons import Reason

_COUNTS: Final = (
    "nothing of this pod runs here: this node runs lablets only. It counts as available, so that its DaemonSet goes on "
    "with updates; to keep it away, add nodeSelector {kubernetes.io/os: linux} to the DaemonSet's template"
)


def await_claims(facts: Facts) -> Decision:
    """Begin, end and forget nothing before it is known whether the lablet has a lab; its claim may be lost."""
    if facts.pod is None or facts.pod.terminal:
        return Decision(WAIT)
    if phase_of(facts) == "Running":
        return Decision(WAIT, Report(State.READY, phase="Running", silent=facts.silent) if facts.silent else None)
    if facts.silent:
        return Decision(WAIT, pending(Trouble.WORKER_UNREACHABLE, facts.silent))
    text = "the worker's claims were lost: its labs are examined before a new one begins"
    return Decision(WAIT, pending(Progress.WAITING_FOR_CLAIMS, text, state=facts.memory.state or State.SCHEDULED))


def make(facts: Facts, pod: Pod) -> Decision:
    """Make the claim, unless the Pod may not begin."""
    refusal = facts.refusal
    if refusal is None:
        return Decision(MakeClaim(pod), _claiming(facts))
    if refusal.reason is Trouble.NOT_A_LABLET and _counts(pod):
        report = pending(Trouble.NOT_A_LABLET, _COUNTS, state=State.SCHEDULED)
        notice = Notice("Warning", Trouble.NOT_A_LABLET, _COUNTS)
        return Decision(WAIT, msgspec.structs.replace(report, counts=True), events=(notice,))
    event = Notice("Warning", refusal.reason, refusal.message)
    if _is_stray(pod):
        return Decision(WAIT, Report(State.FAILED, phase="Failed", terminal=refusal.fault), events=(event,))
    report = pending(refusal.reason, refusal.message, state=State.SCHEDULED)
    return Decision(WAIT, report, events=() if refusal.reason.passing else (event,))


@ports(Ports.WITHDRAWN)
def while_claiming(lablet: Living) -> Decision:
    """Wait until a claim without a lab is written.

    Before a lablet has a claim that the API server knows: nothing else may begin.
    """
    facts, claim = lablet.facts, lablet.claim
    if claim.renews:
        return until_saved(renewing(facts))
    if claim.lent_back or claim.last_reason.asked_for:
        return until_saved(begun_afresh(facts, claim))
    if claim.starts_again:
        report = pending(Trouble.CRASH_LOOP_BACK_OFF, f"{claim.last_message}; the lab is imported again")
        return until_saved(report)
    return Decision(WAIT, _claiming(facts), awaits_claim=True)


def _is_stray(pod: Pod) -> bool:
    """Return whether a Pod can never become a lablet and no controller would replace it.

    Like a Pod that a kubelet does not admit, it ends, so that the scheduler no longer counts what it requests. A Pod of
    a controller stays Pending: its successor would come here again, for ever.
    """
    return not pod.spec.runtime_class_name and not any(owner.controller for owner in pod.metadata.owner_references)


def _counts(pod: Pod) -> bool:
    """Return whether a Pod is one of a DaemonSet that came here because it tolerates everything.

    Were it not Ready, its DaemonSet would count it among the unavailable ones for ever, and update no other node. One
    that is meant as a lablet has its definition as image. One that has an address would get traffic if it were Ready.
    """
    owned = any(owner.controller and owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)
    class_name = pod.spec.runtime_class_name
    meant = bool(class_name) and any(tag_of(container.image)[0] == class_name for container in pod.spec.containers)
    return owned and not meant and not pod.status.pod_ip


def _claiming(facts: Facts) -> Report:
    fault = facts.unsaved_because or Fault(Progress.ALLOCATING_PORTS, "the worker's claims are being written")
    return pending(fault.reason, fault.message)


@ports(Ports.WITHDRAWN)
def while_fresh(lablet: Living) -> Decision:
    """Import the lab, or forget the one that is gone.

    A claim without a lab: the lab is searched for, where one may be, and imported.
    """
    facts, claim = lablet.facts, lablet.claim
    if claim.lab_id:
        if claim.resetting:  # a wipe could not give it its devices back
            return Decision(SAVE, None, claim.lost_lab(facts.worker_time))
        text = "the lab was deleted on the worker by another client"
        return again(lablet, claim.lost_lab(facts.worker_time), Trouble.LAB_LOST, text)
    if (wait := back_off(lablet)) is not None:
        return wait
    report = pending(Progress.IMPORTING_LAB, f"lab {claim.title} is being imported")
    if (left_s := facts.memory.search_in_s(lablet.now)) > 0:
        return _await_a_person(lablet, left_s)
    if not facts.memory.searched:
        return Decision(Search(claim, shown_lab(lablet.pod)), report)
    if _needs_note(facts, claim):
        return Decision(SAVE, report, claim.asking(facts.worker_time))
    return Decision(Import(claim, lablet.pod, to_import_for(facts, claim)), report)


def _needs_note(facts: Facts, claim: Claim) -> bool:
    """Return whether the worker's time is to be noted before the import, by which its lab is found again."""
    if not facts.worker_time:
        return False
    return claim.asked_at == facts.memory.spent or abs(facts.worker_time - claim.asked_at) > NOTE_S


def _await_a_person(lablet: Living, left_s: float) -> Decision:
    """Import nothing while labs are there of which one may be the lablet's, and the others copies of it."""
    text = (
        f"the worker has {' and '.join(lablet.facts.memory.matches)}: one may be this lablet's lab, another one may be "
        "a copy that somebody saved. Nothing is imported and all of them stay: remove what is a copy, with the command "
        "in the event UnclaimedLab of the CMLWorker; or delete the pod, its successor gets a new lab"
    )
    event = Notice("Warning", Trouble.NEEDS_ATTENTION, text)
    return Decision(WAIT, instantiating(lablet.facts, Trouble.NEEDS_ATTENTION, text), after_s=left_s, events=(event,))


_START_AGAIN_S: Final = 30.0
"""A start that has moved no device is sent again after so many seconds."""


@ports(Ports.WITHDRAWN)
def while_imported(lablet: Living) -> Decision:
    """Start the lab, or wait for an earlier start; one that has moved no device in time is sent again.

    A lab of which no device has been started. After a silence, or by another replica, the start is sent once more, and
    that one has a while to show itself, however late it is.
    """
    if (wait := back_off(lablet)) is not None:
        return wait
    facts, claim, now, timeout_s = lablet.facts, lablet.claim, lablet.now, lablet.limits.sign_s
    report = pending(Progress.STARTING_NODES, f"starting {count(len(facts.devices), 'device')}", devices=facts.devices)
    if facts.memory.start_sent_at and facts.memory.starting_since:
        sent_at = facts.memory.start_sent_at
        due = max(facts.memory.starting_since + timeout_s, sent_at + min(timeout_s, _START_AGAIN_S))
        if now >= due:
            if facts.observed_at < due:
                return Decision(WAIT, report, observe=True)
            text = f"CML accepted the start, but moved no device within {timeout_s:.0f} s"
            return again(lablet, claim, Trouble.LAB_START_TIMEOUT, text)
        pause = sent_at + _START_AGAIN_S - now
        if pause > 0:
            return Decision(WAIT, report, after_s=min(due - now, pause), observe=True)
    return Decision(Start(claim), report, claim if claim.started_at else claim.started(facts.now_unix), retry_at=0.0)


@ports(Ports.LENT)
def while_unnoted(lablet: Living) -> Decision:
    """Write learner and session into the notes, once the stored claim names the learner.

    The lab's notes are behind the claim, from which a lost claim would be rebuilt: they are written first.
    """
    facts, claim = lablet.facts, lablet.claim
    stored = facts.claim_saved and facts.claim is not None and facts.claim.learner == claim.learner
    if stored or not claim.learner:
        return Decision(NoteLearner(claim))
    return until_saved()


@ports(Ports.LENT)
def while_booting(lablet: Living) -> Decision:
    """Wait until all devices are booted, each for as long as it may take.

    A lab that boots: it is booted when all of its devices are, never when CML calls the lab `STARTED`.
    """
    lablet = lablet.recalled
    facts, claim, devices, now = lablet.facts, lablet.claim, lablet.facts.devices, lablet.now
    boots = boots_of(facts, now) or NO_BOOTS
    limit = limit_of(lablet.limits.start_timeout_s, facts.patience, devices, definition=claim.definition)
    ends = {label: ends_at(boot, limit.seconds) for label, boot in boots.items()}
    if over := [label for label, end in ends.items() if end <= now and boots[label].way is not Way.START]:
        if facts.observed_at < min(ends[label] for label in over):
            return Decision(WAIT, observe=True)  # this replica or the machine was paused: observe before judging
        text = _too_late({label: boots[label] for label in over}, limit)
        return again_or_kept(lablet, Trouble.LAB_START_TIMEOUT, text)
    queued = {label: boot for label, boot in boots.items() if boot.way is Way.QUEUE}
    if queued:
        reason: Reason = Trouble.LAB_QUEUED
        text = f"CML has queued {named(queued, facts.now_unix)} until CPU, memory and node licences are free"
    else:
        reason, booted = Progress.STARTING_NODES, sum(device.state == observations.BOOTED for device in devices)
        waiting = told(boots, facts.patience, limit.seconds, facts.now_unix)
        text = f"{booted} of {count(len(devices), 'device')} booted, waiting for {waiting}"
    report = not_ready(claim, reason, text, devices)
    if not claim.started_at:  # lost in a crash; without it this start would never time out
        return Decision(SAVE, report, claim.started(facts.now_unix), observe=True)
    if (later := noted(boots, claim, now)) != claim.later:
        return Decision(SAVE, report, claim.noting(later), observe=True)
    return Decision(WAIT, report, after_s=max(0.0, min(ends.values(), default=limit.seconds) - now), observe=True)


def _too_late(boots: Boots, limit: BootLimit) -> str:
    """Return which devices did not boot in time, and how to give them more of it."""
    text = f"not booted {limit.seconds:.0f} s after the start: {listed(sorted(boots), LABELS_MAX)}"
    if any(boot.way is Way.QUEUE for boot in boots.values()):
        text += "; CML has them queued: the worker lacks CPU, memory or node licences"
    return f"{text}; to wait longer, {limit.raise_by}"
