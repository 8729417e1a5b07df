"""Places: so many in all, so many of one caller, and what is open is woken when the replica ends."""

import asyncio
from contextlib import ExitStack

import pytest

from vkprovider.platform.http.open import Places


class NoPlaceError(Exception):
    """There is no place."""

    def __init__(self, own: bool) -> None:  # noqa: FBT001 (as `Places` calls it)
        super().__init__()
        self.own = own


def places() -> Places:
    return Places(3, 2, NoPlaceError)


def test_one_caller_has_as_many_as_one_may() -> None:
    its = places()
    with its.taken("ann"), its.taken("ann"):
        with pytest.raises(NoPlaceError) as refused, its.taken("ann"):
            pass
        assert refused.value.own
        with its.taken("ben"):
            assert len(its) == 3
    with its.taken("ann"), its.taken("ann"):
        assert len(its) == 2


def test_all_callers_have_as_many_as_there_are() -> None:
    its = places()
    with its.taken("ann"), its.taken("ben"), its.taken("cem"):
        with pytest.raises(NoPlaceError) as refused, its.taken("dan"):
            pass
        assert not refused.value.own
    assert len(its) == 0


def test_a_place_is_free_again_after_a_fault() -> None:
    its = places()
    for _ in range(5):
        with pytest.raises(ValueError, match="fault"), its.taken("ann"):
            raise ValueError("fault")
    assert len(its) == 0


async def test_the_end_wakes_what_is_open_and_what_begins_later() -> None:
    its, first, gone, later = places(), asyncio.Event(), asyncio.Event(), asyncio.Event()
    with ExitStack() as stack:
        with its.taken("ann", gone):
            pass
        stack.enter_context(its.taken("ann", first))
        assert not its.is_closed
        its.close()
        assert (first.is_set(), gone.is_set(), its.is_closed) == (True, False, True)
        stack.enter_context(its.taken("ann", later))
        assert later.is_set()
