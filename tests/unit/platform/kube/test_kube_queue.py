import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.platform.errors import Fenced, NotFound, Throttled
from vkprovider.platform.kube.due import Priority
from vkprovider.platform.kube.queue import DONE, KeyedQueue, Result

pytestmark = pytest.mark.looptime

Reconcile = Callable[[str], Awaitable[Result]]


def now_s() -> float:
    return asyncio.get_running_loop().time()


class Recorder:
    """A reconciler that takes `takes_s` and notes when it began."""

    def __init__(self, takes_s: float = 0.0, *answers: Result | BaseException) -> None:
        self.takes_s = takes_s
        self.answers = list(answers)
        self.began: list[tuple[str, float]] = []
        self.running: set[str] = set()
        self.most = 0

    async def __call__(self, key: str) -> Result:
        assert key not in self.running, "two runs of one key at once"
        self.running.add(key)
        self.most = max(self.most, len(self.running))
        self.began.append((key, round(now_s(), 3)))
        try:
            await asyncio.sleep(self.takes_s)
        finally:
            self.running.discard(key)
        answer = self.answers.pop(0) if self.answers else DONE
        if isinstance(answer, BaseException):
            raise answer
        return answer


@asynccontextmanager
async def working(reconcile: Reconcile, *, workers: int = 4, **options: Any) -> AsyncIterator[KeyedQueue[str]]:
    queue: KeyedQueue[str] = KeyedQueue(name="test", workers=workers, now=now_s, rand=lambda: 1.0, **options)
    task = asyncio.create_task(queue.run(reconcile))
    await asyncio.sleep(0)
    try:
        yield queue
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_key_added_many_times_runs_once() -> None:
    work = Recorder(1)
    async with working(work) as queue:
        for _ in range(5):
            queue.add("a")
        await asyncio.sleep(10)
    assert work.began == [("a", 0)]


async def test_a_key_added_while_running_runs_once_more_afterwards() -> None:
    work = Recorder(2)
    async with working(work) as queue:
        queue.add("a")
        await asyncio.sleep(1)
        queue.add("a")
        queue.add("a")
        await asyncio.sleep(10)
    assert work.began == [("a", 0), ("a", 2)]


async def test_keys_run_beside_each_other_within_the_limit() -> None:
    work = Recorder(1)
    async with working(work, workers=3) as queue:
        for n in range(7):
            queue.add(f"k{n}")
        await asyncio.sleep(0.5)
        assert queue.depth == 4
        assert queue.oldest_age_s == 0.5
        await asyncio.sleep(10)
        assert queue.depth == queue.oldest_age_s == 0
    assert work.most == 3
    assert [at for _, at in work.began] == [0, 0, 0, 1, 1, 1, 2]
    assert [key for key, _ in work.began] == [f"k{n}" for n in range(7)]


async def test_workers_die_when_there_is_nothing_to_do() -> None:
    work = Recorder(0.1)
    async with working(work) as queue:
        before = len(asyncio.all_tasks())
        for n in range(50):
            queue.add(f"k{n}", after_s=(n + 1) / 100)
        assert len(asyncio.all_tasks()) == before
        await asyncio.sleep(10)
        assert len(asyncio.all_tasks()) == before
    assert len(work.began) == 50


async def test_an_earlier_time_wins_over_a_later_one() -> None:
    work = Recorder()
    async with working(work) as queue:
        queue.add("a", after_s=30)
        queue.add("a", after_s=10)
        queue.add("a", after_s=20)
        await asyncio.sleep(60)
        assert work.began == [("a", 10)]
        queue.add("a", after_s=10)
        queue.add("a")
        await asyncio.sleep(60)
    assert work.began == [("a", 10), ("a", 60)]


async def test_a_result_asks_for_the_next_run() -> None:
    work = Recorder(0, Result(after_s=5), Result(after_s=0.5))
    async with working(work) as queue:
        queue.add("a")
        await asyncio.sleep(60)
    assert work.began == [("a", 0), ("a", 5), ("a", 5.5)]


async def test_what_is_added_while_running_comes_before_a_later_result() -> None:
    work = Recorder(1, Result(after_s=5))
    async with working(work) as queue:
        queue.add("a")
        await asyncio.sleep(0.5)
        queue.add("a", after_s=1)
        await asyncio.sleep(60)
    assert work.began == [("a", 0), ("a", 1.5)]


