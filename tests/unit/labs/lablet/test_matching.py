"""Which marked lab is a claim's, and which is a leftover: pure decisions on titles, notes and times (C10, C31)."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labs.builders import POD_UID, claim
from vkprovider.labs.pure.lablet.identity import KnownLab, certain, is_leftover, matches, notes_of, origin_of

ASKED = 1_800_000_000
NOTED = claim(asked_at=ASKED)
BARE = claim()


def lab(lab_id: str = "lab-1", *, asked: int = ASKED, after_s: float = 1.0, **changed: Any) -> KnownLab:
    """Return a lab that was created so long after its note."""
    notes = notes_of(claim(asked_at=asked), installation="inst", replica="r", epoch=1)
    created = datetime.fromtimestamp(ASKED + after_s, UTC).isoformat()
    found = KnownLab(lab_id, claim().title, marked=True, created=created, origin=origin_of("", notes))
    return msgspec.structs.replace(found, **changed)


@pytest.mark.parametrize("after_s", [-1, 0, 1, 60, 81])
def test_a_lab_that_was_created_in_time_is_the_claims(after_s: float) -> None:
    found = matches(NOTED, [lab(after_s=after_s)], "")
    assert certain(NOTED, found, "") == lab(after_s=after_s)


@pytest.mark.parametrize(
    "other",
    [lab(after_s=-2), lab(after_s=82), lab(asked=ASKED - 1), lab(asked=ASKED + 1), lab(asked=0)],
    ids=["too early", "too late", "an earlier import", "a later import", "no note"],
)
def test_a_copy_is_not_the_claims_whatever_else_there_is(other: KnownLab) -> None:
    assert matches(NOTED, [other], "") == []
    copy = msgspec.structs.replace(other, lab_id="copy")
    assert certain(NOTED, matches(NOTED, [lab(), copy], ""), "") == lab()


def test_two_of_the_same_minute_are_in_doubt_even_if_the_pod_shows_one() -> None:
    found = matches(NOTED, [lab(), lab("copy")], "lab-1")
    assert [one.lab_id for one in found] == ["lab-1", "copy"]
    assert certain(NOTED, found, "lab-1") is None


@pytest.mark.parametrize("created", ["", "yesterday"])
def test_a_worker_that_does_not_say_when_leaves_the_note(created: str) -> None:
    mine = lab(created=created)
    assert matches(NOTED, [mine, lab("b", asked=ASKED - 1, created=created)], "") == [mine]


def test_a_time_without_offset_is_utc() -> None:
    assert matches(NOTED, [lab(created=datetime.fromtimestamp(ASKED, UTC).replace(tzinfo=None).isoformat())], "")


@pytest.mark.parametrize(
    ("ids", "shown", "named"),
    [
        ("a", "", "a"),
        ("a", "a", "a"),
        ("a", "b", None),
        ("ab", "", None),
        ("ab", "b", "b"),
        ("ab", "c", None),
        ("", "", None),
    ],
)
def test_a_claim_without_note_takes_the_lab_that_its_pod_shows_or_else_the_only_one(
    ids: str, shown: str, named: str | None
) -> None:
    found = matches(BARE, [lab(one, after_s=9999) for one in ids], shown)
    one = certain(BARE, found, shown)
    assert (one.lab_id if one is not None else None) == named


def test_labs_of_other_pods_are_never_matches() -> None:
    notes = notes_of(claim(pod_uid="other"), installation="inst", replica="r", epoch=1)
    other = lab(title="netlab-0a1b2c3d-x", origin=origin_of("", notes))
    assert matches(BARE, [other], "lab-1") == []


# ------------------------------------------------------------------------------------------ leftovers

ANSWERED = claim(lab_id="named", asked_at=ASKED + 30, first_asked_at=ASKED)


def test_the_lab_of_an_import_that_was_not_answered_is_a_leftover() -> None:
    assert is_leftover(ANSWERED, lab(), [lab()])
    assert is_leftover(ANSWERED, lab(after_s=60), [lab(after_s=60)])


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (claim(lab_id="named", asked_at=ASKED), lab()),
        (claim(asked_at=ASKED + 30, first_asked_at=ASKED), lab()),
        (claim(lab_id="named"), lab()),
        (ANSWERED, lab(asked=ASKED + 30)),
        (ANSWERED, lab(asked=ASKED - 1)),
        (ANSWERED, lab(asked=0)),
        (ANSWERED, lab(after_s=82)),
        (ANSWERED, lab(created="")),
        (ANSWERED, lab(origin=None)),
        (msgspec.structs.replace(ANSWERED, pod_uid="other"), lab()),
    ],
    ids=[
        "one import, answered",
        "not answered yet",
        "no note",
        "a copy of its lab",
        "a copy of an earlier lab",
        "a lab of an older version",
        "a copy that was made later",
        "CML does not say when",
        "no notes",
        "another Pod",
    ],
)
def test_what_may_be_a_copy_is_no_leftover(row: Any, found: KnownLab) -> None:
    assert not is_leftover(row, found, [found])


def test_of_two_with_one_note_neither_is_a_leftover() -> None:
    both = [lab(), lab("copy")]
    assert not any(is_leftover(ANSWERED, one, both) for one in both)


# ------------------------------------------------------------------------------------------ notes


@given(st.lists(st.integers(ASKED - 2, ASKED + 2), min_size=1, max_size=5))
def test_no_two_imports_have_the_same_note_though_the_clock_stands_or_goes_back(times: list[int]) -> None:
    row, notes = claim(), list[int]()
    for at in times:
        row = row.asking(at) if len(notes) % 3 else row.lost_lab(at)
        notes.append(row.asked_at)
    assert notes == sorted(set(notes))


def test_a_clock_that_was_set_back_is_believed() -> None:
    assert claim(asked_at=ASKED).asking(ASKED - 3600).asked_at == ASKED - 3600
    assert claim().lost_lab(0).asked_at == 0
    assert claim(asked_at=5).lost_lab(0).asked_at == 6


def test_a_lab_that_is_gone_is_no_earlier_import() -> None:
    again = claim(lab_id="named", asked_at=ASKED).lost_lab(ASKED + 100)
    assert (again.asked_at, again.first_asked_at) == (ASKED + 100, 0)
    assert (again.asking(ASKED + 200).first_asked_at, again.asking(ASKED + 200).asked_at) == (ASKED + 100, ASKED + 200)
    assert claim(lab_id="named", asked_at=ASKED, first_asked_at=1).without_lab().asked_at == 0
    assert claim().pod_uid == POD_UID
