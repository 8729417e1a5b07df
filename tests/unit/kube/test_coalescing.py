"""When the loop rests so that answers come together, and when it does not."""

import asyncio
import contextlib
import time
from collections.abc import Iterator

import pytest

from vkprovider.kube import coalescing
from vkprovider.kube.coalescing import Coalescing

MANY = coalescing._MANY


class Resting:
    """A rest that is noted and takes no time."""

    def __init__(self) -> None:
        self.rests: list[float] = []

    def __call__(self, for_s: float) -> None:
        self.rests.append(for_s)


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


def timers() -> int:
    return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]


async def test_few_requests_know_neither_rest_nor_timer() -> None:
    resting = Resting()
    one = Coalescing(rest=resting)
    with awaiting(one, MANY - 1):
        assert timers() == 0
        await asyncio.sleep(0.03)
    assert resting.rests == []


async def test_the_loop_rests_while_many_are_awaited_and_no_longer() -> None:
    resting = Resting()
    one = Coalescing(rest=resting)
    for _ in range(2):
        before = len(resting.rests)
        with awaiting(one, MANY):
            for _ in range(25):
                await answered(one)
        assert len(resting.rests) >= before + 2
        await asyncio.sleep(0.03)
        rests = len(resting.rests)
        await asyncio.sleep(0.03)
        assert len(resting.rests) == rests
        assert timers() == 0
    assert set(resting.rests) == {coalescing._REST_S}


async def test_the_loop_does_not_rest_for_a_server_that_answers_nothing() -> None:
    resting = Resting()
    one = Coalescing(rest=resting)
    with awaiting(one, MANY):
        await asyncio.sleep(0.2)
        rests = len(resting.rests)
        assert rests <= coalescing._FRUITLESS_MAX
        assert timers() == 0
        for _ in range(10):
            await answered(one)
        assert len(resting.rests) > rests


async def test_others_get_their_turn_between_two_rests() -> None:
    one = Coalescing()
    steps = 0
    with awaiting(one, 3 * MANY):
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            steps += 1
            with one:
                await asyncio.sleep(0)
    assert steps > 3, "the loop did nothing but rest"


@pytest.mark.parametrize(("work_s", "rounds", "rests"), [(0.0005, 100, True), (0.02, 5, False)])
async def test_a_loop_that_is_busy_does_not_rest(work_s: float, rounds: int, *, rests: bool) -> None:
    """What comes during long work has gathered when it is over."""
    resting = Resting()
    one = Coalescing(rest=resting)
    with awaiting(one, MANY):
        for _ in range(rounds):
            with one:
                time.sleep(work_s)  # noqa: ASYNC251 (work is what keeps the loop)
                await asyncio.sleep(0)
    assert bool(resting.rests) is rests
