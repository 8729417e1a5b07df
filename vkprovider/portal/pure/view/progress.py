"""What goes on with a lab at present, and what happened before."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from vkprovider.platform.objects import Event, Pod
from vkprovider.platform.times import clock, unix
from vkprovider.platform.wording import plain
from vkprovider.portal.pure import stream
from vkprovider.portal.pure.operations import LineKind, ToldOperation

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
    return stream.tell_of(ToldOperation(pod.metadata.uid, deletes, at=since, title=title, since=since), pod, events)


def going_on(told: stream.LabStory, now: float) -> SeenProgress:
    """Return what a story says goes on; `now` is in Unix seconds."""
    lines = tuple(
        StoryLine(line.at, clock(line.at, now), plain(line.text), line.kind is LineKind.ERROR)
        for line in told.lines[-_LINES_MAX:]
    )
    return SeenProgress(told.progress, plain(told.state), lines)
