"""Times and durations of `kubectl lablet`."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import click
import pytest

from vkprovider.cli.shared.times import local, moment, rfc3339, seconds_of

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5400),
        ("+2h", 7200),
        ("1h30m", 5400),
        ("1d", 86400),
        ("45s", 45),
        ("0s", 0),
        ("", None),
        ("90", None),
        ("-5m", None),
        ("1.5h", None),
        ("5 m", None),
        ("9999999d", None),
    ],
)
def test_durations(text: str, seconds: int | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("2026-01-31T13:00:00Z", NOW + timedelta(hours=1)),
        ("2026-01-31T14:00:00+01:00", NOW + timedelta(hours=1)),
        ("+2h", NOW + timedelta(hours=2)),
        ("90m", NOW + timedelta(minutes=90)),
    ],
)
def test_moments(text: str, when: datetime) -> None:
    assert moment(text, NOW) == when


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "now", "when"),
    [
        ("16:00", "2026-01-31T12:00+01:00", "2026-01-31T16:00+01:00"),
        ("16:00", "2026-01-31T16:00+01:00", "2026-02-01T16:00+01:00"),
        ("9:05", "2026-01-31T23:59+01:00", "2026-02-01T09:05+01:00"),
        ("00:30", "2026-01-31T23:59:59+01:00", "2026-02-01T00:30+01:00"),
        ("16:00", "2026-03-28T20:00+01:00", "2026-03-29T16:00+02:00"),  # clocks go forward in the night
        ("02:30", "2026-03-29T01:59+01:00", "2026-03-29T03:30+02:00"),  # which no clock shows
        ("16:00", "2026-10-24T20:00+02:00", "2026-10-25T16:00+01:00"),  # clocks go back in the night
        ("02:30", "2026-10-25T02:29+02:00", "2026-10-25T02:30+02:00"),
        ("02:30", "2026-10-25T02:31+02:00", "2026-10-25T02:30+01:00"),  # the second time in that night
        ("02:30", "2026-10-25T02:31+01:00", "2026-10-26T02:30+01:00"),
    ],
)
def test_a_time_of_day_is_the_next_on_the_clock(text: str, now: str, when: str) -> None:
    found = moment(text, datetime.fromisoformat(now).astimezone(UTC), BERLIN)
    assert found == datetime.fromisoformat(when)


@pytest.mark.parametrize("text", ["24:00", "16:60", "16", "16:00:00", "4pm"])
def test_what_is_no_time_of_day(text: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 16:00"):
        moment(text, NOW, BERLIN)


def test_a_time_is_shown_as_on_the_clock() -> None:
    assert local("2026-01-31T15:00:00Z", NOW, BERLIN) == "16:00"
    assert local("2026-01-31T23:30:00Z", NOW, BERLIN) == "2026-02-01 00:30"
    assert local("soon", NOW, BERLIN) == "soon"


@pytest.mark.parametrize(("text", "says"), [("2026-01-31T13:00:00", "no time zone"), ("soon", "is not a time such as")])
def test_what_is_no_moment_is_explained(text: str, says: str) -> None:
    with pytest.raises(click.BadParameter, match=says):
        moment(text, NOW)


def test_times_are_written_in_utc() -> None:
    assert rfc3339(datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))) == "2026-01-31T12:00:00Z"
