"""How a lablet stands: its states and which may follow which, and in plain words.

A state is what is *reported*; what happens next is decided from facts (`lablet.decide`), never from the state that was
reported last. A change that is not in the table is refused and counted, because it shows a fault in a decision.

Two words of the platform are never reported: PENDING is a Pod without a worker (`kubectl lablet list -o json` shows
it), and ARCHIVED would last no time, because the session is archived before the lab goes.

The Pod's own state (`vkprovider.io/state`) says where the lab is; a reader wants to know about the learner. A lab that
is repaired while its learner works is INSTANTIATING there and "repairing" here.
"""

import re
from enum import StrEnum
from typing import Final, Protocol

from vkprovider.lablet import names
from vkprovider.lablet.reasons import WORKERS, Happened, Progress, Trouble
from vkprovider.lablet.standings import Standing
from vkprovider.platform.messages import plain
from vkprovider.platform.objects import Metadata, PodSpec, PodStatus
from vkprovider.platform.reasons import NO_REASON, Reason, reason_of
from vkprovider.platform.times import iso, unix


class State(StrEnum):
    """The states of a lablet, in the words of the platform."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    INSTANTIATING = "INSTANTIATING"
    READY = "READY"
    RUNNING = "RUNNING"
    COLLECTING = "COLLECTING"
    GRADING = "GRADING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    ARCHIVED = "ARCHIVED"
    TERMINATED = "TERMINATED"
    FAILED = "FAILED"


_S = State
ALLOWED: Final[dict[State, frozenset[State]]] = {
    _S.PENDING: frozenset({_S.SCHEDULED, _S.INSTANTIATING, _S.STOPPING, _S.TERMINATED, _S.FAILED}),
    _S.SCHEDULED: frozenset({_S.INSTANTIATING, _S.READY, _S.STOPPING, _S.TERMINATED, _S.FAILED}),
    _S.INSTANTIATING: frozenset({_S.READY, _S.RUNNING, _S.COLLECTING, _S.STOPPING, _S.STOPPED, _S.FAILED}),
    _S.READY: frozenset({_S.RUNNING, _S.INSTANTIATING, _S.COLLECTING, _S.STOPPING, _S.STOPPED, _S.FAILED}),
    _S.RUNNING: frozenset({_S.READY, _S.INSTANTIATING, _S.COLLECTING, _S.STOPPING, _S.STOPPED, _S.FAILED}),
    _S.COLLECTING: frozenset({_S.GRADING, _S.INSTANTIATING, _S.STOPPING, _S.FAILED}),
    _S.GRADING: frozenset({_S.READY, _S.INSTANTIATING, _S.STOPPING, _S.FAILED}),
    _S.STOPPING: frozenset({_S.STOPPED, _S.ARCHIVED, _S.TERMINATED, _S.FAILED}),
    _S.STOPPED: frozenset({_S.INSTANTIATING, _S.READY, _S.RUNNING, _S.COLLECTING, _S.STOPPING, _S.FAILED}),
    _S.ARCHIVED: frozenset({_S.TERMINATED, _S.FAILED}),
    _S.TERMINATED: frozenset(),
    _S.FAILED: frozenset(),
}
"""State: the states that may follow it.

READY goes back to INSTANTIATING when a lab is recovered, COLLECTING and GRADING when a pool gets its lablet back.
"""


def allowed(old: State | None, new: State) -> bool:
    """Return whether `new` may follow `old`; a lablet seen for the first time may be in any state."""
    return old is None or old is new or new in ALLOWED[old]


_SCORE: Final = re.compile(r"score (\d+(?:\.\d+)?) of ")
"""How the message of a verdict begins."""
_CLOSING: Final = frozenset({State.COLLECTING, State.GRADING, State.STOPPING, State.ARCHIVED})
_ENDS: Final = frozenset({State.COLLECTING, State.TERMINATED})
"""The states that end a learner's time when they are asked for."""
_REPAIRS: Final = frozenset(
    {
        Progress.RECOVERING,
        Trouble.CRASH_LOOP_BACK_OFF,
        Trouble.DEVICE_STOPPED,
        Trouble.LAB_CRASHED,
        Trouble.LAB_EMPTY,
        Trouble.LAB_LOST,
        Trouble.LAB_START_TIMEOUT,
        Trouble.UNKNOWN_STATE,
        Trouble.COMPUTE_DISCONNECTED,
    }
)
"""Reasons of a lab that was Ready, and that the provider repairs."""


