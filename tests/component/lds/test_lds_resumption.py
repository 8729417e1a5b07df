"""The client against the simulated LDS: what a controller relies on when it is killed, fenced, or one of several."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.component.lds.conftest import given
from tests.simulators.cml.plain import eventually
from tests.support.lds_simulator import FORM, TOKEN, lds_client
from vkprovider.labs.lds.client import LdsClient, open_deployment
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.dialect import Full, Lacking
from vkprovider.labs.lds.spi import LabDelivery
from vkprovider.labs.lds.wire import LabSessionInfo
from vkprovider.labs.pure.topology.devices import DeviceAccessInfo
from vkprovider.labs.settings.services import LdsSettings as ClientSettings
from vkprovider.platform.errors import (
    Conflict,
    DeadlineExceeded,
    InputError,
    NotFound,
    OutsideError,
    Throttled,
    Unavailable,
)
from vkprovider.rest.dialect import may_have_happened
from vkpsim.http.faults import Fault
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

START = datetime.now(UTC)
END = START + timedelta(hours=1)
DEVICE = DeviceAccessInfo("workstation", "vnc", "10.0.1.50", 10012, "vnc://10.0.1.50:10012", "cisco", "cisco")


@pytest.fixture
async def simulator() -> AsyncIterator[LdsSimulator]:
    async with LdsSimulator(LdsSettings(token=TOKEN)) as simulator:
        yield simulator


@pytest.fixture
async def bare() -> AsyncIterator[LdsSimulator]:
    """One without extensions."""
    async with LdsSimulator(LdsSettings(token=TOKEN, client_keys=False, owners=False)) as simulator:
        yield simulator


@asynccontextmanager
async def connected(simulator: LdsSimulator, *, timeout_s: float = 20.0) -> AsyncIterator[LdsClient]:
    client = open_deployment("a", simulator.url, token=given(TOKEN), timeout_s=timeout_s)
    yield client
    await client.close()


async def create(client: LabDelivery, key: str = "pod-1", username: str = "ann") -> LabSessionInfo:
    return await client.create_session_with_part(username, START, END, FORM, client_key=key, owner="us")


def live(simulator: LdsSimulator) -> list[str]:
    return [session.id for session in simulator.world.sessions.values() if session.state.value != "ARCHIVED"]


def meet(simulator: LdsSimulator, **fault: object) -> None:
    simulator.faults.add(Fault(route="^POST .*/sessions$", **fault), simulator.now())  # type: ignore[arg-type]


async def test_life_of_a_session(simulator: LdsSimulator) -> None:
    """R000-099 … R000-105, R000-109."""
    async with connected(simulator) as client, lds_client(simulator.url) as user:
        made = await create(client)
        await client.set_devices(made.id, [DEVICE])
        await client.set_devices(made.id, [DEVICE])
        assert [device.port for device in simulator.world.session(made.id).devices] == [10012]
        shown = await client.get_session_info(made.id)
        assert (shown.state, shown.owner, shown.client_key) == ("PENDING", "us", "pod-1")
        assert (await client.get_login_url(made.id)).startswith(simulator.url)
        await user.sim("POST", f"/sessions/{made.id}/log-in")
        await user.sim("POST", f"/sessions/{made.id}/answer", {"item": "task-1", "answer": [1], "score": 0.5})
        await user.sim("POST", f"/sessions/{made.id}/say", {"rating": 4, "comment": "short"})
        assert (await client.get_session_info(made.id)).state == "RUNNING"
        await user.sim("POST", f"/sessions/{made.id}/finish")
        assert (await client.get_session_info(made.id)).finished
        [answer] = (await client.collect_responses(made.id)).responses
        [said] = (await client.collect_user_feedback_by_session(made.id)).entries
        assert (answer.item, answer.answer, said.rating) == ("task-1", [1], 4)
        assert (await client.collect_user_feedback_by_form(FORM)).entries == (said,)
        assert [each.id for each in await client.list_sessions(owner="us")] == [made.id]
        for _ in range(2):
            await client.archive_session(made.id)
        assert await client.list_sessions(owner="us") == ()
        with pytest.raises(Conflict, match="SessionArchived"):
            await client.set_devices(made.id, [DEVICE])
        await client.archive_session("never-heard-of")
        with pytest.raises(NotFound):
            await client.get_session_info("never-heard-of")


async def test_content_refresh(simulator: LdsSimulator) -> None:
    async with connected(simulator) as client:
        assert (await client.refresh_content(FORM)).form_qualified_name == FORM


@pytest.mark.parametrize("kind", ["lost_answer", "drop", "status"])
async def test_create_that_got_no_answer_makes_one_session(simulator: LdsSimulator, kind: str) -> None:
    """R000-110: the client itself repeats it under its key."""
    meet(simulator, kind=kind, count=2)
    async with connected(simulator) as client:
        made = await create(client)
    assert live(simulator) == [made.id]


async def test_create_that_got_no_answer_in_time_may_have_happened(simulator: LdsSimulator) -> None:
    meet(simulator, kind="delay", delay_s=1.0, count=1)
    async with connected(simulator, timeout_s=0.5) as client:
        await client.info()
        with pytest.raises(DeadlineExceeded) as caught:
            await create(client)
        assert may_have_happened(caught.value)
    await eventually(lambda: live(simulator))
    async with connected(simulator) as client:
        [found] = await client.list_sessions(owner="us", client_key="pod-1")
        assert (await create(client)).id == found.id
    assert live(simulator) == [found.id]


async def test_replicas_that_create_the_same_at_once_get_the_same(simulator: LdsSimulator) -> None:
    async with connected(simulator) as one, connected(simulator) as two:
        made = await asyncio.gather(*(create(client) for client in (one, two) * 5))
    assert len({each.id for each in made}) == 1
    assert live(simulator) == [made[0].id]


async def test_key_of_another_user_is_a_conflict(simulator: LdsSimulator) -> None:
    async with connected(simulator) as client:
        await create(client)
        with pytest.raises(Conflict, match="ClientKeyConflict") as caught:
            await create(client, username="bob")
        assert not may_have_happened(caught.value)


async def test_orphans_are_found_by_their_owner(simulator: LdsSimulator) -> None:
    async with connected(simulator) as client, lds_client(simulator.url) as others:
        await others.create(owner="them")
        await others.create()
        made = [(await create(client, key=f"pod-{number}")).id for number in range(3)]
        await client.archive_session(made[1])
        assert [each.id for each in await client.list_sessions(owner="us")] == [made[0], made[2]]


CREATOR = """
import asyncio, sys
from datetime import datetime
from vkprovider.labs.lds.client import open_deployment

