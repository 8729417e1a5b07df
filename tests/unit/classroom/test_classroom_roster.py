"""A list of learners, as an instructor has it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.classroom.roster import LEARNERS_MAX, RosterError, learners_in, look_alikes


@pytest.mark.parametrize(
    ("text", "learners"),
    [
        ("alice\nbob\n", ("alice", "bob")),
        ("\ufeffLearner,Class\nalice,friday\n\n# away: carol\n bob ,friday\nalice,x\n", ("alice", "bob")),
        ('"Miller, Ann";a@example.com\nbob;b@example.com', ("Miller, Ann", "bob")),
        ("learner\tseat\nalice@example.com\t1", ("alice@example.com",)),
        ("alice\nname\n", ("alice", "name")),
    ],
)
def test_the_learners_of_a_list(text: str, learners: tuple[str, ...]) -> None:
    assert learners_in(text, "names.csv") == learners


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names.csv names no learners"),
        ("learner\n", "names.csv names no learners"),
        ("alice\n,friday\n", "names.csv, line 2: the first column is empty"),
        ("alice\nb\x1bob\n", "names.csv, line 2: vkprovider.io/username is not a name"),
        ("\n".join(f"l{n}" for n in range(1001)), "names 1001 learners, more than 1000"),
    ],
)
def test_a_list_that_cannot_be_used(text: str, says: str) -> None:
    with pytest.raises(RosterError, match=says):
        learners_in(text, "names.csv")


def test_a_line_that_is_no_csv() -> None:
    with pytest.raises(RosterError, match=r"names\.csv, line 2: field larger"):
        learners_in("alice\n" + "x" * 200_000, "names.csv")


@given(st.text(max_size=200))
def test_any_text_is_a_list_or_is_refused_in_words(text: str) -> None:
    try:
        found = learners_in(text, "names.csv")
    except RosterError:
        return
    assert 0 < len(found) <= LEARNERS_MAX
    assert len(set(found)) == len(found)
    assert all(name == name.strip() and name.isprintable() for name in found)


@pytest.mark.parametrize(
    ("learners", "others", "pairs"),
    [
        (("alice", "bob"), ("carol",), []),
        (("alice", "alice"), ("alice",), []),
        (("Bob", "bob"), (), [("Bob", "bob")]),
        (("bob", "BOB", "Bob"), (), [("bob", "BOB"), ("bob", "Bob")]),
        (("bob",), ("Bob", "Ann", "ann"), [("Bob", "bob")]),
        (("straße",), ("STRASSE",), [("STRASSE", "straße")]),
    ],
)
def test_names_that_differ_in_case_only(
    learners: tuple[str, ...], others: tuple[str, ...], pairs: list[tuple[str, str]]
) -> None:
    assert look_alikes(learners, others) == pairs