class LabletObject(Protocol):
    """The Pod of a lablet, as any program reads it."""

    @property
    def metadata(self) -> Metadata:
        """Its labels, annotations and times count."""

    @property
    def spec(self) -> PodSpec:
        """Its Node and its deadline count."""

    @property
    def status(self) -> PodStatus:
        """All of it counts."""


def learner_in(pod: LabletObject) -> str:
    """Return the learner whose lablet it is, else the one who is to have it; "" for a warm lablet."""
    notes = pod.metadata.annotations
    return plain(notes.get(names.ANNOTATION_LEARNER, "") or notes.get(names.ANNOTATION_USERNAME, ""))


def passed_to(learner: str, now: str) -> str:
    """Return why nothing is done with a lablet that had another learner when it was asked for; "" if it still has.

    Args:
        learner: Who had it then; "" if it was free.
        now: Who has it now.
    """
    return "" if learner == now else f"is {f'that of {now}' if now else 'free'} now; nothing was done"


def is_ready(pod: LabletObject) -> bool:
    """Return whether a Pod is Ready."""
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def has_ended(pod: LabletObject) -> bool:
    """Return whether the phase of a Pod is final."""
    return pod.status.phase in {"Succeeded", "Failed"}


def why(pod: LabletObject) -> tuple[str, str]:
    """Return reason and message of why a lablet is not Ready."""
    for container in pod.status.container_statuses:
        for state in ("waiting", "terminated"):
            if state in container.state:
                return container.state[state].get("reason", ""), container.state[state].get("message", "")
    for condition in pod.status.conditions:
        if condition.type in {"Ready", "PodScheduled"} and condition.status == "False" and condition.message:
            return condition.reason, condition.message
    return "", ""


def state_of(pod: LabletObject) -> str:
    """Return the state that a lablet reports; PENDING before the first report."""
    return pod.metadata.annotations.get(names.ANNOTATION_STATE, "") or State.PENDING.value


def is_closing(pod: LabletObject) -> bool:
    """Return whether the learner's time with a lablet is over, or is asked to end; also while its end waits for others.

    A lablet that is wiped for its pool and named to somebody is that of the next learner, whom it does not report yet.
    """
    notes = pod.metadata.annotations
    if notes.get(names.ANNOTATION_DESIRED_STATE, "").upper() in _ENDS or state_of(pod) in _CLOSING:
        return True
    return names.ANNOTATION_LEARNER in notes and reason_of(why(pod)[0]) == Progress.RETURNING_TO_POOL


def end_of(pod: LabletObject) -> str:
    """Return when a lablet that has not ended ends, as Kubernetes writes a time; "" if nothing says that."""
    slot = pod.metadata.annotations.get(names.ANNOTATION_TIMESLOT_END, "") if learner_in(pod) else ""
    seconds, began = pod.spec.active_deadline_seconds, pod.status.start_time
    if has_ended(pod) or seconds is None or not began:
        return "" if has_ended(pod) else slot
    start, end = unix(began), unix(slot)
    deadline = start + seconds if start is not None else None
    known = [when for when in (deadline, end) if when is not None]
    return iso(int(min(known))) if known else ""


