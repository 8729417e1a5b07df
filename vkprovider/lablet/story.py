"""The story of a lablet as lines of a log: what its Events and conditions say, with times.

The Events of a pool's lablet are told from its last return to the pool on: those before name earlier learners and their
grades, and the next learner may read the log. The Event of that return may be lost. So an Event that may name a learner
is told only if it is newer than the run of the lab, which begins after the lab was wiped for that learner.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from vkprovider.lablet import names
from vkprovider.lablet.reasons import Happened, Trouble
from vkprovider.platform.objects import Event, Pod
from vkprovider.platform.times import iso, unix

_OF_NOBODY: Final = frozenset(
    {
        "Scheduled",
        "FailedScheduling",
        Happened.FIELD_IGNORED,
        Happened.IMAGE_CHANGE_IGNORED,
        Happened.CREATED,
        Happened.IMPORT_WARNED,
        Happened.STARTED,
        Happened.READY,
        Happened.BACK_TO_POOL,
        Trouble.IMPORT_REFUSED,
        Trouble.START_REFUSED,
        Trouble.LAB_START_TIMEOUT,
        Trouble.WORKER_UNREACHABLE,
    }
)
"""The reasons of Events that name no learner, whose lablet it ever was."""


class ToldLine(NamedTuple):
    """A line of the story.

    Attributes:
        at: Seconds since the epoch.
        key: Tells it from the others; a line is said once. The first word is the kind of its source: `created`,
            `condition` (then type and status), `event` (then UID and count) or `deleted`.
        reason: The reason of an Event; "" for other sources.
        message: The words of the source, without its time.
        warns: Whether it is of an Event of type Warning.
    """

    at: float
    key: tuple[str, ...]
    text: str
    reason: str = ""
    message: str = ""
    warns: bool = False


def tell(pod: Pod, events: Iterable[Event]) -> list[ToldLine]:
    """Return the story so far, in the order of the times."""
    meta = pod.metadata
    created = unix(meta.creation_timestamp) or 0.0
    found = [_line(created, ("created",), "Pod created")]
    found += _of_conditions(pod)
    run_at = _run_at(pod)
    told = [(event, _of_event(event)) for event in events]
    found += _since_the_return([(e, line) for e, line in told if line.at >= run_at or e.reason in _OF_NOBODY])
    if (deleted := unix(meta.deletion_timestamp or "")) is not None:
        grace_s = meta.deletion_grace_period_seconds
        asked = deleted - grace_s  # the API server writes when the grace period ends
        found.append(_line(asked, ("deleted",), f"Pod to be deleted, with a grace period of {grace_s} s"))
    return sorted(found, key=lambda line: line.at)


def _of_conditions(pod: Pod) -> Iterator[ToldLine]:
    for condition in pod.status.conditions:
        at = unix(condition.last_transition_time or "")
        if at is None:
            continue
        why = ": ".join(filter(None, (condition.reason, condition.message)))
        text = f"condition {condition.type} is {condition.status}" + (f" ({why})" if why else "")
        yield _line(at, ("condition", condition.type, condition.status, why), text)


def _run_at(pod: Pod) -> float:
    """Return when the present run of a pool's lablet began, `inf` if the Pod does not say; 0 for any other lablet."""
    meta = pod.metadata
    if names.LABEL_POOL not in meta.labels and names.ANNOTATION_LENT_BY not in meta.annotations:
        return 0.0
    states = [state for status in pod.status.container_statuses for state in status.state.values()]
    began = [at for state in states if (at := unix(str(state.get("startedAt", "")))) is not None]
    return max(began, default=math.inf)


def _since_the_return(told: list[tuple[Event, ToldLine]]) -> Iterator[ToldLine]:
    """Yield the line of the last return to the pool, and those after it; all of them if there was none."""
    returns = [line for event, line in told if event.reason == Happened.BACK_TO_POOL]
    last = max(returns, key=lambda line: line.at, default=None)
    return (line for _, line in told if last is None or line is last or line.at > last.at)


def _of_event(event: Event) -> ToldLine:
    series = event.series
    count = max(event.count, series.count if series is not None else 0)
    repeated = series.last_observed_time if series is not None else None
    stamp = repeated or event.last_timestamp or event.event_time or event.metadata.creation_timestamp
    at = unix(stamp) or 0.0
    often = f" ({count} times)" if count > 1 else ""
    message = " ".join(f"{event.message}{often}".split())
    said = _line(at, ("event", event.metadata.uid, str(count)), f"{event.type} {event.reason}: {message}")
    return said._replace(reason=event.reason, message=message, warns=event.type == "Warning")


def _line(at: float, key: tuple[str, ...], message: str) -> ToldLine:
    message = " ".join(message.split())
    return ToldLine(at, key, f"{iso(int(at))} {message}", message=message)
