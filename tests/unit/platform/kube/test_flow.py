"""In which order requests go to the API server: by lane, none of them starving; nothing while it asked for silence."""

import asyncio
import itertools

import pytest

from vkprovider.platform.errors import Throttled
from vkprovider.platform.kube.flow import Flow, Lane


async def queue(flow: Flow, *lanes: Lane) -> tuple[list[Lane], asyncio.Event, list[asyncio.Task[None]]]:
    """Queue one request of each lane behind one that holds the only turn until the event is set."""
    sent: list[Lane] = []
    free = asyncio.Event()

    async def hold() -> None:
        async with flow.turn(Lane.WORK):
            await free.wait()

    async def send(lane: Lane) -> None:
        async with flow.turn(lane):
            sent.append(lane)

    tasks = [asyncio.create_task(hold())]
    await asyncio.sleep(0)
    for lane in lanes:
        tasks.append(asyncio.create_task(send(lane)))
        await asyncio.sleep(0)
    return sent, free, tasks


async def test_what_finishes_a_lablet_goes_before_work_and_news_go_last() -> None:
    flow = Flow(1)
    sent, free, tasks = await queue(flow, Lane.NEWS, Lane.WORK, Lane.RESULT, Lane.WORK, Lane.RESULT)
    assert (flow.busy, sent) == (True, [])
    assert (flow.waiting, flow.limit) == ({"result": 2, "work": 2, "news": 1}, 1)
    free.set()
    await asyncio.gather(*tasks)
    assert sent == [Lane.RESULT, Lane.RESULT, Lane.WORK, Lane.WORK, Lane.NEWS]
    assert (flow.busy, flow.in_flight) == (False, 0)


async def test_leases_never_wait() -> None:
    flow = Flow(1)
    sent, free, tasks = await queue(flow, Lane.AT_ONCE)
    assert sent == [Lane.AT_ONCE]
    free.set()
    await asyncio.gather(*tasks)


async def test_no_lane_starves() -> None:
    clock = itertools.count()
    flow = Flow(1, now=lambda: float(next(clock)))
    sent, free, tasks = await queue(flow, Lane.NEWS, *[Lane.RESULT] * 40)
    free.set()
    await asyncio.gather(*tasks)
    assert sent.index(Lane.NEWS) < 10


async def test_whoever_gives_up_leaves_its_place() -> None:
    flow = Flow(1)
    sent, free, tasks = await queue(flow, Lane.RESULT, Lane.WORK, Lane.NEWS)
    tasks[1].cancel()
    await asyncio.gather(tasks[1], return_exceptions=True)
    free.set()
    await asyncio.gather(*tasks[2:])
    assert sent == [Lane.WORK, Lane.NEWS]
    assert flow.in_flight == 0


async def test_one_that_gives_up_as_it_is_admitted_passes_its_turn_on() -> None:
    flow = Flow(1)
    sent, free, tasks = await queue(flow, Lane.RESULT, Lane.WORK)
    free.set()
    await tasks[0]  # the next is admitted, and has not run yet
    tasks[1].cancel()
    await asyncio.gather(tasks[1], return_exceptions=True)
    await tasks[2]
    assert sent[-1] is Lane.WORK
    assert flow.in_flight == 0


@pytest.mark.looptime
async def test_nothing_but_leases_is_sent_while_the_server_asks_for_silence() -> None:
    loop = asyncio.get_running_loop()
    flow = Flow(4, now=loop.time)
    with pytest.raises(Throttled):
        async with flow.turn(Lane.RESULT):
            raise Throttled("too many requests", after_s=3.0)
    asked_at = loop.time()
    async with flow.turn(Lane.AT_ONCE):
        assert loop.time() == asked_at
    async with flow.turn(Lane.RESULT):
        assert loop.time() - asked_at >= 3.0


@pytest.mark.looptime
async def test_a_namespace_that_may_write_no_more_events_holds_up_nothing_else() -> None:
    loop = asyncio.get_running_loop()
    flow = Flow(4, now=loop.time)
    for _ in range(8):
        with pytest.raises(Throttled):
            async with flow.turn(Lane.NEWS):
                raise Throttled("limit reached on type Namespace", after_s=3.0)
    assert flow.limit == 4
    asked_at = loop.time()
    async with flow.turn(Lane.RESULT):
        assert loop.time() == asked_at


async def test_time_to_answer_is_a_moving_average() -> None:
    now = [0.0]
    flow = Flow(1, now=lambda: now[0])
    for took_s in (0.1, *[1.0] * 100):
        async with flow.turn(Lane.WORK):
            now[0] += took_s
    assert flow.took_s == pytest.approx(1.0, rel=0.01)
