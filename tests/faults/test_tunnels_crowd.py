"""Two hundred agents, each with a command in hand, whose way is cut: all come back at once."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from aiohttp import web

from tests.component.cml.conftest import MiniCml, serving
from tests.support.mosquitto import CALLER, Mosquitto
from tests.support.proxy import Proxy
from tests.support.tunnels import Heard, agent_over, broker, eventually, hub_over, running
from tests.support.websockets import Caller, dialing_agent
from tunnels.agent.core import Agent, Habits
from tunnels.base import AllowList, Transport
from tunnels.direct import DirectTransport
from tunnels.link.hub import Hub, TunnelTransport
from tunnels.protocol.presence import AgentState

AGENTS, AWAY_S, BACK_S = 200, 30.0, 15.0
ALLOW = AllowList([("POST", "/x")])
NAMES = tuple(f"w{number}" for number in range(AGENTS))


class Way(Protocol):
    """How the caller and its agents meet."""

    hub: Hub

    def agent(self, name: str, transport: Transport) -> Agent:
        """Return one of the agents."""

    async def cut(self) -> None:
        """End all connections, and let nobody come back."""

    async def heal(self) -> None:
        """Let all come back."""


@dataclass
class ByMqtt:
    """A broker, which is killed."""

    mosquitto: Mosquitto
    hub: Hub

    def agent(self, name: str, transport: Transport) -> Agent:
        return agent_over(broker(self.mosquitto, name), transport, allow=ALLOW, name=name, habits=Habits())

    async def cut(self) -> None:
        await self.mosquitto.stop(kill=True)

    async def heal(self) -> None:
        await self.mosquitto.start()


@dataclass
class ByHttp:
    """A page behind a proxy, which resets all connections and refuses new ones."""

    proxy: Proxy
    hub: Hub

    def agent(self, name: str, transport: Transport) -> Agent:
        url = f"http://127.0.0.1:{self.proxy.port}"
        return dialing_agent([url], transport, allow=ALLOW, name=name, habits=Habits())[0]

    async def cut(self) -> None:
        await asyncio.to_thread(self.proxy.refuse)

    async def heal(self) -> None:
        await asyncio.to_thread(self.proxy.heal)


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncIterator[Way]:
    """Open a way; its hub runs."""
    if kind == "mqtt":
        mosquitto = Mosquitto(folder, agents=NAMES)
        await mosquitto.start()
        hub = hub_over(broker(mosquitto, CALLER), Heard())
        async with running(hub.run):
            yield ByMqtt(mosquitto, hub)
        await mosquitto.stop()
        return
    caller = Caller(callers=lambda: {"replica-0": ""})
    await caller.start()
    with Proxy("127.0.0.1", caller.port) as proxy:
        yield ByHttp(proxy, caller.hub)
        await caller.stop()


@pytest.mark.parametrize("kind", ["mqtt", "http"])
async def test_two_hundred_agents_come_back_at_once(tmp_path: Path, kind: str) -> None:
    executed = Counter[str]()
    go_on = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        executed[request.query["agent"]] += 1
        await go_on.wait()
        return web.Response(text=request.query["agent"])

    loop = asyncio.get_running_loop()
    async with serving(MiniCml()) as mini, opened(kind, tmp_path) as way:
        mini.replies["/x"] = answer
        direct = DirectTransport(mini.url, allow=ALLOW, connections_max=AGENTS)
        agents = [way.agent(name, direct) for name in NAMES]
        async with running(*(agent.run for agent in agents)):
            await eventually(lambda: all(way.hub.view(name).state is AgentState.THERE for name in NAMES))
            asked = []
            for name in NAMES:
                transport = TunnelTransport(way.hub, name, allow=ALLOW, epoch=lambda: 1)
                asked.append(loop.create_task(transport.request("POST", "/x", params={"agent": name}, deadline_s=240)))
            await eventually(lambda: len(executed) == AGENTS)
            await way.cut()
            go_on.set()
            await asyncio.sleep(AWAY_S)
            before = sum(agent.counts["disconnected"] for agent in agents)
            assert before >= AGENTS
            await way.heal()
            began = loop.time()
            answers = await asyncio.gather(*asked)
            took_s = loop.time() - began
        await direct.close()
    sys.stdout.write(f"{kind}: {AGENTS} agents back, all answers there after {took_s:.1f} s\n")
    assert [answer.body.decode() for answer in answers] == list(NAMES)
    assert executed == dict.fromkeys(NAMES, 1)
    assert took_s <= BACK_S
