"""What goes on with a lab at present, and what is wrong with it."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from vkprovider.lablet.reasons import WORKERS, Happened, Trouble
from vkprovider.lablet.standing import why
from vkprovider.lablet.standings import Standing
from vkprovider.platform.messages import plain
from vkprovider.platform.objects import Event, Pod
from vkprovider.platform.reasons import ForeignReason, reason_of
from vkprovider.platform.times import clock, unix
from vkprovider.portal.pure import stream
from vkprovider.portal.pure.facts import UserLab, UserLabStatus
from vkprovider.portal.pure.portalnames import UserLabReason
from vkprovider.portal.pure.stream import LabOperation, LineKind

_LINES_MAX: Final = 12
"""The lines of a story that a page shows, the last ones."""


class StoryLine(NamedTuple):
    """A line of the story of a lab.

    Attributes:
        at: Seconds since the epoch.
        time: The same as a clock shows it.
        text: What happened.
        warns: Whether it tells of a fault.
    """

    at: float
    time: str
    text: str
    warns: bool


class SeenProgress(NamedTuple):
    """What goes on.

    Attributes:
        percent: How far it is.
        sentence: What goes on at present.
        lines: What happened before, the oldest first.
    """

    percent: int
    sentence: str
    lines: tuple[StoryLine, ...] = ()


def started_again(pod: Pod, events: Iterable[Event]) -> stream.LabStory:
    """Return the story of a Pod since it was Ready last, or since it was made."""
    created = unix(pod.metadata.creation_timestamp) or 0.0
    changed = [unix(c.last_transition_time or "") for c in pod.status.conditions if c.type == "Ready"]
    since = next((at for at in changed if at is not None), created) if pod.status.phase == "Running" else created
    deletes = pod.metadata.deletion_timestamp is not None
    title = "The lab is to be deleted" if deletes else "The lab starts"
    return stream.tell_of(LabOperation(pod.metadata.uid, deletes, at=since, title=title, since=since), pod, events)


def going_on(told: stream.LabStory, now: float) -> SeenProgress:
    """Return what a story says goes on; `now` is in Unix seconds."""
    lines = tuple(
        StoryLine(line.at, clock(line.at, now), plain(line.text), line.kind is LineKind.ERROR)
        for line in told.lines[-_LINES_MAX:]
    )
    return SeenProgress(told.progress, plain(told.state), lines)


class LabFailure(NamedTuple):
    """What is wrong, and what to do about it, in the words of docs/why.md.

    Attributes:
        reason: As one word.
        message: The particulars.
        means: What is the case; "" if the word is not explained.
        remedy: What to do; "" if nothing has to be done, or nobody knows.
    """

    reason: str
    message: str
    means: str
    remedy: str


def of_lab(lab: UserLab, status: UserLabStatus, pod: Pod | None, standing: Standing) -> LabFailure | None:
    """Return what is wrong with a user lab, or why the portal removes it; None if its user has nothing to know."""
    if status is UserLabStatus.FAILED:
        return _of_record(lab)
    if status is UserLabStatus.TERMINATING:
        ending = lab.record.ending
        return _explained(ending.reason, "") if ending is not None and not ending.by and ending.reason else None
    return of_pod(pod, standing)


def _of_record(lab: UserLab) -> LabFailure:
    """Return why a user lab has failed."""
    outcome = lab.record.outcome
    if outcome is None:
        damaged = ", ".join(lab.record.damaged)
        told = f"The record of the lab cannot be read: {damaged}." if damaged else "The lab has failed."
        return LabFailure("", told, "", "Have the lab deleted, and ask for a new one.")
    if outcome.reason == UserLabReason.LAB_FAILED:
        word, _, message = outcome.text.partition(": ")
        if (inner := _explained(word, message)).means:
            return inner
    return _explained(outcome.reason, outcome.text)


def of_pod(pod: Pod | None, standing: Standing) -> LabFailure | None:
    """Return what is wrong with a lab that has a Pod; None if nothing is, or it goes away by itself."""
    if pod is None:
        return None
    word, message = why(pod)
    reason = reason_of(word)
    wrong = {Standing.NEEDS_HELP, Standing.UNREACHABLE, Standing.FAILED, Standing.REPAIRING, Standing.STOPPED}
    if standing in wrong or word == Happened.UNSCHEDULABLE or isinstance(reason, Trouble) or reason in WORKERS:
        return _explained(word, message) if word or message else None
    return None


def _explained(word: str, message: str) -> LabFailure:
    reason = reason_of(word)
    if isinstance(reason, ForeignReason):
        return LabFailure(word, plain(message), "", "")
    return LabFailure(word, plain(message), reason.means, reason.remedy)