async def test_a_failure_backs_off_and_a_success_forgives() -> None:
    boom = [RuntimeError("boom")] * 4
    work = Recorder(0, *boom, DONE, RuntimeError("again"))
    async with working(work, backoff_s=(1.0, 4.0)) as queue:
        queue.add("a")
        await asyncio.sleep(100)
        assert [at for _, at in work.began] == [0, 1, 3, 7, 11]
        queue.add("a")
        await asyncio.sleep(100)
        assert [at for _, at in work.began] == [0, 1, 3, 7, 11, 100, 101]
        assert queue.failures_total == 5
        assert queue.runs_total == 7


async def test_a_broken_key_does_not_block_another() -> None:
    ran: list[str] = []

    async def reconcile(key: str) -> Result:
        ran.append(key)
        if key == "broken":
            raise RuntimeError(key)
        return DONE

    async with working(reconcile, workers=1) as queue:
        queue.add("broken")
        queue.add("fine")
        await asyncio.sleep(0.1)
        assert ran == ["broken", "fine"]


async def test_the_servers_wish_for_patience_is_heard() -> None:
    work = Recorder(0, Throttled("slow down", after_s=7))
    async with working(work, backoff_s=(1.0, 4.0)) as queue:
        queue.add("a")
        await asyncio.sleep(100)
    assert work.began == [("a", 0), ("a", 8)]


async def test_a_fenced_key_is_left_alone(logs: list[dict[str, Any]]) -> None:
    work = Recorder(0, Fenced("not ours"))
    async with working(work) as queue:
        queue.add("a")
        await asyncio.sleep(100)
    assert work.began == [("a", 0)]
    assert {entry["log_level"] for entry in logs} == {"debug"}


async def test_failures_are_logged_the_first_time_and_each_doubling(logs: list[dict[str, Any]]) -> None:
    work = Recorder(0, *[NotFound("gone", status=404)] * 9)
    async with working(work, backoff_s=(0.1, 0.1)) as queue:
        queue.add("a")
        await asyncio.sleep(100)
    assert [entry["failures"] for entry in logs] == [1, 2, 4, 8]
    assert {(entry["log_level"], entry["key"], entry["queue"]) for entry in logs} == {("warning", "a", "test")}


async def test_adding_during_a_failed_run_does_not_skip_the_back_off() -> None:
    work = Recorder(1, RuntimeError("boom"))
    async with working(work, backoff_s=(5.0, 30.0)) as queue:
        queue.add("a")
        await asyncio.sleep(0.5)
        queue.add("a")
        await asyncio.sleep(100)
    assert work.began == [("a", 0), ("a", 6)]


async def test_news_during_a_back_off_are_not_kept_waiting() -> None:
    work = Recorder(0, RuntimeError("boom"))
    async with working(work, backoff_s=(20.0, 30.0)) as queue:
        queue.add("a")
        await asyncio.sleep(3)
        queue.add("a")
        await asyncio.sleep(100)
    assert work.began == [("a", 0), ("a", 3)]


async def test_a_cancelled_call_inside_a_run_is_a_failure_of_that_key() -> None:
    work = Recorder(0, asyncio.CancelledError())
    async with working(work, backoff_s=(1.0, 1.0)) as queue:
        queue.add("a")
        await asyncio.sleep(10)
        assert queue.failures_total == 1
    assert work.began == [("a", 0), ("a", 1)]


async def test_forgetting_drops_delays_and_failures() -> None:
    work = Recorder(0, RuntimeError("boom"), RuntimeError("boom"), RuntimeError("boom"))
    async with working(work, backoff_s=(1.0, 30.0)) as queue:
        queue.add("a")
        await asyncio.sleep(2)
        queue.forget("a")
        await asyncio.sleep(100)
        assert [at for _, at in work.began] == [0, 1]
        queue.add("a")
        await asyncio.sleep(100)
    assert [at for _, at in work.began] == [0, 1, 102, 103]


