"""Two hundred agents, each with a command in hand, whose broker is restarted: all come back at once."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

from aiohttp import web

from tests.component.cml.conftest import MiniCml, serving
from tests.support.mosquitto import CALLER, Mosquitto
from tests.support.tunnels import Heard, agent_over, broker, eventually, hub_over, running
from tunnels.agent.core import Habits
from tunnels.allowlist import AllowList
from tunnels.direct import DirectTransport
from tunnels.link.transport import TunnelTransport
from tunnels.protocol.presence import State

AGENTS, AWAY_S, BACK_S = 200, 30.0, 15.0
ALLOW = AllowList([("POST", "/x")])


async def test_two_hundred_agents_come_back_at_once(tmp_path: Path) -> None:
    names = [f"w{number}" for number in range(AGENTS)]
    executed = Counter[str]()
    go_on = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        executed[request.query["agent"]] += 1
        await go_on.wait()
        return web.Response(text=request.query["agent"])

    mosquitto = Mosquitto(tmp_path, agents=tuple(names))
    await mosquitto.start()
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER), heard)
    loop = asyncio.get_running_loop()
    async with serving(MiniCml()) as mini:
        mini.replies["/x"] = answer
        direct = DirectTransport(mini.url, allow=ALLOW, connections_max=AGENTS)
        agents = [
            agent_over(broker(mosquitto, name), direct, allow=ALLOW, name=name, habits=Habits()) for name in names
        ]
        async with running(hub.run, *(agent.run for agent in agents)):
            await eventually(lambda: all(hub.view(name).state is State.THERE for name in names))
            asked = []
            for name in names:
                transport = TunnelTransport(hub, name, allow=ALLOW, epoch=lambda: 1)
                asked.append(loop.create_task(transport.request("POST", "/x", params={"agent": name}, deadline_s=240)))
            await eventually(lambda: len(executed) == AGENTS)
            await mosquitto.stop(kill=True)
            go_on.set()
            await asyncio.sleep(AWAY_S)
            before = sum(agent._carrier.counts["connects"] for agent in agents)  # type: ignore[attr-defined]
            await mosquitto.start()
            began = loop.time()
            answers = await asyncio.gather(*asked)
            took_s = loop.time() - began
        await direct.close()
    await mosquitto.stop()
    connects = sum(agent._carrier.counts["connects"] for agent in agents) - before  # type: ignore[attr-defined]
    sys.stdout.write(f"{AGENTS} agents back, all answers there after {took_s:.1f} s, {connects} connections\n")
    assert [answer.body.decode() for answer in answers] == names
    assert executed == dict.fromkeys(names, 1)
    assert took_s <= BACK_S
