"""A lab's description names its learner, and keeps what its author wrote."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from vkprovider.labs.pure.lablet.identity import DESCRIPTION_CHARS_MAX, described

ALICE = "Learner: alice (vkprovider)"
LEARNERS = st.sampled_from(["", "alice", "bob (vkprovider)", "Ann Ä.", "x" * 256])
TEXTS = st.lists(
    st.sampled_from(["OSPF", "Learner: you", "\n", "\r\n", "Learner: alice (vkprovider)", " ", "(vkprovider)", "\v"])
).map("".join)


@pytest.mark.parametrize(
    ("before", "learner", "after"),
    [
        ("", "alice", ALICE),
        (ALICE, "", ""),
        ("OSPF\nin two areas", "alice", f"{ALICE}\n\nOSPF\nin two areas"),
        (f"{ALICE}\n\nOSPF", "bob", "Learner: bob (vkprovider)\n\nOSPF"),
        (f"{ALICE}\r\n\r\nOSPF\r\n", "", "OSPF\r\n"),  # as a text field of a browser sends it
        (f"see the board\n{ALICE}\nOSPF", "bob", "Learner: bob (vkprovider)\n\nsee the board\nOSPF"),
        (f"OSPF\n{ALICE}", "", "OSPF\n"),
        ("Learner: you configure OSPF", "alice", f"{ALICE}\n\nLearner: you configure OSPF"),
        ("Learner: you configure OSPF", "", "Learner: you configure OSPF"),
    ],
)
def test_the_learner_stands_before_the_authors_text(before: str, learner: str, after: str) -> None:
    assert described(before, learner) == after


@given(TEXTS, LEARNERS, LEARNERS)
@example("\n\nOSPF", "alice", "bob")
def test_only_the_last_learner_is_named_and_the_text_comes_back(text: str, one: str, other: str) -> None:
    own = described(text, "")
    assert described(own, "") == own
    assert described(described(own, one), other) == described(own, other)
    assert described(described(own, one), "") == own


@given(st.integers(DESCRIPTION_CHARS_MAX - 60, DESCRIPTION_CHARS_MAX + 1), LEARNERS)
def test_a_text_without_room_for_the_line_stays_whole(length: int, learner: str) -> None:
    assume(learner)
    found = described("d" * length, learner)
    assert found.endswith("d" * length)
    assert len(found) <= max(length, DESCRIPTION_CHARS_MAX)
