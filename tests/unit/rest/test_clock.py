"""A server's clock by the dates of its answers: never ahead of it."""

import pytest

from tunnels.base import Response
from vkprovider.rest.exchange import ServerClock

DATE = "Thu, 26 Nov 2026 05:34:29 GMT"
UNIX = 1_795_671_269


def test_it_is_unknown_before_the_first_date_and_goes_on_between_answers() -> None:
    clock = ServerClock()
    assert clock.at(100.0) == 0
    clock.note(Response(200, headers={"date": DATE}), 100.0)
    assert [clock.at(now) for now in (99.0, 100.0, 100.9, 107.2)] == [UNIX, UNIX, UNIX, UNIX + 7]


@pytest.mark.parametrize(
    "headers", [{}, {"date": ""}, {"date": "yesterday"}, {"date": "Thu, 99 Nov 2026 05:34:29 GMT"}]
)
def test_an_answer_without_a_readable_date_changes_nothing(headers: dict[str, str]) -> None:
    clock = ServerClock()
    clock.note(Response(200, headers=headers), 50.0)
    assert clock.at(60.0) == 0
    clock.note(Response(200, headers={"date": DATE}), 100.0)
    clock.note(Response(200, headers=headers), 200.0)
    assert clock.at(101.0) == UNIX + 1


def test_a_clock_that_was_set_back_is_believed() -> None:
    clock = ServerClock()
    clock.note(Response(200, headers={"date": DATE}), 100.0)
    clock.note(Response(200, headers={"date": "Thu, 26 Nov 2026 04:34:29 GMT"}), 101.0)
    assert clock.at(101.0) == UNIX - 3600
