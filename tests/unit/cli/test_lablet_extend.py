"""Which end `kubectl lablet extend` gives a lablet, and what it says where it cannot."""

from datetime import UTC, datetime, timedelta

import click
import msgspec
import pytest

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.timeslots import _end, _wish, new_end

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
USER, END, SESSION = "vkprovider.io/username", "vkprovider.io/timeslot-end", "vkprovider.io/lds-session-id"
MINE = {USER: "alice", END: "2026-01-31T12:30:00Z"}


def later(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def with_deadline(pod: LabletPod, seconds: int) -> LabletPod:
    spec = msgspec.structs.replace(pod.spec, active_deadline_seconds=seconds)
    status = msgspec.structs.replace(pod.status, start_time="2026-01-31T11:30:00Z")
    return msgspec.structs.replace(pod, spec=spec, status=status)


@pytest.mark.parametrize(
    ("pod", "by", "until", "end"),
    [
        (lablet_pod(notes=MINE), 15, None, later(45)),
        (lablet_pod(notes=MINE), None, later(60), later(60)),
        (lablet_pod(notes={**MINE, END: "2026-01-31T13:30:00+01:00"}), 15, None, later(45)),
        (lablet_pod(notes={**MINE, END: "2026-01-31T11:50:00Z"}), 15, None, later(5)),
        (lablet_pod(notes={USER: "alice", SESSION: "s-1"}), None, later(60), later(60)),
        (lablet_pod(notes={USER: "alice"}), None, later(60), later(60)),
        (with_deadline(lablet_pod(notes=MINE), 7200), 60, None, later(90)),
    ],
)
def test_the_new_end(pod: LabletPod, by: int | None, until: datetime | None, end: datetime) -> None:
    assert new_end(pod, timedelta(minutes=by) if by else None, until, NOW) == end


@pytest.mark.parametrize(
    ("pod", "by", "until", "says"),
    [
        (lablet_pod(), 15, None, "has no learner, and so no end; to assign it: kubectl lablet assign a USER"),
        (
            lablet_pod(notes={USER: "alice"}),
            15,
            None,
            "has no end: that of alice is open; name the new end: --until 16:00",
        ),
        (lablet_pod(notes={USER: "alice", END: "soon"}), 15, None, "has no end: that of alice is open"),
        (
            with_deadline(lablet_pod(notes={USER: "alice"}), 5400),
            None,
            later(90),
            "at most: --until 2026-01-31T13:00:00Z",
        ),
        (lablet_pod(notes={USER: "alice", SESSION: "s-1"}), 15, None, "does not say when the time of alice ends; name"),
        (lablet_pod(notes=MINE), None, later(30), "ends later already, at 2026-01-31T12:30:00Z; name a later time"),
        (lablet_pod(notes={**MINE, END: "2026-01-31T10:00:00Z"}), 15, None, "is over already; name the new end"),
        (with_deadline(lablet_pod(notes=MINE), 5400), 60, None, "at most: --until 2026-01-31T13:00:00Z"),
        (lablet_pod(notes={**MINE, "vkprovider.io/state": "GRADING"}), 15, None, "its state is GRADING; to follow it"),
        (lablet_pod(notes={**MINE, "vkprovider.io/desired-state": "COLLECTING"}), 15, None, "COLLECTING is asked for"),
        (lablet_pod(notes=MINE, status={"phase": "Failed"}), 15, None, "has ended (Failed); for its configurations"),
        (lablet_pod(notes=MINE, deletionTimestamp="2026-01-31T11:00:00Z"), 15, None, "is being deleted"),
    ],
)
def test_what_cannot_be_extended(pod: LabletPod, by: int | None, until: datetime | None, says: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        new_end(pod, timedelta(minutes=by) if by else None, until, NOW)
    assert says in caught.value.message


def _both(by: str | None, until: str | None) -> None:
    _wish(by, until)
    _end(until or "", NOW)


@pytest.mark.parametrize(
    ("by", "until", "says"),
    [
        (None, None, "say how long"),
        ("5m", "5m", "say how long"),
        ("0m", None, "invalid duration '0m' of --by"),
        (None, "2026-01-31T11:00:00Z", "is over already"),
        (None, "2026-01-31T11:00:00", "has no time zone"),
        (None, "tomorrow", "'tomorrow' is not a time such as"),
    ],
)
def test_wrong_options(by: str | None, until: str | None, says: str) -> None:
    with pytest.raises(click.UsageError, match=says):
        _both(by, until)


def test_options() -> None:
    assert _wish("1h30m", None) == timedelta(minutes=90)
    assert _wish(None, "+90m") is None
    assert _end("+90m", NOW) == later(90)