async def test_forgetting_a_running_key_drops_its_result() -> None:
    work = Recorder(1, Result(after_s=1), RuntimeError("boom"))
    async with working(work) as queue:
        for _ in range(2):
            queue.add("a")
            await asyncio.sleep(0.5)
            queue.forget("a")
            await asyncio.sleep(9.5)
        assert work.began == [("a", 0), ("a", 10)]
        queue.add("a")
        await asyncio.sleep(0.5)
        queue.forget("a")
        queue.add("a")
        await asyncio.sleep(10)
    assert work.began == [("a", 0), ("a", 10), ("a", 20), ("a", 21)]


async def test_keys_added_before_the_start_run_after_it() -> None:
    work = Recorder()
    queue: KeyedQueue[str] = KeyedQueue(name="test", workers=2, now=now_s)
    queue.add("a")
    queue.add("b", after_s=5)
    await asyncio.sleep(1)
    assert not work.began
    task = asyncio.create_task(queue.run(work))
    await asyncio.sleep(10)
    task.cancel()
    assert work.began == [("a", 1), ("b", 5)]


async def test_what_was_in_work_when_cancelled_runs_after_a_new_start() -> None:
    work = Recorder(5)
    queue: KeyedQueue[str] = KeyedQueue(name="test", workers=1, now=now_s)
    queue.add("a")
    queue.add("b")
    for _ in range(2):
        task = asyncio.create_task(queue.run(work))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not work.running
    task = asyncio.create_task(queue.run(work))
    assert await queue.drain(60)
    task.cancel()
    assert {key for key, _ in work.began} == {"a", "b"}


async def test_what_was_interrupted_runs_again() -> None:
    recorder = Recorder(1.0)
    async with working(recorder) as queue:
        queue.add("a")
        await asyncio.sleep(0.5)
        queue.interrupt()
        await asyncio.sleep(2.0)
    assert recorder.began == [("a", 0.0), ("a", 0.5)]


async def test_workers_interrupted_before_their_first_step_are_replaced() -> None:
    recorder = Recorder(1.0)
    async with working(recorder, workers=4) as queue:
        for key in "abcd":
            queue.add(key)
        queue.interrupt()
        await asyncio.sleep(2.0)
        assert sorted(recorder.began) == [(key, 0.0) for key in "abcd"]
        queue.add("e")
        assert await queue.drain(5.0)
    assert recorder.began[-1] == ("e", 2.0)


async def test_drain_waits_for_what_is_due_but_not_for_delays() -> None:
    work = Recorder(3)
    async with working(work, workers=1) as queue:
        assert await queue.drain(0)
        queue.add("a")
        queue.add("b")
        queue.add("c", after_s=1000)
        assert not await queue.drain(4)
        assert await queue.drain(4)
        assert now_s() == 6


async def test_waits_and_runs_are_measured() -> None:
    work = Recorder(2, DONE, RuntimeError("boom"), Fenced("no"))
    async with working(work, workers=1, backoff_s=(99, 99), by_key=True) as queue:
        queue.add("a")
        queue.add("b")
        queue.add("c")
        await asyncio.sleep(10)
        assert {outcome: (h.count, h.sum) for outcome, h in queue.ran_s.items()} == {
            "ok": (1, 2),
            "error": (1, 2),
            "fenced": (1, 2),
        }
        assert (queue.waited_s.count, queue.waited_s.sum) == (3, 0 + 2 + 4)
        assert queue.ran_s_of is not None
        assert {key: h.sum for key, h in queue.ran_s_of.items()} == {"a": 2, "b": 2, "c": 2}
        queue.forget("b")
        queue.add("a")
        await asyncio.sleep(1)
        queue.forget("a")  # while it runs
        await asyncio.sleep(5)
        assert list(queue.ran_s_of) == ["c"]
        assert queue.ran_s["ok"].count == 2


async def test_the_heap_does_not_grow_with_keys_that_are_moved_forward() -> None:
    work = Recorder(0, *[Result(after_s=1000)] * 5000)
    async with working(work) as queue:
        for _ in range(5000):
            queue.add("a")
            await asyncio.sleep(0.001)
        assert len(queue._heap) < 1000
    assert len(work.began) == 5000


