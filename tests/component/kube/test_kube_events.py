"""Events on the real API server: what is written, counted, paced, tried again and dropped."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from tests.component.kube.conftest import until
from tests.support.faultyapi import FaultyApi
from vkprovider.platform.errors import Fenced
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import EventRecorder, ObjectRef

POD = ObjectRef("v1", "Pod", "default", "a", "uid-a")
NODE = ObjectRef("v1", "Node", "", "vnode.w1", "uid-n")


class Clock:
    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def options() -> dict[str, Any]:
    """What a test changes of the recorder's defaults."""
    return {}


@pytest.fixture
def recorder(client: KubeClient, clock: Clock, options: dict[str, Any]) -> EventRecorder:
    wall = partial(_wall, clock)
    return EventRecorder(client, component="vkprovider", instance="r1", now=clock, wall=wall, **options)


def _wall(clock: Clock) -> float:
    return 1_700_000_000 + clock.now_s


@pytest.fixture
async def running(recorder: EventRecorder) -> AsyncIterator[EventRecorder]:
    task = asyncio.create_task(recorder.run())
    yield recorder
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def written(api: FaultyApi) -> list[tuple[str, str]]:
    return [(asked.method, asked.json.get("reason", asked.json.get("count"))) for asked in api.asked]


async def test_what_describe_shows_is_written(api: FaultyApi, running: EventRecorder) -> None:
    running.emit(POD, "Normal", "Pulled", "content is here", action="Starting")
    await until(lambda: running.written_total == 1)
    (asked,) = api.asked
    assert (asked.method, asked.path) == ("POST", "/api/v1/namespaces/default/events")
    event = asked.json
    assert event.pop("metadata")["name"].startswith("a.")
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "a", "uid": "uid-a"},
        "type": "Normal",
        "reason": "Pulled",
        "message": "content is here",
        "action": "Starting",
        "count": 1,
        "firstTimestamp": "2023-11-14T22:30:00Z",
        "lastTimestamp": "2023-11-14T22:30:00Z",
        "source": {"component": "vkprovider", "host": "r1"},
        "reportingComponent": "vkprovider",
        "reportingInstance": "r1",
    }


async def test_events_of_cluster_scoped_objects_go_to_default(api: FaultyApi, running: EventRecorder) -> None:
    running.emit(NODE, "Warning", "WorkerUnreachable", "no answer")
    await until(lambda: running.written_total == 1)
    assert api.asked[0].path == "/api/v1/namespaces/default/events"
    assert api.asked[0].json["metadata"]["namespace"] == "default"
    assert api.asked[0].json["involvedObject"]["namespace"] == ""


async def test_names_differ_and_are_short_enough(api: FaultyApi, running: EventRecorder) -> None:
    long = ObjectRef("v1", "Pod", "default", "x" * 253, "u")
    for n in range(20):
        running.emit(long, "Normal", "Pulled", f"note {n}")
    await until(lambda: running.written_total == 20)
    names = {asked.json["metadata"]["name"] for asked in api.asked}
    assert len(names) == 20
    assert max(map(len, names)) <= 253


async def test_long_notes_are_shortened(api: FaultyApi, running: EventRecorder) -> None:
    running.emit(POD, "Normal", "Pulled", "x" * 5000)
    await until(lambda: running.written_total == 1)
    assert len(api.asked[0].json["message"]) == 1024


async def test_the_same_words_are_counted_once_a_minute(api: FaultyApi, running: EventRecorder, clock: Clock) -> None:
    running.emit(POD, "Warning", "BackOff", "again")
    await until(lambda: running.written_total == 1)
    name = api.asked[0].json["metadata"]["name"]
    for _ in range(5):
        clock.now_s += 1
        running.emit(POD, "Warning", "BackOff", "again")
    clock.now_s += 54
    running.emit(POD, "Warning", "BackOff", "another")  # wakes the loop, which looks at its clock
    await until(lambda: running.written_total == 2)
    assert written(api)[1] == ("POST", "BackOff")
    clock.now_s += 1
    running.emit(POD, "Warning", "BackOff", "a third")
    await until(lambda: running.written_total == 4)
    patch = next(asked for asked in api.asked if asked.method == "PATCH")
    assert patch.path == f"/api/v1/namespaces/default/events/{name}"
    assert patch.json == {"count": 6, "lastTimestamp": "2023-11-14T22:30:05Z"}


async def test_the_same_words_before_they_are_written_are_one_event(api: FaultyApi, recorder: EventRecorder) -> None:
    for _ in range(7):
        recorder.emit(POD, "Warning", "BackOff", "again")
    assert recorder.depth == 1
    assert await recorder.flush(30)
    assert [(asked.method, asked.json["count"]) for asked in api.asked] == [("POST", 7)]


async def test_after_ten_minutes_it_is_another_event(api: FaultyApi, recorder: EventRecorder, clock: Clock) -> None:
    for pause_s in (0, 599, 601):
        clock.now_s += pause_s
        recorder.emit(POD, "Warning", "BackOff", "again")
        assert await recorder.flush(30)
    assert [asked.method for asked in api.asked] == ["POST", "PATCH", "POST"]