async def main(url, token, start, end, form):
    async def read():
        return token

    client = open_deployment("a", url, token=read, timeout_s=60.0)
    times = map(datetime.fromisoformat, (start, end))
    session = await client.create_session_with_part("ann", *times, form, client_key="pod-1", owner="us")
    print("made", flush=True)
    await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


async def kill_after_create(simulator: LdsSimulator) -> None:
    """Create a session from a process that has only the client, and kill it before it keeps the session's id.

    What the provider itself does when it is killed there is shown in tests/faults.
    """
    arguments = (simulator.url, TOKEN, START.isoformat(), END.isoformat(), FORM)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CREATOR, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"made\n"
    finally:
        process.kill()
        await process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert len(live(simulator)) == 1


async def test_a_create_repeated_by_another_process_finds_the_session_by_its_key(simulator: LdsSimulator) -> None:
    """R000-110, with client keys: who comes after a killed creator just creates again."""
    await kill_after_create(simulator)
    async with connected(simulator) as client:
        [found] = await client.list_sessions(owner="us", client_key="pod-1")
        assert (await create(client)).id == found.id
    assert live(simulator) == [found.id]


async def test_a_session_of_a_killed_creator_is_archived_by_its_key(simulator: LdsSimulator) -> None:
    """R000-110: the key, which a claim's intent names, leads to the session."""
    await kill_after_create(simulator)
    async with connected(simulator) as client:
        for session in await client.list_sessions(owner="us", client_key="pod-1"):
            await client.archive_session(session.id)
    assert live(simulator) == []