Step = tuple[str, float, float]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0, 0, 0.5, 2, 7]), st.sampled_from([0, 0, 0.3, 1, 4])))
)
def test_every_addition_is_followed_by_a_run_in_time(steps: list[Step]) -> None:
    """Serial per key (the recorder asserts it), and no addition is lost or late by more than the runs before it."""
    import looptime  # noqa: PLC0415 (only this test makes its own loop)

    takes_s = 1.5

    async def scenario() -> None:
        work = Recorder(takes_s)
        asked: list[tuple[str, float, float]] = []
        async with working(work, workers=3) as queue:
            for key, after_s, pause_s in steps:
                queue.add(key, after_s=after_s)
                asked.append((key, now_s(), after_s))
                await asyncio.sleep(pause_s)
            await asyncio.sleep(100)
            assert queue.depth == 0
        for key, at_s, after_s in asked:
            runs = [began for ran, began in work.began if ran == key and began >= at_s - 1e-3]
            assert runs, f"{key} added at {at_s} never ran"
            assert min(runs) <= at_s + after_s + takes_s + 1e-2
        assert len(work.began) <= len(steps)

    loop = looptime.new_event_loop()
    try:
        loop.run_until_complete(scenario())
    finally:
        loop.close()


async def test_a_key_that_keeps_asking_for_its_next_run_waits_longer_each_time(logs: list[dict[str, Any]]) -> None:
    runs: list[tuple[str, float]] = []

    async def reconcile(key: str) -> Result:
        runs.append((key, round(now_s(), 3)))
        return Result(0.0) if key == "pill" else DONE

    async with working(reconcile, workers=1) as queue:
        queue.add("pill")
        await asyncio.sleep(60)
        began = [at_s for key, at_s in runs if key == "pill"]
        pauses = [after - before for before, after in itertools.pairwise(began)]
        assert pauses == sorted(pauses)
        assert len(began) < 15
        queue.add("well")
        await asyncio.sleep(0.01)
        assert runs[-1][0] == "well"
        assert queue.rushes_total == len(began)
        queue.add("pill")
        await asyncio.sleep(0.01)
        assert runs[-1][0] == "pill", "a change is looked at without delay"
    assert [entry["key"] for entry in logs if "next turn at once" in entry["event"]]


async def test_a_longer_wish_ends_a_row_of_short_ones() -> None:
    recorder = Recorder(0.0, *[Result(0.0)] * 5, Result(1.0), Result(0.0), DONE)
    async with working(recorder) as queue:
        queue.add("a")
        await asyncio.sleep(30)
    began = [at_s for _, at_s in recorder.began]
    assert round(began[-1] - began[-2], 3) == 0.1


async def test_what_was_begun_goes_on_first_and_what_is_only_looked_at_again_comes_last() -> None:
    work = Recorder(1)
    async with working(work, workers=1) as queue:
        queue.add("busy")
        await asyncio.sleep(0.5)
        queue.add("resync", priority=Priority.RESYNC)
        queue.add("changed")
        queue.add("begun", priority=Priority.BEGUN)
        queue.add("changed too", priority=Priority.RESYNC)
        queue.add("changed too")
        queue.add("begun", priority=Priority.RESYNC)
        assert (queue.depth, queue.oldest_age_s) == (4, 0)
        await asyncio.sleep(10)
    assert [key for key, _ in work.began] == ["busy", "begun", "changed", "changed too", "resync"]


async def test_a_key_added_while_running_keeps_the_highest_priority_of_those_it_was_added_with() -> None:
    work = Recorder(1)
    async with working(work, workers=1) as queue:
        queue.add("a")
        await asyncio.sleep(0.5)
        queue.add("b")
        queue.add("a", priority=Priority.BEGUN)
        queue.add("a", priority=Priority.RESYNC)
        await asyncio.sleep(10)
    assert [key for key, _ in work.began] == ["a", "a", "b"]


async def test_an_interrupted_key_keeps_its_priority() -> None:
    work = Recorder(1)
    async with working(work, workers=1) as queue:
        queue.add("resync", priority=Priority.RESYNC)
        await asyncio.sleep(0.5)
        queue.add("changed")
        queue.interrupt()
        await asyncio.sleep(10)
    assert [key for key, _ in work.began] == ["resync", "changed", "resync"]