async def test_other_words_other_event(api: FaultyApi, recorder: EventRecorder) -> None:
    recorder.emit(POD, "Normal", "Pulled", "x")
    recorder.emit(POD, "Warning", "Pulled", "x")
    recorder.emit(POD, "Normal", "Pulling", "x")
    recorder.emit(POD, "Normal", "Pulled", "y")
    recorder.emit(NODE, "Normal", "Pulled", "x")
    assert await recorder.flush(30)
    assert [asked.method for asked in api.asked] == ["POST"] * 5


async def test_an_event_that_expired_is_made_again(api: FaultyApi, recorder: EventRecorder) -> None:
    for _ in range(2):
        recorder.emit(POD, "Warning", "BackOff", "again")
        api.fault("^PATCH", status=404, message="events not found")
        assert await recorder.flush(30)
    assert [asked.method for asked in api.asked] == ["POST", "PATCH", "POST"]
    assert api.asked[-1].json["count"] == 2


async def test_warnings_go_first(api: FaultyApi, recorder: EventRecorder) -> None:
    recorder.emit(POD, "Normal", "One", "")
    recorder.emit(POD, "Normal", "Two", "")
    recorder.emit(POD, "Warning", "Bad", "")
    recorder.emit(POD, "Warning", "Worse", "")
    assert await recorder.flush(30)
    assert [reason for _, reason in written(api)] == ["Bad", "Worse", "One", "Two"]


@pytest.mark.parametrize("options", [{"queued_max": 4}])
async def test_a_full_queue_drops_the_oldest_normal(api: FaultyApi, recorder: EventRecorder) -> None:
    recorder.emit(POD, "Warning", "Bad", "")
    for n in range(6):
        recorder.emit(POD, "Normal", f"N{n}", "")
    assert (recorder.depth, recorder.dropped_total) == (4, 3)
    for n in range(5):
        recorder.emit(POD, "Warning", f"W{n}", "")
    assert (recorder.depth, recorder.dropped_total) == (4, 8)
    assert recorder.warnings_total == Counter(["Bad", *(f"W{n}" for n in range(5))])
    recorder.emit(POD, "Normal", "N0", "")  # dropped before, so it is no repetition
    assert await recorder.flush(30)
    assert [reason for _, reason in written(api)] == ["W1", "W2", "W3", "W4", "N0"]


@pytest.mark.parametrize("options", [{"queued_max": 1}])
async def test_what_is_said_again_after_it_was_dropped_is_written(api: FaultyApi, recorder: EventRecorder) -> None:
    recorder.emit(POD, "Normal", "One", "")
    recorder.emit(POD, "Normal", "Two", "")
    assert recorder.dropped_total == 1
    assert await recorder.flush(30)
    recorder.emit(POD, "Normal", "One", "")
    assert await recorder.flush(30)
    assert [(asked.json["reason"], asked.json["count"]) for asked in api.asked] == [("Two", 1), ("One", 2)]


async def test_normal_events_of_a_vanished_object_are_dropped(api: FaultyApi, recorder: EventRecorder) -> None:
    recorder.emit(POD, "Normal", "Killing", "")
    recorder.emit(POD, "Warning", "Bad", "")
    recorder.emit(NODE, "Normal", "Other", "")
    recorder.forget("uid-a")
    recorder.forget("never heard of")
    assert recorder.depth == 2
    assert await recorder.flush(30)
    assert [reason for _, reason in written(api)] == ["Bad", "Other"]


@pytest.mark.parametrize("options", [{"backoff_s": (0.0, 0.0)}])
async def test_a_failed_write_is_tried_again(api: FaultyApi, running: EventRecorder) -> None:
    api.fault("^POST", status=503)
    api.fault("^POST", status=429, headers={"Retry-After": "0"})
    running.emit(POD, "Normal", "Pulled", "")
    await until(lambda: running.written_total == 1)
    assert len(api.asked) == 3
    assert len({asked.json["metadata"]["name"] for asked in api.asked}) == 1
    assert running.dropped_total == 0


async def test_a_namespace_that_is_throttled_holds_up_only_its_own_events(
    api: FaultyApi, running: EventRecorder, clock: Clock
) -> None:
    noisy = ObjectRef("v1", "Pod", "kube-system", "b", "uid-b")
    fault = api.fault("^POST .*/namespaces/kube-system/", status=429, headers={"Retry-After": "600"}, count=None)
    for number in range(20):
        running.emit(noisy, "Warning", "Bad", f"number {number}")
    running.emit(POD, "Warning", "Good", "")
    await until(lambda: running.written_total == 1)
    assert fault.met == 1, "what is refused once is not tried with each Event"
    api.heal()
    clock.now_s += 600.0
    running.emit(POD, "Normal", "Then", "")  # the clock stands still for the loop, which looks again now
    await until(lambda: running.written_total == 22)
    assert running.dropped_total == 0


