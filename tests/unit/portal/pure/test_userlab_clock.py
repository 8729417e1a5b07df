"""One end for each lab: when it is, how far it moves, and how people read it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.portal.pure.builders import COMPLETE, ENDING, NOW, REQUEST, lab, pod
from vkprovider.portal.pure import facts
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.options import Grounds, Rejection
from vkprovider.portal.settings import PortalSettings

SETTINGS = PortalSettings(duration_s=4 * 3600, duration_max_s=12 * 3600, extend_s=3600)


def why(found: int | Rejection) -> tuple[Grounds, str]:
    assert isinstance(found, Rejection)
    return found.grounds, found.msg


def test_a_user_may_ask_for_a_time_within_the_bounds() -> None:
    assert facts.duration_of(0, SETTINGS) == 4 * 3600
    assert facts.duration_of(60, SETTINGS) == 60
    assert facts.duration_of(12 * 3600, SETTINGS) == 12 * 3600
    told = "a lab takes 1 min to 12 h, not 12 h 1 min"
    assert why(facts.duration_of(12 * 3600 + 1, SETTINGS)) == (Grounds.INVALID_BODY, told)
    assert why(facts.duration_of(59, SETTINGS))[1] == "a lab takes 1 min to 12 h, not 59 s"


def test_a_lab_is_extended_up_to_its_longest_time() -> None:
    running = lab(REQUEST, COMPLETE, the_pod=pod(ready=True, end=NOW + 4 * 3600))
    assert facts.extended(running, 1800, NOW + 60, SETTINGS) == NOW + 4 * 3600 + 1800
    late = lab(REQUEST, COMPLETE, the_pod=pod(ready=True, end=NOW + 12 * 3600 - 60))
    assert facts.extended(late, 3600, NOW + 60, SETTINGS) == NOW + 12 * 3600
    longest = lab(REQUEST, COMPLETE, the_pod=pod(ready=True, end=NOW + 12 * 3600))
    told = "the lab already has its longest time, 12 h, until 2026-02-01 00:00 UTC"
    assert why(facts.extended(longest, 60, NOW + 60, SETTINGS)) == (Grounds.CANNOT_EXTEND, told)


def test_the_longest_time_of_a_warm_lab_begins_when_it_is_taken() -> None:
    taken = lab(REQUEST, COMPLETE, the_pod=pod(ready=True, created_at=NOW - 86_400, end=NOW + 12 * 3600 - 60))
    assert facts.extended(taken, 3600, NOW, SETTINGS) == NOW + 12 * 3600


@pytest.mark.parametrize("asked", [0, -1, 3601])
def test_one_request_extends_within_bounds(asked: int) -> None:
    running = lab(REQUEST, COMPLETE, the_pod=pod(ready=True))
    assert why(facts.extended(running, asked, NOW, SETTINGS)) == (
        Grounds.INVALID_BODY,
        "one request extends a lab by 1 s to 1 h",
    )


@pytest.mark.parametrize(
    "the_lab",
    [
        lab(REQUEST),
        lab(REQUEST, ENDING, COMPLETE, the_pod=pod()),
        lab(REQUEST, COMPLETE, the_pod=pod(phase="Succeeded")),
        lab(REQUEST, COMPLETE, the_pod=pod(request="r0")),
        lab(REQUEST, COMPLETE, the_pod=pod(end=None)),
    ],
)
def test_a_lab_without_a_time_is_not_extended(the_lab: UserLab) -> None:
    grounds, told = why(facts.extended(the_lab, 60, NOW, SETTINGS))
    assert (grounds, told) == (Grounds.CANNOT_EXTEND, "the lab has no time that could be extended")


def test_a_time_that_is_over_is_not_extended() -> None:
    over = lab(REQUEST, COMPLETE, the_pod=pod(ready=True, end=NOW))
    told = "the time of the lab ended at 12:00 UTC"
    assert why(facts.extended(over, 60, NOW, SETTINGS)) == (Grounds.CANNOT_EXTEND, told)


@given(st.integers(1, 3600), st.integers(NOW + 1, NOW + 12 * 3600), st.integers(0, 3600))
def test_an_extension_never_shortens_and_never_passes_the_bounds(asked: int, end: int, passed: int) -> None:
    now = NOW + passed
    found = facts.extended(lab(REQUEST, COMPLETE, the_pod=pod(end=end)), asked, now, SETTINGS)
    if isinstance(found, int):
        assert end < found <= min(end + asked, NOW + SETTINGS.duration_max_s)
    else:
        assert end <= now or end == NOW + SETTINGS.duration_max_s


@pytest.mark.parametrize(
    ("end", "now", "told"),
    [
        (NOW + 2.5 * 3600, NOW + 4680, "ends 14:30 UTC, in 1 h 12 min"),
        (NOW + 30, NOW, "ends 12:00 UTC, in 30 s"),
        (NOW + 26 * 3600, NOW, "ends 2026-02-01 14:00 UTC, in 26 h"),
        (NOW, NOW, "ended 12:00 UTC"),
        (NOW, NOW + 86_400, "ended 2026-01-31 12:00 UTC"),
        (math.inf, NOW, "has no end"),
    ],
)
def test_people_read_the_end_in_words(end: float, now: float, told: str) -> None:
    assert facts.words(end, now) == told
