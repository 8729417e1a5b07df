"""What tests can do to a running simulator: faults, silence, crashes, restarts, changed passwords."""

import asyncio
import time

import aiohttp
import pytest

from tests.simulators.cml.cisco import PASSWORD
from tests.simulators.cml.plain import eventually, plain
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsim.cml.simulation import Settings
from vkpsim.http.faults import Fault


async def test_a_status_is_injected_as_often_as_ordered(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        lab = await client.load()
        order = {"kind": "status", "route": "PUT .*/start$", "status": 503, "count": 2}
        assert (await client.sim("POST", "/faults", order))[0] == 201
        assert (await client.sim("GET", "/faults"))[1][0]["count"] == 2
        answers = [(await client.api("PUT", f"/labs/{lab}/start"))[0] for _ in range(2)]
        assert answers == [503, 503]
        assert await client.states(lab) == {"DEFINED_ON_CORE"}, "a refused request is not carried out"
        assert (await client.api("PUT", f"/labs/{lab}/start"))[0] == 204
        assert (await client.sim("GET", "/faults"))[1] == []
        assert [entry.fault for entry in simulator.log.entries if entry.path.endswith("/start")] == ["status"] * 2 + [
            ""
        ]


async def test_a_dropped_request_is_not_carried_out_but_a_lost_answer_is(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        for kind, labs in (("drop", 0), ("lost_answer", 1)):
            await client.sim("POST", "/faults", {"kind": kind, "route": "/import$", "count": 1})
            with pytest.raises(aiohttp.ClientConnectionError):
                await client.load()
            assert len((await client.api("GET", "/labs"))[1]) == labs
        assert [entry.status for entry in simulator.log.entries if entry.path == "/api/v0/import"] == [0, 0]


async def test_a_delay_comes_after_the_arrival_is_noted(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        await client.sim("POST", "/faults", {"kind": "delay", "route": "/labs$", "delay_s": 0.2, "count": 1})
        await client.api("GET", "/labs")
        entry = simulator.log.entries[-1]
        assert entry.answered_s - entry.arrived_s >= 0.2


@pytest.mark.parametrize("order", [("/faults", {"kind": "delay", "delay_s": 0.3}), ("/latency", {"latency_ms": 300})])
async def test_a_late_request_is_carried_out_although_its_client_gave_up(
    simulator: CmlSimulator, order: tuple[str, object]
) -> None:
    async with plain(simulator) as client:
        await client.sim("PUT" if order[0] == "/latency" else "POST", *order)
        with pytest.raises(TimeoutError):
            await client.api("POST", "/labs", json={"title": "late"}, timeout_s=0.1)
        await eventually(lambda: simulator.simulation.world.labs)


async def test_401_once_and_a_lost_token_for_good(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        await client.sim("POST", "/faults", {"kind": "unauthorized", "count": 1})
        assert [(await client.api("GET", "/labs"))[0] for _ in range(2)] == [401, 200]
        await client.sim("POST", "/faults", {"kind": "lost_token", "count": 1})
        assert [(await client.api("GET", "/labs"))[0] for _ in range(2)] == [401, 401]
        await client.login()
        assert (await client.api("GET", "/labs"))[0] == 200
        await client.sim("DELETE", "/sessions")
        assert (await client.api("GET", "/labs"))[0] == 401


async def test_a_silent_route_never_answers_until_the_fault_ends(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        await client.sim("POST", "/faults", {"kind": "silence", "route": "/labs$"})
        with pytest.raises(TimeoutError):
            await client.api("GET", "/labs", timeout_s=0.3)
        await eventually(lambda: not simulator.endpoint.held)
        assert (await client.api("GET", "/users"))[0] == 200
        held = asyncio.create_task(client.api("GET", "/labs"))
        await eventually(lambda: simulator.endpoint.held)
        await client.sim("DELETE", "/faults")
        with pytest.raises(aiohttp.ClientConnectionError):
            await held
        assert (await client.api("GET", "/labs"))[0] == 200


async def test_the_whole_controller_can_be_silent_for_a_while(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        lab = await client.load()
        began = time.monotonic()
        await client.sim("POST", "/silence", {"seconds": 5.0})
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.api("PUT", f"/labs/{lab}/start")
        assert time.monotonic() - began >= 4.5
        assert await client.states(lab) == {"DEFINED_ON_CORE"}


async def test_the_listener_can_close_for_a_while(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        lab, port = await client.load(), simulator.port
        await client.sim("POST", "/silence", {"seconds": 5.0, "mode": "refuse"})
        with pytest.raises(aiohttp.ClientConnectionError):
            await client.api("GET", "/labs")

        async def labs() -> object:
            try:
                return (await client.api("GET", "/labs"))[1]
            except aiohttp.ClientConnectionError:
                return None

        assert await eventually(labs) == [lab]
        assert simulator.port == port


async def test_a_plan_is_in_force_from_the_start() -> None:
    plan = [Fault(kind="status", route="/labs$", status=502, rate=0.5)]

    async def statuses() -> list[int]:
        async with (
            CmlSimulator(Settings(password=PASSWORD, seed=3), faults=plan) as simulator,
            plain(simulator) as client,
        ):
            return [(await client.api("GET", "/labs"))[0] for _ in range(20)]

    first = await statuses()
    assert set(first) == {200, 502}
    assert await statuses() == first


async def test_devices_crash_and_hosts_restart(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        lab = await client.load()
        await client.api("PUT", f"/labs/{lab}/start")
        await client.until(lab, "BOOTED")
        assert (await client.sim("POST", f"/nodes/{lab}/h0/crash"))[0] == 204
        assert await client.states(lab) == {"BOOTED", "STOPPED"}
        assert (await client.sim("POST", f"/nodes/{lab}/gone/crash"))[0] == 404
        await client.sim("POST", "/reboot")
        assert await client.states(lab) == {"STOPPED"}
        assert (await client.api("GET", f"/labs/{lab}/state"))[1] == "STOPPED"
        await client.api("PUT", f"/labs/{lab}/start")
        await client.sim("POST", "/compute", {"connected": False})
        assert await client.states(lab) == {"DISCONNECTED"}
        await client.sim("POST", "/compute", {"connected": True})
        await client.until(lab, "BOOTED")


async def test_licences_and_passwords_change(simulator: CmlSimulator) -> None:
    async with plain(simulator) as client:
        await client.sim("POST", "/licence", {"quota": 1})
        lab = await client.load()
        await client.api("PUT", f"/labs/{lab}/start")
        await client.until(lab, "BOOTED", "QUEUED")
        await client.sim("POST", "/licence", {"quota": 2})
        await client.until(lab, "BOOTED")
        await client.sim("PUT", "/latency", {"latency_ms": 1})
        assert (await client.sim("PUT", "/password", {"password": "changed"}))[0] == 204
        assert (await client.api("GET", "/labs"))[0] == 401
        with pytest.raises(AssertionError):
            await client.login(PASSWORD)
        await client.login("changed")
        assert await client.states(lab) == {"BOOTED"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/faults", {"kind": "nonsense"}),
        ("/faults", {"kind": "drop", "surprise": 1}),
        ("/faults", {"kind": "drop", "route": "("}),
        ("/faults", {"kind": "drop", "count": 0}),
        ("/silence", {"seconds": 0}),
        ("/licence", {"quota": "many"}),
    ],
)
async def test_orders_that_make_no_sense_are_refused(simulator: CmlSimulator, path: str, body: object) -> None:
    async with plain(simulator) as client:
        assert (await client.sim("POST", path, body))[0] == 400
        assert (await client.api("GET", "/labs"))[0] == 200
