"""When the loop rests so that answers come together, and when it does not."""

import asyncio
import contextlib
import time
from collections.abc import Iterator

from vkprovider.kube import coalescing
from vkprovider.kube.coalescing import Coalescing

MANY = coalescing._MANY


class Resting:
    """A rest that is noted, and takes no time unless it is to."""

    def __init__(self, *, really: bool = False) -> None:
        self.rests: list[float] = []
        self._really = really

    def __call__(self, for_s: float) -> None:
        self.rests.append(for_s)
        if self._really:
            time.sleep(for_s)


def coalescing_with(resting: Resting) -> Coalescing:
    """On a clock that stands still, so that a slow machine's work is not long work."""
    return Coalescing(now=lambda: 0.0, rest=resting)


@contextlib.contextmanager
def awaiting(one: Coalescing, count: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(one)
        yield


async def answered(one: Coalescing) -> None:
    """One more request, answered after 2 ms."""
    with one:
        await asyncio.sleep(0.002)


async def quiet() -> None:
    """Until no timer is left."""
    while asyncio.get_running_loop()._scheduled:  # type: ignore[attr-defined]  # noqa: ASYNC110 (timers tell nobody)
        await asyncio.sleep(0.005)


async def test_few_requests_know_neither_rest_nor_timer() -> None:
    resting = Resting()
    with awaiting(coalescing_with(resting), MANY - 1):
        assert not asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        await asyncio.sleep(0.03)
    assert resting.rests == []


async def test_the_loop_rests_while_many_are_awaited_and_no_longer() -> None:
    resting = Resting()
    one = coalescing_with(resting)
    for _ in range(2):
        before = len(resting.rests)
        with awaiting(one, MANY):
            for _ in range(25):
                await answered(one)
        rests = len(resting.rests)
        assert rests >= before + 2
        await quiet()
        assert len(resting.rests) == rests
    assert set(resting.rests) == {coalescing._REST_S}


async def test_the_loop_does_not_rest_for_a_server_that_answers_nothing() -> None:
    resting = Resting()
    one = coalescing_with(resting)
    with awaiting(one, MANY):
        await quiet()
        assert len(resting.rests) == coalescing._FRUITLESS_MAX
        for _ in range(10):
            await answered(one)
        assert len(resting.rests) > coalescing._FRUITLESS_MAX


async def test_others_get_their_turn_between_two_rests() -> None:
    resting = Resting(really=True)
    one = coalescing_with(resting)
    turns = 0
    with awaiting(one, MANY):
        while len(resting.rests) < 10:
            turns += 1
            await answered(one)
    assert turns >= 5


async def test_what_comes_during_long_work_gathers_without_a_rest() -> None:
    resting = Resting()
    one = Coalescing(rest=resting)
    with awaiting(one, MANY):
        for _ in range(5):
            with one:
                time.sleep(0.02)  # noqa: ASYNC251 (work is what keeps the loop)
                await asyncio.sleep(0)
    assert resting.rests == []
