"""`kubectl lablet extend`: a later end of learners' timeslots."""

from datetime import datetime, timedelta
from typing import Final

import click

from vkprovider.classroom.pods import LabletPod, change
from vkprovider.cli.shared import clock
from vkprovider.cli.shared.batch import Chosen
from vkprovider.cli.shared.output.progress import Progress
from vkprovider.cli.shared.pods import check_alive, check_not_collecting, read
from vkprovider.cli.shared.times import local, moment, rfc3339, seconds_of, time_of
from vkprovider.lablet import names
from vkprovider.platform.errors import Conflict
from vkprovider.platform.kube.client import KubeClient

_ATTEMPTS: Final = 20
"""Attempts: the Pod's status may be written between our read and write, and the Pod must then be read again."""


def extend(*, by: str | None, until: str | None, chosen: Chosen) -> None:
    """Give the learner of each POD more time: move the end of the timeslot."""
    added = _wish(by, until)

    async def work(kube: KubeClient, pod: LabletPod, _: Progress) -> str:
        name, namespace, now = pod.metadata.name, pod.metadata.namespace, clock.now()
        end = _end(until, now) if until is not None else None
        for _attempt in range(_ATTEMPTS):
            later = new_end(pod, added, end, now)
            try:
                note = {names.ANNOTATION_TIMESLOT_END: rfc3339(later)}
                await change(kube, pod, annotations=note, unchanged=True)
            except Conflict:
                uid = pod.metadata.uid
                pod = await read(kube, namespace, name)
                if pod.metadata.uid != uid:
                    raise click.ClickException(f"pod/{name} is another one now; see: kubectl lablet list") from None
                continue
            return f"pod/{name}: the time of {pod.user} ends at {rfc3339(later)} ({local(rfc3339(later), now)})"
        raise click.ClickException(f"pod/{name} is written to all the time; try again")

    chosen.each(work, concerns=lambda pod: bool(pod.user))


def _wish(by: str | None, until: str | None) -> timedelta | None:
    """Return by how much the time is extended; None if its end is named, which is no fault of the command line.

    Raises:
        UsageError: Both or none are given, or one is invalid.
    """
    if (by is None) == (until is None):
        raise click.UsageError("say how long: --by 30m, or --until 16:00")
    if by is not None:
        if not (seconds := seconds_of(by)):
            raise click.UsageError(f"invalid duration {by!r} of --by (try 30m or 1h30m)")
        return timedelta(seconds=seconds)
    moment(until or "", clock.now())
    return None


def _end(until: str, now: datetime) -> datetime:
    """Return the new end that the command line names.

    Raises:
        UsageError: It is over.
    """
    end = moment(until, now)
    if end <= now:
        raise click.UsageError(f"--until {rfc3339(end)} is over already; name a later time")
    return end


def new_end(pod: LabletPod, added: timedelta | None, end: datetime | None, now: datetime) -> datetime:
    """Return the new end of a lablet's timeslot.

    Args:
        pod: The lablet's.
        added: What is added to the present end; None if `end` counts.
        end: The new end; None if `added` counts.
        now: The time.

    Raises:
        ClickException: There is nothing to extend, or it cannot be extended so far.
    """
    name, notes = pod.metadata.name, pod.metadata.annotations
    check_alive(pod)
    check_not_collecting(pod)
    if not pod.user:
        raise click.ClickException(
            f"pod/{name} has no learner, and so no end; to assign it: kubectl lablet assign {name} USER --until 90m"
        )
    present = time_of(notes.get(names.ANNOTATION_TIMESLOT_END, ""))
    if present is None and added is not None:
        session = notes.get(names.ANNOTATION_SESSION_ID)
        why = f"does not say when the time of {pod.user} ends" if session else f"has no end: that of {pod.user} is open"
        raise click.ClickException(f"pod/{name} {why}; name the new end: --until 16:00")
    later = end if end is not None else (present or now) + (added or timedelta())
    if present is not None and later <= present:
        raise click.ClickException(
            f"the time of {pod.user} with pod/{name} ends later already, at {rfc3339(present)}; name a later time, or "
            f"end it now: kubectl lablet collect {name}"
        )
    if later <= now:
        raise click.ClickException(f"{rfc3339(later)} is over already; name the new end of pod/{name}: --until 30m")
    _check_deadline(pod, later)
    return later


def _check_deadline(pod: LabletPod, later: datetime) -> None:
    """Refuse an end that the Pod does not live to see.

    Raises:
        ClickException: Its activeDeadlineSeconds, which Kubernetes allows to lower only, are over before.
    """
    seconds, began = pod.spec.active_deadline_seconds, time_of(pod.status.start_time or "")
    if seconds is None or began is None:
        return
    deadline = began + timedelta(seconds=seconds)
    if later > deadline:
        raise click.ClickException(
            f"pod/{pod.metadata.name} ends at {rfc3339(deadline)} by its activeDeadlineSeconds, which cannot be "
            f"raised; extend it until then at most: --until {rfc3339(deadline)}"
        )
