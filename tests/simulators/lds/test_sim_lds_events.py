"""The events of the simulated LDS, as a receiver gets them (R000-024, R000-025)."""

import asyncio
import datetime as dt
import hashlib
import hmac
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.simulators.cml.plain import eventually
from tests.support.lds_simulator import EVENT_TOKEN, Arrived, LdsClient, Sink, lds_client, sink
from vkpsim.lds.events.cloudevents import Mode
from vkpsim.lds.events.sender import EventSettings
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings


@asynccontextmanager
async def sending(
    *targets: Sink, mode: Mode = "structured", **more: Any
) -> AsyncIterator[tuple[LdsSimulator, LdsClient]]:
    """Run an LDS that sends to these, and tries again soon."""
    options: dict[str, Any] = {"first_wait_s": 0.05, "longest_wait_s": 0.2, "timeout_s": 2.0, **more}
    state = options.pop("state", None)
    events = EventSettings(targets=tuple(one.url for one in targets), token=EVENT_TOKEN, mode=mode, **options)
    async with LdsSimulator(LdsSettings(), events=events, state=state) as simulator, lds_client(simulator.url) as lds:
        yield simulator, lds


async def play(lds: LdsClient, *acts: str, **more: object) -> str:
    """Make a session, and do this to it."""
    session = str((await lds.create(**more)).body["id"])  # type: ignore[arg-type]
    for act in acts:
        await lds.sim("POST", f"/sessions/{session}/{act}")
    return session


def types(arrived: list[Arrived]) -> list[str]:
    return [one.event["type"] for one in arrived]


@pytest.mark.parametrize(
    ("mode", "content_type"),
    [
        ("structured", "application/cloudevents+json"),
        ("binary", "application/json"),
        ("batch", "application/cloudevents-batch+json"),
    ],
)
async def test_started_and_ended_in_each_content_mode(mode: Mode, content_type: str) -> None:
    async with sink() as target, sending(target, mode=mode) as (simulator, lds):
        session = await play(lds, "log-in", client_key="uid-1")
        [started] = await target.take()
        await lds.sim("POST", f"/sessions/{session}/finish")
        _, ended = await target.take(2)
        assert (started.content_type, started.authorization) == (content_type, f"Bearer {EVENT_TOKEN}")
        assert (started.event["type"], ended.event["type"]) == ("session.started", "session.ended")
        assert started.event["source"] == simulator.url
        assert started.event["subject"] == ended.event["subject"] == session
        data = started.event["data"]
        assert (data["session_id"], data["state"], data["username"]) == (session, "RUNNING", "alice")
        assert data["client_key"] == "uid-1"
        assert (ended.event["data"]["state"], ended.event["data"]["reason"]) == ("USER_FINISHED", "user")


@pytest.mark.parametrize("mode", ["structured", "batch"])
async def test_events_are_signed_instead_of_showing_the_secret(mode: Mode) -> None:
    async with sink() as target, sending(target, mode=mode, signed=True) as (_, lds):
        await lds.sim("POST", "/event-faults", {"kind": "forge", "count": 1})
        await play(lds, "log-in")
        forged, genuine = await target.take(2)
        expected = "sha256=" + hmac.new(EVENT_TOKEN.encode(), genuine.body, hashlib.sha256).hexdigest()
        assert (genuine.authorization, genuine.signature) == ("", expected)
        assert forged.signature != expected


async def test_a_timeslot_ends_while_nobody_asks() -> None:
    async with sink() as target, sending(target) as (_, lds):
        session = await play(lds, "log-in")  # in a slot that is long enough to log in, however busy the machine is
        now = dt.datetime.now(dt.UTC)
        slot = {"timeslot_start": now.isoformat(), "timeslot_end": (now + dt.timedelta(seconds=0.3)).isoformat()}
        assert (await lds.ask("PUT", f"/sessions/{session}/timeslot", slot)).status == 204
        _, ended = await target.take(2)
        assert ended.event["data"]["reason"] == "timeslot"


async def test_archiving_a_running_session_ends_it() -> None:
    async with sink() as target, sending(target) as (_, lds):
        session = await play(lds, "log-in")
        await target.take()
        await lds.ask("POST", f"/sessions/{session}/archive")
        _, ended = await target.take(2)
        assert (ended.event["data"]["state"], ended.event["data"]["reason"]) == ("ARCHIVED", "archived")


async def test_an_event_is_sent_again_until_it_is_taken() -> None:
    async with sink(404, 500, (429, {"Retry-After": "0"})) as target, sending(target) as (simulator, lds):
        await play(lds, "log-in")
        arrived = await target.take(4)
        assert len({one.event["id"] for one in arrived}) == 1
        await eventually(lambda: not simulator.sender.undelivered)
        deliveries = await lds.sim("GET", "/deliveries")
        assert [delivery["status"] for delivery in deliveries] == [404, 500, 429, 204]
        assert await lds.sim("GET", "/deliveries?since=3") == deliveries[3:]
        pauses = [b["sent_unix_s"] - a["answered_unix_s"] for a, b in itertools.pairwise(deliveries)]
        assert pauses[0] >= 0.04
        assert pauses[1] >= 0.08, "each pause is longer than the one before"


