"""Work on many things, a few at a time."""

import asyncio

import pytest

from vkprovider.platform.concurrency import at_most


class Work:
    """Items in hand; each is finished by the test."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.finish: dict[str, asyncio.Future[str]] = {}

    async def do(self, item: str) -> str:
        self.begun.append(item)
        self.finish[item] = asyncio.get_running_loop().create_future()
        try:
            return await self.finish[item]
        except asyncio.CancelledError:
            self.cancelled.append(item)
            raise


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_few_at_once_and_results_in_the_order_of_the_items() -> None:
    work = Work()
    all_done = asyncio.create_task(at_most(2, work.do, "abcd"))
    await _settle()
    assert work.begun == ["a", "b"]
    work.finish["b"].set_result("B")
    await _settle()
    assert work.begun == ["a", "b", "c"]
    for item in "cad":
        work.finish[item].set_result(item.upper())
        await _settle()
    assert await all_done == ["A", "B", "C", "D"]


async def test_nothing_to_do() -> None:
    assert await at_most(2, Work().do, ()) == []


async def test_an_error_ends_what_is_in_hand_and_begins_nothing_else() -> None:
    work = Work()
    all_done = asyncio.create_task(at_most(2, work.do, "abcd"))
    await _settle()
    work.finish["a"].set_exception(ValueError("a fails"))
    with pytest.raises(ValueError, match="a fails"):
        await all_done
    assert (work.begun, work.cancelled) == (["a", "b"], ["b"])


async def test_cancelling_ends_what_is_in_hand() -> None:
    work = Work()
    all_done = asyncio.create_task(at_most(2, work.do, "abcd"))
    await _settle()
    all_done.cancel()
    with pytest.raises(asyncio.CancelledError):
        await all_done
    assert work.cancelled == ["a", "b"]