def standing_of(pod: LabletObject) -> tuple[Standing, str]:
    """Return how a lablet stands, and the learner's score; "" without one.

    Args:
        pod: Its labels, annotations and status count.
    """
    reason = reason_of(why(pod)[0])
    if has_ended(pod):
        return _ended(pod, reason)
    if pod.metadata.deletion_timestamp is not None:
        return Standing.ENDING, ""
    if reason in WORKERS or reason.silence:
        return Standing.UNREACHABLE, ""
    if reason == Trouble.NEEDS_ATTENTION:
        return Standing.NEEDS_HELP, ""
    state = state_of(pod)
    if state in _CLOSING:
        return (Standing.HANDED_IN if learner_in(pod) else Standing.ENDING), ""
    if reason == Progress.RETURNING_TO_POOL:
        return Standing.RETURNING, ""
    if state == State.STOPPED:
        return Standing.STOPPED, ""
    return (_serving(pod) if is_ready(pod) else _not_ready(pod, reason)), ""


def words_of(standing: Standing, score: str) -> str:
    """Return the words that a table shows, such as "passed 83"."""
    return f"{standing} {score}".rstrip()


def score_in(verdict: str) -> str:
    """Return the score that the message of a verdict begins with; "" if it has none."""
    said = _SCORE.match(verdict)
    return said[1] if said is not None else ""


def _ended(pod: LabletObject, reason: Reason) -> tuple[Standing, str]:
    score = score_in(why(pod)[1])
    match reason:
        case Happened.PASSED:
            return Standing.PASSED, score
        case Trouble.NOT_PASSED:
            return Standing.NOT_PASSED, score
        case _ if pod.status.phase == "Failed":
            return Standing.FAILED, ""
        case _:
            return Standing.HANDED_IN, ""


def _serving(pod: LabletObject) -> Standing:
    if not learner_in(pod):
        return Standing.FREE
    return Standing.WORKING if state_of(pod) == State.RUNNING else Standing.READY


def _not_ready(pod: LabletObject, reason: Reason) -> Standing:
    was_ready = pod.status.phase == "Running"
    if was_ready and (reason in _REPAIRS or (learner_in(pod) and _broke(pod))):
        return Standing.REPAIRING
    if isinstance(reason, Trouble) and not reason.deferrable and not reason.passing:
        return Standing.NEEDS_HELP
    return Standing.WAITING if not pod.spec.node_name else Standing.BOOTING


def _broke(pod: LabletObject) -> bool:
    """Return whether the lab last stopped without having been asked to."""
    ends = [status.last_state.get("terminated", {}).get("reason", "") for status in pod.status.container_statuses]
    last = next((reason for end in ends if (reason := reason_of(end)) != NO_REASON), NO_REASON)
    return last != NO_REASON and not last.asked_for


def since_of(pod: LabletObject, standing: Standing) -> str:
    """Return since when a lablet stands so, as Kubernetes writes a time; "" if its Pod does not say it."""
    changed = {c.type: (c.status, c.last_transition_time or "") for c in pod.status.conditions}
    ready, ready_at = changed.get("Ready", ("", ""))
    match standing:
        case Standing.WORKING:
            return changed.get(names.CONDITION_SESSION_STARTED, ("", ""))[1]
        case Standing.READY:
            made, made_at = changed.get(names.CONDITION_SESSION_READY, ("", ""))
            return made_at if made == "True" else ready_at
        case Standing.ENDING:
            return pod.metadata.deletion_timestamp or ""
        case Standing.HANDED_IN | Standing.PASSED | Standing.NOT_PASSED | Standing.FAILED:
            return _ended_at(pod)
        case Standing.STOPPED | Standing.FREE:
            return ready_at
        case Standing.WAITING | Standing.BOOTING:
            return ready_at or pod.metadata.creation_timestamp
        case _:
            return ready_at if ready == "False" else ""


def _ended_at(pod: LabletObject) -> str:
    ended = (status.state.get("terminated", {}).get("finishedAt", "") for status in pod.status.container_statuses)
    return next((str(at) for at in ended if at), "")