async def test_a_receiver_that_asks_for_time_gets_it() -> None:
    async with sink((503, {"Retry-After": "1"})) as target, sending(target, longest_wait_s=0.6) as (_, lds):
        await play(lds, "log-in")
        await target.take(2)
        first, second = await lds.sim("GET", "/deliveries")
        assert second["sent_unix_s"] - first["answered_unix_s"] >= 0.55


@pytest.mark.parametrize("status", [400, 401, 410, 413, 415, 302])
async def test_what_will_never_be_taken_is_not_sent_again(status: int) -> None:
    async with sink(status) as target, sending(target) as (simulator, lds):
        await play(lds, "log-in", "finish")
        await target.until(lambda arrived: "session.ended" in types(arrived))
        await eventually(lambda: not simulator.sender.undelivered)
        assert len(target.arrived) == 2


async def test_an_event_that_nobody_takes_is_given_up() -> None:
    async with sink(*[503] * 50) as target, sending(target, give_up_s=1.5) as (simulator, lds):
        await play(lds, "log-in")
        await eventually(lambda: not simulator.sender.undelivered)
        assert 2 <= len(target.arrived) < 20


async def test_targets_take_turns_and_a_dead_one_holds_nothing_up() -> None:
    async with sink() as one, sink() as other, sending(one, other) as (_, lds):
        for _ in range(3):
            await play(lds, "log-in", "finish")
        await one.take(3)
        await other.take(3)
    async with sink() as alive, sending(one, alive) as (_, lds):
        await lds.sim("POST", "/event-faults", {"kind": "delay", "delay_s": 0.2})
        await play(lds, "log-in", "finish")  # both at once: neither may meet the dead one at each of its tries
        assert set(types(await alive.take(2))) == {"session.started", "session.ended"}
        assert any(delivery.get("error") for delivery in await lds.sim("GET", "/deliveries"))


async def test_events_wait_for_a_target() -> None:
    async with sink() as target, sending() as (_, lds):
        session = await play(lds, "log-in")
        assert [event["session"] for event in await lds.sim("GET", "/undelivered")] == [session]
        await lds.sim("PUT", "/targets", {"targets": [target.url]})
        assert types(await target.take()) == ["session.started"]


async def test_events_are_duplicated_reordered_lost_and_forged_by_plan() -> None:
    async with sink() as target, sending(target) as (simulator, lds):
        await lds.sim("POST", "/event-faults", {"kind": "duplicate", "type": "started", "copies": 2, "count": 1})
        await play(lds, "log-in")
        arrived = await target.take(3)
        assert len({one.event["id"] for one in arrived}) == 1
        target.arrived.clear()

        await lds.sim("POST", "/event-faults", {"kind": "reorder", "type": "started", "delay_s": 60, "count": 1})
        await play(lds, "log-in", "finish")
        assert types(await target.take(2)) == ["session.ended", "session.started"]
        target.arrived.clear()

        await lds.sim("POST", "/event-faults", {"kind": "lose", "type": "started", "count": 1})
        await play(lds, "log-in", "finish")
        assert types(await target.take()) == ["session.ended"]
        await eventually(lambda: not simulator.sender.undelivered)
        target.arrived.clear()

        await lds.sim("POST", "/event-faults", {"kind": "forge", "count": 1})
        await play(lds, "log-in")
        forged, genuine = await target.take(2)
        assert (forged.authorization, genuine.authorization) == ("Bearer forged", f"Bearer {EVENT_TOKEN}")
        assert await lds.sim("GET", "/event-faults") == []


async def test_a_delayed_event_comes_late_and_a_held_one_not_later_than_its_delay() -> None:
    async with sink() as target, sending(target) as (_, lds):
        for kind in ("delay", "reorder"):
            await lds.sim("POST", "/event-faults", {"kind": kind, "delay_s": 0.3})
            began = asyncio.get_running_loop().time()
            await play(lds, "log-in")
            await target.take()
            assert asyncio.get_running_loop().time() - began >= 0.3
            target.arrived.clear()
            await lds.sim("DELETE", "/event-faults")


@pytest.mark.parametrize("order", [{"kind": "vanish"}, {"kind": "lose", "type": "("}, {"kind": "lose", "count": 0}])
async def test_orders_that_make_no_sense_are_refused(order: object) -> None:
    async with sending() as (_, lds):
        async with lds.http.post(f"{lds.url}/sim/event-faults", json=order) as response:
            assert response.status == 400
        async with lds.http.post(f"{lds.url}/sim/sessions/none/log-in") as response:
            assert response.status == 404
        session = await play(lds)
        for act, status in (("finish", 409), ("dance", 400)):
            async with lds.http.post(f"{lds.url}/sim/sessions/{session}/{act}") as response:
                assert response.status == status


async def test_events_that_nobody_took_are_sent_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "lds.json"
    async with sink(*[503] * 1000) as deaf, sending(deaf, state=path) as (_, lds):
        await play(lds, "log-in", "finish")
        await deaf.take(2)
    async with sink() as target, sending(target, state=path):
        assert set(types(await target.take(2))) == {"session.started", "session.ended"}
        assert {one.event["id"] for one in target.arrived} == {one.event["id"] for one in deaf.arrived}
