"""The table of states."""

import pytest

from vkprovider.lablet.standing import ALLOWED, State, allowed


def test_every_state_is_in_the_table() -> None:
    """R000-023, C57."""
    assert set(ALLOWED) == set(State)
    assert {s.value for s in State} >= {
        *("INSTANTIATING", "READY", "RUNNING", "COLLECTING", "GRADING", "STOPPED", "TERMINATED", "FAILED"),
    }


def test_the_end_is_the_end() -> None:
    for last in (State.TERMINATED, State.FAILED):
        assert not ALLOWED[last]
        assert not allowed(last, State.READY)


def test_any_state_may_be_met_first_and_repeated() -> None:
    for state in State:
        assert allowed(None, state)
        assert allowed(state, state)


@pytest.mark.parametrize(
    ("old", "new", "may"),
    [
        (State.INSTANTIATING, State.READY, True),
        (State.READY, State.RUNNING, True),
        (State.READY, State.INSTANTIATING, True),
        (State.RUNNING, State.COLLECTING, True),
        (State.COLLECTING, State.GRADING, True),
        (State.STOPPING, State.TERMINATED, True),
        (State.READY, State.TERMINATED, False),
        (State.INSTANTIATING, State.RUNNING, True),  # a session goes on when its lab is back
        (State.SCHEDULED, State.RUNNING, False),
        (State.PENDING, State.READY, False),
        (State.STOPPING, State.READY, False),
        (State.GRADING, State.COLLECTING, False),
    ],
)
def test_what_may_follow_what(old: State, new: State, *, may: bool) -> None:
    """R000-014 to R000-018."""
    assert allowed(old, new) is may


def test_from_everywhere_there_is_a_way_to_an_end() -> None:
    for state in State:
        reached, todo = {state}, [state]
        while todo:
            for following in ALLOWED[todo.pop()] - reached:
                reached.add(following)
                todo.append(following)
        assert reached & {State.TERMINATED, State.FAILED}