async def test_without_client_keys_the_session_of_a_killed_creator_is_not_looked_for(bare: LdsSimulator) -> None:
    """R000-110, without: the client refuses to look, as an empty list would prove nothing."""
    await kill_after_create(bare)
    async with connected(bare) as client:
        with pytest.raises(Lacking):
            await client.list_sessions(owner="us", client_key="pod-1")
        [orphan] = live(bare)
        await client.archive_session(orphan)
    assert live(bare) == []


async def test_create_without_client_keys_is_not_repeated(bare: LdsSimulator) -> None:
    meet(bare, kind="lost_answer", count=1)
    async with connected(bare) as client:
        with pytest.raises(Unavailable) as caught:
            await create(client)
    assert may_have_happened(caught.value)
    assert len(live(bare)) == 1


async def test_token_may_change(simulator: LdsSimulator) -> None:
    tokens = [TOKEN]

    async def read() -> str:
        return tokens[-1]

    client = open_deployment("a", simulator.url, token=read, timeout_s=20.0)
    await create(client)
    simulator.endpoint.token = "new"
    with pytest.raises(OutsideError, match="the token was refused"):
        await create(client)
    tokens.append("new")
    await create(client)
    await client.close()
    assert len(live(simulator)) == 1


class Replica:
    """Places sessions as a controller does; its count of sessions is too low."""

    def __init__(self, deployments: Deployments) -> None:
        self.deployments = deployments
        self.placed: dict[str, str] = {}

    async def place(self, key: str) -> None:
        while key not in self.placed:
            try:
                chosen = self.deployments.choose({}).deployment.id
            except Throttled as error:
                await asyncio.sleep(error.after_s)
                continue
            self.deployments.took(chosen)
            with suppress(Full):
                await self.keep_to(chosen, key)

    async def keep_to(self, chosen: str, key: str) -> None:
        while key not in self.placed:
            try:
                await create(self.deployments.client(chosen), key=key)
            except OutsideError as error:
                if not may_have_happened(error):
                    raise
            else:
                self.placed[key] = chosen


async def test_capacity_holds_over_replicas_that_do_not_know_of_each_other(tmp_path: Path) -> None:
    """Their counts are too low, and the LDS decides; a lost answer moves no session to another deployment."""
    capacities = {"small": 3, "large": 20}
    async with AsyncExitStack() as stack:
        simulators = {
            name: await stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN, capacity=capacity)))
            for name, capacity in capacities.items()
        }
        entries = [{"id": name, "base_url": each.url, "capacity": 20} for name, each in simulators.items()]
        path = tmp_path / "lds_deployments.yaml"
        path.write_text(yaml.safe_dump({"lds_deployments": entries}))
        replicas = [Replica(Deployments(ClientSettings(path=str(path), token=TOKEN))) for _ in range(2)]
        for each in simulators.values():
            meet(each, kind="lost_answer", count=2)
        keys = [f"pod-{number}" for number in range(16)]
        async with asyncio.timeout(60):
            await asyncio.gather(*(replicas[at % 2].place(key) for at, key in enumerate(keys)))
        placed = replicas[0].placed | replicas[1].placed
        for name, each in simulators.items():
            there = sorted(session.client_key or "" for session in each.world.sessions.values())
            assert there == sorted(key for key in keys if placed[key] == name)
            assert len(there) <= capacities[name]
        for replica in replicas:
            await replica.deployments.close()


async def test_no_room_anywhere(tmp_path: Path, simulator: LdsSimulator) -> None:
    """R000-098."""
    path = tmp_path / "lds_deployments.yaml"
    path.write_text(yaml.safe_dump({"lds_deployments": [{"id": "a", "base_url": simulator.url, "capacity": 2}]}))
    deployments = Deployments(ClientSettings(path=str(path), token=TOKEN))
    simulator.world.capacity = 0
    with pytest.raises(Full):
        await create(deployments.client("a"))
    for load in ({"a": 2}, {"a": 0}):
        with pytest.raises(InputError, match="NoLDSDeployment"):
            deployments.choose(load)
    await deployments.close()
