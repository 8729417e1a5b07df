"""A sandbox with a simulated Lab Delivery System, and no provider: what the provider will find."""

from collections.abc import Iterator

import pytest

from tests.simulators.cml.plain import eventually
from tests.support.lds import LdsSide
from tests.support.lds_simulator import LdsClient, lds_client, new_session, sink
from vkpsandbox import Sandbox
from vkpsandbox.processes.strays import marked

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    directory = tmp_path_factory.mktemp("sandbox")
    made = Sandbox.up(
        "lds",
        directory=directory,
        workers=0,
        provider=False,
        controllers=False,
        lds=True,
        lds_args=["--grade=fail"],
        tied=True,
    )
    with made:
        yield made
    assert marked(directory) == []


async def test_sessions_survive_the_end_of_the_lds_and_its_events_come_after_it(sandbox: Sandbox) -> None:
    lds = sandbox.lds
    assert lds is not None
    assert sandbox.process(lds.process).url == lds.url

    async with sink() as target, lds_client(lds.url, lds.token) as client:
        session = (await client.create()).body["id"]
        await client.sim("POST", f"/sessions/{session}/log-in")
        assert len(await client.sim("GET", "/undelivered")) == 1
        await eventually_stored(sandbox, session)
        sandbox.kill(lds.process)
        sandbox.start(lds.process)
        async with lds_client(lds.url, lds.token) as after:
            assert await eventually(lambda: listens(after))
            assert await after.state(session) == "RUNNING"
            await after.sim("PUT", "/targets", {"targets": [target.url]})
            [started] = await target.take()
            assert started.event["subject"] == session
            assert started.authorization == f"Bearer {lds.events_secret}"
            assert [(await after.create()).status for _ in range(2)] == [201, 201]
            after.token = ""
            assert (await after.wrong("GET", "/sessions")).code == (401, "Unauthorized")


async def listens(client: LdsClient) -> bool:
    try:
        return (await client.ask("GET", "/info")).status == 200
    except OSError:
        return False


async def eventually_stored(sandbox: Sandbox, session: str) -> None:
    state = sandbox.layout.workers / "lds.state"
    await eventually(lambda: f'"session":"{session}"' in state.read_text())


def test_the_lds_is_found_again_with_its_sandbox(sandbox: Sandbox) -> None:
    found = Sandbox.attach("lds", sandbox.directory).lds
    assert found is not None
    assert found == sandbox.lds
    lds = LdsSide(found)
    session = lds.api("POST", "/sessions", new_session(client_key="uid-9"))["id"]
    lds.act(session, "log-in")
    assert lds.session_of("uid-9") == next(one for one in lds.sessions() if one["id"] == session)
    lds.api("POST", f"/sessions/{session}/archive")
    assert lds.session_of("uid-9") is None
    assert lds.access_log()[-1]["path"] == f"/api/v1/sessions/{session}/archive"
