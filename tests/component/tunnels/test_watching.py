"""What an agent reports of its worker by itself: that something is different, and how much is used."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.component.cml.conftest import MiniCml, drop, reply, serving
from tests.support.tunnels import eventually, running
from tunnels.base import Response
from vkprovider.agent.process import facts_of, open_upstream
from vkprovider.agent.settings import AgentSettings
from vkprovider.agent.watching import CALM, Watch
from vkprovider.carriers.hello import parse_facts
from vkprovider.lablet import observations
from vkprovider.lablet.observations import WorkerUsage

STATS = {
    "computes": {"c1": {"is_controller": True, "stats": {"dominfo": {"allocated_cpus": 4, "allocated_memory": 2048}}}},
    "all": {"cpu": {"count": 64}, "memory": {"total": 2**36, "used": 2**30}},
}


@pytest.fixture
async def mini() -> AsyncIterator[MiniCml]:
    async with serving(MiniCml()) as mini:
        show(mini, ["BOOTED"])
        mini.replies["/system_stats"] = reply(200, json.dumps(STATS))
        mini.replies["/diagnostics/licensing"] = reply(200, '{"quota": 20, "started": 3}')
        yield mini


def show(mini: MiniCml, states: Iterable[str]) -> None:
    """Have CML show a lab with devices."""
    rows = [
        {"id": f"n{number}", "lab_id": "lab-1", "label": f"h{number}", "node_definition": "alpine", "state": state}
        for number, state in enumerate(states)
    ]
    mini.replies["/nodes"] = reply(200, json.dumps(rows))


def settings_of(mini: MiniCml, folder: Path, every_s: float) -> AgentSettings:
    credentials = folder / "credentials"
    credentials.write_text(f"admin\n{mini.password}\n")
    return AgentSettings(name="w1", url=mini.url, credentials_file=str(credentials), observe_s=every_s)


@asynccontextmanager
async def watching(settings: AgentSettings) -> AsyncIterator[tuple[Watch, list[int]]]:
    """Watch a CML; gives the watch, and a list that grows by one with each report."""
    watch = open_upstream(settings)
    assert isinstance(watch, Watch)
    reports: list[int] = []
    async with running(lambda: watch.run(lambda: reports.append(1))):
        yield watch, reports
    await watch.close()


async def looks(mini: MiniCml, count: int) -> None:
    """Wait until CML was asked so often from now on, each look answered by the next one's beginning."""
    before = mini.count("GET /nodes")
    await eventually(lambda: mini.count("GET /nodes") > before + count)


async def test_only_what_is_different_is_reported(mini: MiniCml, tmp_path: Path) -> None:
    async with watching(settings_of(mini, tmp_path, 0.02)) as (_, reports):
        await looks(mini, 3)
        assert len(reports) == 1, "what it found first, which its caller may not know"
        show(mini, ["STARTED"])
        await looks(mini, 3)
        assert len(reports) == 2
        show(mini, ["BOOTED"])
        await looks(mini, 3)
        assert len(reports) == 3
        mini.replies["/labs"] = reply(200, '["lab-1", "lab-2"]')
        await looks(mini, 3)
        assert len(reports) == 4
    assert mini.logins == 1


async def test_a_cml_that_does_not_answer_is_reported_once_and_so_is_its_return(mini: MiniCml, tmp_path: Path) -> None:
    async with watching(settings_of(mini, tmp_path, 0.02)) as (_, reports):
        await looks(mini, 2)
        mini.replies["/labs"] = drop
        await eventually(lambda: len(reports) == 2)
        before = mini.count("GET /labs")
        await eventually(lambda: mini.count("GET /labs") >= before + 3)
        assert len(reports) == 2
        del mini.replies["/labs"]
        await eventually(lambda: len(reports) == 3)


async def test_usage_is_what_cml_says_last_and_part_of_the_facts(mini: MiniCml, tmp_path: Path) -> None:
    settings = settings_of(mini, tmp_path, 0.02)
    async with watching(settings) as (watch, _):
        await eventually(lambda: watch.usage)
        facts = parse_facts(facts_of(settings, watch))
    assert facts.watches
    assert facts.usage == WorkerUsage("c1", 64, 4, 2**36, 2**30, 2048 * 1024, 20, 3)


async def test_figures_that_cml_refuses_are_unknown(mini: MiniCml, tmp_path: Path) -> None:
    mini.replies["/system_stats"] = reply(403, '{"code": 403, "description": "Access denied"}')
    async with watching(settings_of(mini, tmp_path, 0.02)) as (watch, reports):
        await eventually(lambda: mini.count("GET /system_stats"))
        await looks(mini, 3)
        assert watch.usage is None
        assert len(reports) == 1


async def test_figures_are_not_asked_for_if_the_setting_says_so(mini: MiniCml, tmp_path: Path) -> None:
    settings = settings_of(mini, tmp_path, 0.02).model_copy(update={"stats": "Off"})
    async with watching(settings):
        await looks(mini, 3)
    assert not [line for line in mini.seen if "stats" in line or "licensing" in line]


async def test_an_agent_without_credentials_says_that_it_does_not_watch(mini: MiniCml, tmp_path: Path) -> None:
    settings = settings_of(mini, tmp_path, 0.02).model_copy(update={"credentials_file": ""})
    upstream = open_upstream(settings)
    assert not isinstance(upstream, Watch)
    assert not parse_facts(facts_of(settings, upstream)).watches
    await upstream.close()


class Server:
    """A `Transport` to a worker that answers at once.

    Attributes:
        looks: When its devices were asked for.
        state: Of its only device.
    """

    def __init__(self) -> None:
        self.looks: list[float] = []
        self.state = observations.BOOTED

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> Response:
        del params, body, headers, deadline_s
        if method != "GET":
            return Response(204)
        if path.endswith("/nodes"):
            self.looks.append(asyncio.get_running_loop().time())
            row = {"id": "n", "lab_id": "l", "label": "h", "node_definition": "alpine", "state": self.state}
            return Response(200, json.dumps([row]).encode())
        return Response(200, b'["l"]' if path.endswith("/labs") else b"{}")

    async def close(self) -> None: ...


@pytest.mark.looptime
async def test_looks_are_rare_while_nothing_moves_and_follow_each_command() -> None:
    server = Server()
    watch = Watch(server, "http://cml", 1.0, with_stats=True)
    async with running(lambda: watch.run(lambda: None)):
        await asyncio.sleep(98.0)
        before = len(server.looks)
        assert before == 100 / CALM
        await watch.request("PUT", "/api/v0/labs/l/start", deadline_s=1)
        await asyncio.sleep(1.5)
        assert len(server.looks) == before + 1, "soon after the command"
        server.state = observations.STARTED
        await asyncio.sleep(100.0)
        assert len(server.looks) >= before + 100, "while a device boots"
        server.state = observations.BOOTED
        before = len(server.looks)
        await asyncio.sleep(100.0)
        assert len(server.looks) <= before + 100 / CALM + 1
