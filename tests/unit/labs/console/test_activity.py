"""When a learner was last active: written at most once a minute, never back, and gone with the learner."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labs.builders import claim
from vkprovider.lablet import names
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.console.writers import EVERY_S, NO_ACTIVITY, Activity, noted, reported
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.times import iso, unix

NOW = 1_800_000_000
ANN = claim(lab_id="lab-1", learner="ann")


def annotations(report: str = "", learner: str = "ann") -> dict[str, str]:
    return {names.ANNOTATION_LAST_ACTIVITY: report, names.ANNOTATION_LEARNER: learner}


def with_session(started_at: int) -> Claim:
    session = Session("key", "ann", "default", id="s1", started_at=started_at)
    return msgspec.structs.replace(ANN, session=session)


def test_the_first_input_is_reported() -> None:
    known = noted(NO_ACTIVITY, {names.ANNOTATION_LEARNER: "ann"}, "ann", NOW)
    assert known == Activity(NOW, "ann")
    assert reported(known, annotations(), ANN) == iso(NOW)


@pytest.mark.parametrize(("later_s", "is_due"), [(0, False), (1, False), (59, False), (60, True), (3600, True)])
def test_further_input_is_reported_after_a_minute(later_s: int, is_due: bool) -> None:  # noqa: FBT001 (a row)
    """Also by a replica that has noted none, since the report is the state."""
    for known in (Activity(NOW, "ann"), NO_ACTIVITY):
        found = noted(known, annotations(iso(NOW)), "ann", NOW + later_s)
        assert (found is not known) == is_due
        wanted = iso(NOW + later_s) if is_due else iso(NOW)
        assert reported(found, annotations(iso(NOW)), ANN) == wanted


def test_what_is_noted_and_not_written_yet_is_not_noted_again() -> None:
    """However long the API server takes."""
    known = Activity(NOW, "ann")
    assert noted(known, annotations(), "ann", NOW + 59) is known
    assert noted(known, annotations(), "ann", NOW + 60) == Activity(NOW + 60, "ann")


def test_without_activity_nothing_is_reported_and_a_report_stays() -> None:
    assert reported(NO_ACTIVITY, {}, claim()) == ""
    assert reported(NO_ACTIVITY, annotations(iso(NOW)), ANN) == iso(NOW)


def test_the_start_of_the_session_is_activity() -> None:
    assert reported(NO_ACTIVITY, annotations(), with_session(NOW)) == iso(NOW)
    assert reported(NO_ACTIVITY, annotations(), with_session(0)) == ""
    assert reported(Activity(NOW + 90, "ann"), annotations(), with_session(NOW)) == iso(NOW + 90)
    assert reported(NO_ACTIVITY, annotations(iso(NOW + 90)), with_session(NOW)) == iso(NOW + 90), "never back"


def test_another_learner_has_not_opened_it_yet() -> None:
    bob = claim(lab_id="lab-1", learner="bob")
    warm = claim(lab_id="lab-1")
    for known in (NO_ACTIVITY, Activity(NOW, "ann")):
        assert reported(known, annotations(iso(NOW)), bob) == ""
        assert reported(known, annotations(iso(NOW)), warm) == ""
    assert reported(Activity(NOW, ""), annotations(iso(NOW), learner=""), ANN) == "", "an instructor tried it"
    found = noted(Activity(NOW, "ann"), annotations(iso(NOW)), "bob", NOW + 1)
    assert found == Activity(NOW + 1, "bob")
    assert reported(found, annotations(iso(NOW)), bob) == iso(NOW + 1)


@pytest.mark.parametrize("nonsense", ["", "yesterday", "2026-01-31T12:00:00", "1800000000"])
def test_a_report_that_cannot_be_read_is_replaced(nonsense: str) -> None:
    known = noted(NO_ACTIVITY, annotations(nonsense), "ann", NOW)
    assert reported(known, annotations(nonsense), ANN) == iso(NOW)


@given(st.lists(st.tuples(st.integers(0, 100), st.booleans(), st.booleans()), max_size=40))
def test_any_history_is_written_at_most_once_a_minute_and_is_at_most_a_minute_late(
    history: list[tuple[int, bool, bool]],
) -> None:
    """Input after so many seconds; then a turn may come, and the replica may be another one."""
    now, known, shown = NOW, NO_ACTIVITY, ""
    writes: list[float] = []
    for wait_s, has_turn, is_lost in history:
        now += wait_s
        known = noted(known, annotations(shown), "ann", now)
        if has_turn:
            wanted = reported(known, annotations(shown), ANN)
            if wanted != shown:
                shown = wanted
                writes.append(unix(wanted) or 0)
            assert now - (unix(shown) or 0) < EVERY_S
        if is_lost:
            known = NO_ACTIVITY
    assert all(later - earlier >= EVERY_S for earlier, later in itertools.pairwise(writes))
