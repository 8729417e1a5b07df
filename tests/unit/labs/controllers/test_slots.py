"""Slots: who holds one, who waits, and no waiting key is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from vkprovider.labs.controllers.worker.worker import Slots


def test_waiting_keys_follow_in_order() -> None:
    slots = Slots(2)
    assert [slots.acquire(key) for key in "abcd"] == [True, True, False, False]
    assert slots.acquire("a")
    assert slots.release("a") == "c"
    assert slots.acquire("c")
    assert slots.release("b") == "d"
    assert slots.acquire("d")
    assert slots.release("c") is None


def test_key_that_does_not_come_gives_way_to_the_next() -> None:
    slots = Slots(1)
    assert [slots.acquire(key) for key in "abc"] == [True, False, False]
    assert slots.release("a") == "b"
    assert slots.release("b") == "c"


def test_release_without_a_slot_lets_no_key_past_the_limit() -> None:
    slots = Slots(1)
    assert [slots.acquire(key) for key in "ab"] == [True, False]
    assert slots.release("x") is None
    assert not slots.acquire("b")


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=80))
def test_at_most_the_limit_hold_a_slot_and_every_waiting_key_gets_one(turns: list[tuple[str, bool]]) -> None:
    slots, holders, wanting = Slots(3), set[str](), set[str]()
    for key, wants in turns:
        if wants and key not in holders:
            wanting.add(key)
            if slots.acquire(key):
                holders.add(key)
                wanting.discard(key)
            assert len(holders) <= 3
        elif key in holders:
            holders.discard(key)
            named = slots.release(key)
            while named is not None and named not in wanting:
                named = slots.release(named)
            if named is not None:
                assert slots.acquire(named)
                holders.add(named)
                wanting.discard(named)
        assert not wanting or len(holders) == 3
