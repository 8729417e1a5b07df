"""What an instructor asks of a lablet, as annotations of its Pod, or why it cannot be done."""

from typing import Final, Literal, get_args

from vkprovider.lablet import names
from vkprovider.lablet.lifecycle import State
from vkprovider.lablet.message import annotation_for
from vkprovider.lablet.words import has_ended, learner_in, state_of
from vkprovider.platform.objects import Pod
from vkprovider.platform.times import iso, unix

Act = Literal["extend", "stop", "start", "reset", "collect", "message"]
ACTS: Final[tuple[Act, ...]] = get_args(Act)
_CLOSING: Final = frozenset({State.COLLECTING, State.GRADING, State.STOPPING})
Notes = dict[str, str | None]


class CannotBeDoneError(ValueError):
    """A lablet cannot do what is asked; the text says why, after the learner's name."""


def notes_for(act: Act, pod: Pod, now: float, *, seconds: int = 0, message: str = "") -> Notes:
    """Return the annotations to patch so that a lablet does what is asked.

    Args:
        act: The request.
        pod: The lablet's, as it is now.
        now: Unix seconds.
        seconds: By how much to extend it.
        message: For the learner.

    Raises:
        CannotBeDoneError: The lablet cannot do it.
    """
    if pod.metadata.deletion_timestamp is not None or has_ended(pod):
        raise CannotBeDoneError("the lab has ended")
    if act != "message" and state_of(pod) in _CLOSING:
        raise CannotBeDoneError("the lab is being handed in")
    match act:
        case "extend":
            return {names.ANNOTATION_TIMESLOT_END: iso(_later(pod, seconds, now))}
        case "stop":
            return {names.ANNOTATION_DESIRED_STATE: State.STOPPED.value}
        case "start":
            if not _is_stopped(pod):
                raise CannotBeDoneError("the lab was not stopped")
            return {names.ANNOTATION_DESIRED_STATE: None}
        case "reset":
            again: Notes = {names.ANNOTATION_DESIRED_STATE: None} if _is_stopped(pod) else {}
            return {names.ANNOTATION_RESET: iso(int(now)), **again}
        case "collect":
            if not learner_in(pod):
                raise CannotBeDoneError("nobody has the lab")
            return {names.ANNOTATION_DESIRED_STATE: State.COLLECTING.value}
        case "message":
            return annotation_for(message, now)


def _later(pod: Pod, seconds: int, now: float) -> int:
    """Return the new end of a lablet.

    Raises:
        CannotBeDoneError: It has no end, or does not live so long.
    """
    if not learner_in(pod):
        raise CannotBeDoneError("nobody has the lab")
    end = unix(pod.metadata.annotations.get(names.ANNOTATION_TIMESLOT_END, ""))
    if end is None:
        raise CannotBeDoneError("the time has no end that could be moved")
    later = int(max(end, now) + seconds)
    lives_s, began = pod.spec.active_deadline_seconds, unix(pod.status.start_time or "")
    if lives_s is not None and began is not None and later > began + lives_s:
        raise CannotBeDoneError(f"the lab ends at {iso(int(began + lives_s))} by its activeDeadlineSeconds")
    return later


def _is_stopped(pod: Pod) -> bool:
    return pod.metadata.annotations.get(names.ANNOTATION_DESIRED_STATE, "").upper() == State.STOPPED
