"""Room for a few at once: who is in, who waits, and nobody is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from vkprovider.controllers.worker.room import Room


def test_those_who_wait_come_in_order() -> None:
    room = Room(2)
    assert [room.enter(key) for key in "abcd"] == [True, True, False, False]
    assert room.enter("a")
    assert room.leave("a") == "c"
    assert room.enter("c")
    assert room.leave("b") == "d"
    assert room.enter("d")
    assert room.leave("c") is None


def test_one_that_is_named_and_does_not_want_to_come_gives_way_to_the_next() -> None:
    room = Room(1)
    assert [room.enter(key) for key in "abc"] == [True, False, False]
    assert room.leave("a") == "b"
    assert room.leave("b") == "c"


def test_a_turn_that_was_never_in_lets_nobody_past_the_limit() -> None:
    room = Room(1)
    assert [room.enter(key) for key in "ab"] == [True, False]
    assert room.leave("x") is None
    assert not room.enter("b")


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.booleans()), max_size=80))
def test_never_more_than_the_limit_are_in_and_all_come_in_the_end(turns: list[tuple[str, bool]]) -> None:
    room, inside, wanting = Room(3), set[str](), set[str]()
    for key, wants in turns:
        if wants and key not in inside:
            wanting.add(key)
            if room.enter(key):
                inside.add(key)
                wanting.discard(key)
            assert len(inside) <= 3
        elif key in inside:
            inside.discard(key)
            named = room.leave(key)
            while named is not None and named not in wanting:
                named = room.leave(named)
            if named is not None:
                assert room.enter(named)
                inside.add(named)
                wanting.discard(named)
        assert not wanting or len(inside) == 3
