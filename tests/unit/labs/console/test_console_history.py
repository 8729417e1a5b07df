"""CML's console log: runs, times, and what is new in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.pure.console.history import RunLine, TimedLine, dated, dated_until, news, parse


def test_lines_have_their_times_and_a_restart_begins_a_new_run() -> None:
    log = "|0|power on\n|2500|\x1b[1mbooted\x1b[0m\r\ncontinued\n|9000|power off\n|0|power on\n|1000|booted"
    first, second = parse(log)
    assert first == [
        RunLine(0, "power on"),
        RunLine(2500, "booted"),
        RunLine(2500, "continued"),
        RunLine(9000, "power off"),
    ]
    assert second == [RunLine(0, "power on"), RunLine(1000, "booted")]
    assert dated(second, started_at=500.0, now=600.0) == [TimedLine(500.0, "power on"), TimedLine(501.0, "booted")]
    assert dated_until(first, 480.0)[-1] == TimedLine(480.0, "power off")


@pytest.mark.parametrize(("started_at", "expected"), [(0.0, 95.0), (99.0, 95.0), (90.0, 90.0)])
def test_no_line_is_of_the_future(started_at: float, expected: float) -> None:
    run = [RunLine(0, "a"), RunLine(5000, "b")]
    assert dated(run, started_at=started_at, now=100.0)[0].at == expected


@pytest.mark.parametrize("log", ["", "\n", "|x|y", "|99999999999999999999|y", "no bars"])
def test_anything_is_a_log(log: str) -> None:
    assert "".join(entry.text for run in parse(log) for entry in run) == log.replace("\n", "")


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=30), st.data())
def test_news_is_what_follows_what_is_known(raw: list[tuple[int, str]], data: st.DataObject) -> None:
    entries = [RunLine(number, text) for number, (_, text) in enumerate(raw)]
    known = data.draw(st.integers(0, len(entries)))
    shown = data.draw(st.integers(0, max(0, known - 1)))
    found = news(entries[:known], entries[shown:])
    assert found is not None
    assert list(found) == (entries[known:] if known else entries[shown:])


def test_a_log_that_does_not_join_on_is_noticed() -> None:
    assert news([RunLine(5, "a")], [RunLine(6, "b")]) is None
    assert news([RunLine(5, "a")], []) is None
