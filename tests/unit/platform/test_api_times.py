"""Times as Kubernetes writes them: whoever writes on a Pod writes any time, and each that is read can be written."""

import math
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import example, given
from hypothesis import strategies as st

from vkprovider.platform.times import iso, unix

OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
ENDS = [datetime.min, datetime(1, 1, 1, 23), datetime(999, 1, 1), datetime(9999, 12, 31), datetime.max]  # noqa: DTZ001, DTZ901 (zones follow)


@given(st.one_of(st.datetimes(), st.sampled_from(ENDS)), OFFSETS)
@example(datetime.max, timezone(-timedelta(hours=23, minutes=59)))  # noqa: DTZ901 (a zone follows)
@example(datetime.min, timezone(timedelta(hours=23, minutes=59)))  # noqa: DTZ901 (a zone follows)
def test_what_is_read_can_be_written(when: datetime, zone: timezone) -> None:
    at = unix(when.replace(tzinfo=zone).isoformat())
    if at is not None:
        assert unix(iso(int(at))) == int(at)
        assert unix(iso(math.ceil(at))) == math.ceil(at)


def test_a_time_beyond_the_calendar_is_none() -> None:
    assert unix("9999-12-31T23:59:59-23:59") is None
    assert unix("0001-01-01T00:00:00+00:01") is None
    assert unix("9999-12-31T23:59:59Z") == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    assert unix("0001-01-01T00:00:00Z") is not None
    assert unix("2026-01-31T12:00:00") is None, "no zone"
    assert unix("soon") is None


@given(st.integers())
def test_any_number_is_written(at: int) -> None:
    """What is reckoned from a time, such as an hour more, may lie beyond the calendar."""
    assert unix(iso(at)) is not None


def test_what_lies_beyond_is_written_as_the_last_second() -> None:
    last = unix("9999-12-31T23:59:59Z")
    assert last is not None
    assert iso(int(last) + 3600) == "9999-12-31T23:59:59Z"
    assert iso(-(10**15)) == "0001-01-01T00:00:00Z"
    assert iso(0) == "1970-01-01T00:00:00Z"