async def test_a_hurry_waits_for_a_throttled_namespace(api: FaultyApi, recorder: EventRecorder, clock: Clock) -> None:
    api.fault("^POST", status=429, headers={"Retry-After": "30"})
    for number in range(8):
        recorder.emit(POD, "Warning", "Bad", f"number {number}")
    flushed = asyncio.create_task(recorder.flush(60))
    await until(lambda: len(api.asked) == 1)
    await asyncio.sleep(0.2)
    assert len(api.asked) == 1
    clock.now_s += 30.0
    assert await flushed
    assert (recorder.written_total, recorder.dropped_total) == (8, 0)


@pytest.mark.parametrize("options", [{"backoff_s": (0.0, 0.0)}])
async def test_a_try_that_got_through_unheard_counts_as_written(api: FaultyApi, running: EventRecorder) -> None:
    """The API server answers the second try that the Event exists."""
    api.fault("^POST", lose=True)
    running.emit(POD, "Normal", "Pulled", "")
    await until(lambda: running.written_total == 1)
    assert [asked.status for asked in api.asked] == [0, 409]


@pytest.mark.parametrize("options", [{"backoff_s": (0.0, 0.0)}])
async def test_after_a_few_tries_it_is_given_up(api: FaultyApi, running: EventRecorder) -> None:
    api.fault("", status=503, count=4)
    running.emit(POD, "Normal", "Pulled", "")
    running.emit(POD, "Normal", "Started", "")
    await until(lambda: running.written_total == 1)
    assert running.dropped_total == 1
    assert written(api)[-1] == ("POST", "Started")


@pytest.mark.parametrize("status", [403, 404, 422])
async def test_a_refused_event_is_not_insisted_on(
    api: FaultyApi, running: EventRecorder, logs: list[dict[str, Any]], status: int
) -> None:
    api.fault("", status=status, message="namespace is being terminated")
    running.emit(POD, "Normal", "Pulled", "")
    await until(lambda: running.dropped_total == 1)
    assert len(api.asked) == 1
    assert [entry["error"] for entry in logs] == ["namespace is being terminated"]


async def test_events_that_may_not_be_written_do_not_hold_up_the_others(
    api: FaultyApi, running: EventRecorder, clock: Clock
) -> None:
    def fenced() -> None:
        raise Fenced("another replica acts for it")

    for number in range(20):
        running.emit(POD, "Warning", "BackOff", f"note {number}", guard=fenced)
    running.emit(NODE, "Normal", "NodeReady", "note")
    await until(lambda: running.written_total == 1)
    assert written(api) == [("POST", "NodeReady")]
    for _ in range(10):
        clock.now_s += 60
        running.emit(NODE, "Normal", "Tick", f"at {clock.now_s}")
        await until(lambda: not running._waiting())  # the Tick and what was due to be sent again
    await until(lambda: running.dropped_total == 20)


async def test_event_waits_for_a_fence_that_opens_again(api: FaultyApi, running: EventRecorder, clock: Clock) -> None:
    closed = True

    def fence() -> None:
        if closed:
            raise Fenced("this replica could not renew its membership")

    running.emit(POD, "Warning", "BackOff", "note", guard=fence)
    await until(lambda: running.depth == 0)
    closed = False
    clock.now_s += 60
    running.emit(NODE, "Normal", "Tick", "now")
    await until(lambda: running.written_total == 2)
    assert ("POST", "BackOff") in written(api)


async def test_writes_are_paced(api: FaultyApi, client: KubeClient) -> None:
    recorder = EventRecorder(client, component="c", instance="i", rate_per_s=1, burst=3)
    task = asyncio.create_task(recorder.run())
    for n in range(10):
        recorder.emit(POD, "Normal", f"N{n}", "")
    await until(lambda: recorder.written_total == 3)
    recorder.emit(POD, "Warning", "Bad", "")
    await until(lambda: recorder.written_total == 4)
    assert written(api)[-1] == ("POST", "Bad")  # it came last, and went before the seven that wait
    task.cancel()
    assert await recorder.flush(30)
    assert recorder.written_total == 11


async def test_flush_finds_what_was_in_hand_when_the_loop_was_cancelled(
    api: FaultyApi, recorder: EventRecorder
) -> None:
    held = api.fault("", delay_s=3600)
    task = asyncio.create_task(recorder.run())
    recorder.emit(POD, "Normal", "Pulled", "")
    await until(lambda: held.met)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await recorder.flush(30)
    assert recorder.written_total == 1
    first, second = (asked.json["metadata"]["name"] for asked in api.asked)
    assert first == second


async def test_flush_has_a_deadline(api: FaultyApi, recorder: EventRecorder) -> None:
    api.fault("", delay_s=3600)
    recorder.emit(POD, "Normal", "Pulled", "")
    assert not await recorder.flush(0.05)


@pytest.mark.parametrize("options", [{"remembered_max": 10}])
async def test_memory_is_bounded(recorder: EventRecorder) -> None:
    for n in range(100):
        recorder.emit(POD, "Normal", f"N{n}", "")
    assert len(recorder._known) == 10
