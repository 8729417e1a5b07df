"""The project's own client against the simulated LDS: the whole life of a session, and what goes wrong on the way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from tests.component.lds.conftest import given
from tests.simulators.cml.plain import eventually
from tests.support.lds_simulator import FORM, TOKEN
from vkprovider.lablet.archives import Verdict
from vkprovider.labs.lds.client import LdsClient, open_deployment
from vkprovider.labs.lds.dialect import Full, Lacking
from vkprovider.labs.lds.grader import Grading, HttpGrader
from vkprovider.labs.lds.wire import LabSessionInfo
from vkprovider.labs.pure.topology.devices import DeviceAccessInfo
from vkprovider.labs.settings.services import GraderSettings
from vkprovider.platform.errors import NotFound, OutsideError, Throttled, Unauthorized, Unavailable
from vkprovider.rest.dialect import may_have_happened
from vkpsim.http.faults import Fault, Kind
from vkpsim.lds.grading import Check, Grader
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

WORKSTATION = DeviceAccessInfo("workstation", "vnc", "10.0.1.50", 10012, "vnc://10.0.1.50:10012", "cisco", "cisco")


@asynccontextmanager
async def both(token: str = TOKEN, **settings: int | bool) -> AsyncIterator[tuple[LdsSimulator, LdsClient]]:
    """Run a simulator, and connect a client."""
    async with LdsSimulator(LdsSettings(token=TOKEN, **settings)) as simulator:  # type: ignore[arg-type]
        client = open_deployment("sim", simulator.url, token=given(token), timeout_s=10)
        yield simulator, client
        await client.close()


async def create(client: LdsClient, key: str = "uid-1", form: str = FORM) -> LabSessionInfo:
    now = datetime.now(UTC)
    return await client.create_session_with_part(
        "alice", now, now + timedelta(hours=1), form, client_key=key, owner="cluster-1"
    )


async def test_from_create_to_archive() -> None:
    """R000-100 … R000-105, R000-108, R000-109."""
    async with both() as (simulator, client):
        made = await create(client)
        assert (made.state, made.client_key, made.owner) == ("PENDING", "uid-1", "cluster-1")
        await client.set_devices(made.id, [WORKSTATION])
        [device] = simulator.world.sessions[made.id].devices
        assert (device.name, device.protocol, device.uri, device.password) == (
            "workstation",
            "vnc",
            "vnc://10.0.1.50:10012",
            "cisco",
        )
        assert (await client.get_session_info(made.id)).login_url == await client.get_login_url(made.id)
        session = simulator.world.sessions[made.id]
        simulator.world.log_in(simulator.now(), session)
        simulator.world.answer(simulator.now(), session, "task-1", [1, 2])
        simulator.world.say(simulator.now(), session, 5, None)
        simulator.world.finish(simulator.now(), session)
        assert (await client.get_session_info(made.id)).finished
        assert (await client.collect_responses(made.id)).responses[0].answer == [1, 2]
        by_session, by_form = (
            await client.collect_user_feedback_by_session(made.id),
            await client.collect_user_feedback_by_form(FORM),
        )
        assert by_session.entries == by_form.entries
        assert by_session.entries[0].rating == 5
        assert (await client.refresh_content(FORM)).version == "1"
        assert [one.id for one in await client.list_sessions(owner="cluster-1")] == [made.id]
        for _ in range(2):
            await client.archive_session(made.id)
        await client.archive_session("never-was")
        assert await client.list_sessions(owner="cluster-1") == ()
        assert (await client.get_session_info(made.id)).archived


async def create_through(kind: Kind, *, client_keys: bool) -> tuple[OutsideError | None, int]:
    """Create a session through a fault; give what the client got, and how many sessions there are."""
    async with both(client_keys=client_keys) as (simulator, client):
        fault = Fault(kind=kind, route="^POST .*/sessions$", count=1, status=503, delay_s=0.2)
        simulator.faults.add(fault, simulator.now())
        try:
            made = await create(client)
        except OutsideError as error:
            return error, len(simulator.world.sessions)
        assert made.id in simulator.world.sessions
        return None, len(simulator.world.sessions)


@pytest.mark.parametrize("kind", ["lost_answer", "drop", "status", "delay"])
async def test_with_client_keys_a_create_is_repeated_and_makes_one_session(kind: Kind) -> None:
    """R000-110."""
    assert await create_through(kind, client_keys=True) == (None, 1)


@pytest.mark.parametrize(("kind", "sessions"), [("lost_answer", 1), ("drop", 0), ("status", 0)])
async def test_without_client_keys_a_create_is_sent_once_and_its_end_is_open(kind: Kind, sessions: int) -> None:
    """R000-110."""
    error, made = await create_through(kind, client_keys=False)
    assert error is not None
    assert may_have_happened(error)
    assert made == sessions


async def test_what_the_simulator_refuses_the_client_understands() -> None:
    async with both(capacity=1, owners=False) as (simulator, client):
        made = await create(client)
        with pytest.raises(Full):
            await create(client, "uid-2")
        with pytest.raises(Lacking):
            await client.list_sessions(owner="cluster-1")
        with pytest.raises(NotFound):
            await client.get_session_info("none")
        await client.archive_session(made.id)
        with pytest.raises(OutsideError, match="archived"):
            await client.set_devices(made.id, [WORKSTATION])
        simulator.endpoint.token = "changed"
        with pytest.raises(Unauthorized):
            await client.get_session_info(made.id)


async def verdict_of(client: HttpGrader, grading: Grading) -> Verdict | None:
    try:
        return await client.grade(grading)
    except Throttled:
        return None


async def test_the_grader_is_asked_again_until_it_has_a_verdict() -> None:
    checks = (Check(device="R1", matches="^router ospf 1$", points=60), Check(item="task-1", matches="10", points=40))
    grader = Grader("checks", checks, takes_s=0.2)
    lablet = {"uid": "uid-1", "name": "exam-1", "namespace": "exams"}
    answered = [{"part_id": "p", "item": "task-1", "answer": "20"}]
    grading = Grading("uid-1.1.1", lablet, {"R1": "router ospf 1\n"}, failures={"R2": "not booted"}, responses=answered)
    async with LdsSimulator(LdsSettings(token=TOKEN), grader=grader) as simulator:
        client = HttpGrader(GraderSettings(url=f"{simulator.url}/grade", token=TOKEN, timeout_s=10))
        with pytest.raises(Throttled) as caught:
            await client.grade(grading)
        assert caught.value.after_s == 1
        verdict = await eventually(lambda: verdict_of(client, grading))
        assert (verdict.passed, verdict.message) == (False, "score 60 of 100: task-1: no 10")
        await client.close()


async def test_an_lds_that_is_down_is_unavailable() -> None:
    async with both() as (simulator, client):
        simulator.faults.add(Fault(kind="status", status=503), simulator.now())
        with pytest.raises(Unavailable):
            await create(client)
