"""The forms of a class's page: what each asks, and about whom."""

import pytest

from vkprovider.lablet.standings import Standing
from vkprovider.portal.pure.classes import ACTS, SORTS, Row
from vkprovider.portal.web.classes import acting, routes
from vkprovider.portal.web.classes.acting import BulkAct, Outcome
from vkprovider.portal.web.classes.classrooms import Powers

ROWS = [
    Row(key="pod-1", learner="ann", pod="1", standing=Standing.READY),
    Row(key="pod-2", learner="", pod="2", standing=Standing.FREE),
    Row(key="pod-3", learner="bob", pod="3", standing=Standing.FAILED),
    Row(key="lab-eve", learner="eve", user="eve", standing=Standing.WAITING),
]


def test_every_act_has_a_form_and_every_column_an_order() -> None:
    assert {form.act for form in acting.FORMS} == {*ACTS, "end"}
    assert ["help", *(name for name, _ in routes.HEADINGS)] == list(SORTS)


@pytest.mark.parametrize(
    ("act", "sent", "wanted"),
    [
        ("extend", {"minutes": "15"}, BulkAct("extend", seconds=900)),
        ("extend", {"minutes": "15", "message": "x"}, BulkAct("extend", seconds=900)),
        ("message", {"message": "Hello"}, BulkAct("message", message="Hello")),
        ("message", {}, BulkAct("message")),
        ("reset", {"minutes": "15", "message": "x"}, BulkAct("reset")),
    ],
)
def test_what_a_form_asks(act: str, sent: dict[str, str], wanted: BulkAct) -> None:
    assert acting.wanted_of(act, sent) == wanted


@pytest.mark.parametrize("minutes", ["", "0", "-5", "15.0", "1e9", "٣", "999"])
def test_a_time_that_is_not_offered_is_refused(minutes: str) -> None:
    assert "how many minutes" in str(acting.wanted_of("extend", {"minutes": minutes}))


def test_about_whom_a_form_is() -> None:
    assert acting.rows_of(["pod-1", "pod-2", "pod-9"], "", ROWS) == ROWS[:2]
    assert acting.rows_of(["pod-2"], "all", ROWS) == [ROWS[0], ROWS[3]], "who has a lab that goes on"
    assert "tick the rows" in str(acting.rows_of([], "", ROWS))
    assert "Nobody" in str(acting.rows_of([], "all", ROWS[1:3]))


def test_a_tick_is_about_its_learner_and_not_about_the_next_one_of_that_lab() -> None:
    before = Row(key="pod-1", learner="zoe", pod="1", standing=Standing.READY)
    ticks = [before.tick, ROWS[1].tick, ROWS[2].tick, "pod-9 zoe"]
    assert acting.rows_of(ticks, "", ROWS) == ROWS[1:3]
    [gone] = acting.passed_on(ticks, "", ROWS)
    assert gone == Outcome("zoe", done=False, words="the lab is that of ann now; nothing was done")
    [given] = acting.passed_on(["pod-1 "], "", ROWS)
    assert given.learner == "pod-1", "it was free"
    assert acting.passed_on(["pod-1", "pod-2 "], "", ROWS) == acting.passed_on(ticks, "all", ROWS) == []


def test_the_forms_that_somebody_sees() -> None:
    assert [form.act for form in acting.offered(Powers().acts)] == []
    assert Powers().role == "looks"
    assert [form.act for form in acting.offered(Powers(ends=True).acts)] == ["extend", "end"]
    assert "end" not in Powers(lablets=True).acts
    assert set(Powers(lablets=True, ends=True).acts) == {*ACTS, "end"}


def test_the_headline_counts() -> None:
    done = [Outcome("ann", done=True, words=""), Outcome("bob", done=False, words="")]
    assert acting.headline("extend", done) == "Time extended: 1 of 2"
