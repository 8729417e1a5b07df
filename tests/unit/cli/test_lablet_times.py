"""Times and durations of `kubectl lablet`."""

from datetime import UTC, datetime, timedelta, timezone

import click
import pytest

from vkprovider.cli.shared.times import moment, rfc3339, seconds_of

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


@pytest.mark.parametrize(("text", "says"), [("2026-01-31T13:00:00", "no time zone"), ("soon", "is not a time such as")])
def test_what_is_no_moment_is_explained(text: str, says: str) -> None:
    with pytest.raises(click.BadParameter, match=says):
        moment(text, NOW)


def test_times_are_written_in_utc() -> None:
    assert rfc3339(datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))) == "2026-01-31T12:00:00Z"
