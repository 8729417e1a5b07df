"""The ways to one simulated worker, and the processes on them: simulator, broker, agents."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from aiohttp import web

from bench.figures import ROOT
from tunnels.link.carrier import Carrier, parse_address
from tunnels.mqtt.broker import Broker as Dialled
from tunnels.mqtt.carrier import CallerSide, MqttCarrier, TopicGrammar
from tunnels.protocol.presence import AgentState
from tunnels.websocket.listening import Listening
from tunnels.websocket.socket import PATH
from vkprovider.labs.controllers.worker.tunnels import Tunnels
from vkprovider.platform import wellknown
from vkpsandbox.controlplane.tunnels import broker_process, plan_broker
from vkpsandbox.paths import Layout
from vkpsandbox.processes.ports import free_ports
from vkpsandbox.processes.record import Broker, Worker

KINDS: Final = ("mqtt", "http")
TOPICS: Final = TopicGrammar(wellknown.MANAGER)
TOKEN: Final = "token-of-the-benchmark"  # noqa: S105 (of nothing that lasts)

_REPLICA: Final = "bench"
_WITHIN_S: Final = 120.0
_VKPROVIDER: Final = (sys.executable, "-m", "vkprovider")


@dataclass(frozen=True)
class Ways:
    """What stands.

    Attributes:
        url: The simulator's.
        user: Its account: name and password.
        broker: The broker with its accounts.
        pids: Of broker and simulator, by name.
        tunnels: The replica's end of both tunnels, in this process.
        page: Where agents dial it by HTTP.
    """

    url: str
    user: tuple[str, str]
    broker: Broker
    pids: Mapping[str, int]
    tunnels: Tunnels
    page: str

    async def until_there(self, kind: str, agents: Iterable[str]) -> None:
        """Wait for agents."""
        hub = self.tunnels.hubs[kind]
        wanted = list(agents)
        async with asyncio.timeout(_WITHIN_S):
            while any(hub.view(name).state is not AgentState.THERE for name in wanted):  # noqa: ASYNC110 (nothing tells)
                await asyncio.sleep(0.1)


@asynccontextmanager
async def standing(folder: Path, agents: Iterable[str]) -> AsyncIterator[Ways]:
    """Start all of it, with one agent for each tunnel, named like it.

    Args:
        folder: For files.
        agents: Further names that the broker knows.
    """
    layout = Layout(folder)
    for each in (layout.logs, layout.workers):
        each.mkdir(parents=True)
    user = ("admin", "password of the benchmark")
    async with AsyncExitStack() as stack:
        simulator = await stack.enter_async_context(_simulator(layout, user))
        broker = plan_broker([Worker(name, "", "", "", "", 0, "") for name in (*KINDS, *agents)])
        spec = broker_process(layout, broker, ROOT / "manifests")
        mosquitto = await stack.enter_async_context(running(layout.log("mosquitto"), spec.argv))
        await _listens(broker.port)
        listening = Listening(_REPLICA, dict)
        mqtt = MqttCarrier(dialled(broker, wellknown.MANAGER), CallerSide(TOPICS, _REPLICA))
        tunnels = await stack.enter_async_context(_tunnels({"mqtt": mqtt, "http": listening}))
        page = await stack.enter_async_context(_page(listening))
        ways = Ways(simulator.url, user, broker, {"mosquitto": mosquitto.pid, **simulator.pids}, tunnels, page)
        agents_of = [await stack.enter_async_context(_agent(layout, ways, kind)) for kind in KINDS]
        for kind in KINDS:
            await ways.until_there(kind, [kind])
        pids = {f"agent by {kind}": agent.pid for kind, agent in zip(KINDS, agents_of, strict=True)}
        yield replace(ways, pids={**ways.pids, **pids})


def dialled(broker: Broker, name: str) -> Dialled:
    """Return the broker as an account of it reaches it."""
    return Dialled("127.0.0.1", broker.port, tls=False, login=lambda: (name, broker.accounts[name]))


@asynccontextmanager
async def running(
    log: Path, argv: Sequence[str], env: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process until the end of the block."""
    with log.open("wb") as stream:
        made = await asyncio.create_subprocess_exec(
            *argv, env=os.environ | (env or {}), stdin=asyncio.subprocess.DEVNULL, stdout=stream, stderr=stream
        )
    try:
        yield made
    finally:
        if made.returncode is None:
            made.terminate()
        await asyncio.wait_for(made.wait(), 30)


@dataclass(frozen=True)
class _Simulator:
    url: str
    pids: Mapping[str, int]


@asynccontextmanager
async def _simulator(layout: Layout, user: tuple[str, str]) -> AsyncIterator[_Simulator]:
    [port] = free_ports(1)
    name, password = user
    argv = (*_VKPROVIDER, "sim", "cml", f"--listen=127.0.0.1:{port}", "--tls", f"--username={name}")
    async with running(layout.log("cml"), argv, {"VKPROVIDER_SIM_PASSWORD": password}) as process:
        await _listens(port)
        yield _Simulator(f"https://127.0.0.1:{port}", {"simulator": process.pid})


@asynccontextmanager
async def _agent(layout: Layout, ways: Ways, kind: str) -> AsyncIterator[asyncio.subprocess.Process]:
    credentials = layout.workers / "credentials"
    credentials.write_text("\n".join(ways.user))
    dials = {
        "mqtt": {
            "VKPROVIDER_TUNNEL_MQTT_URL": ways.broker.url,
            "VKPROVIDER_TUNNEL_MQTT_USERNAME": kind,
            "VKPROVIDER_TUNNEL_MQTT_PASSWORD": ways.broker.accounts[kind],
        },
        "http": {"VKPROVIDER_TUNNEL_HTTP_URL": ways.page, "VKPROVIDER_TUNNEL_HTTP_TOKEN": TOKEN},
    }
    env = {
        **dials[kind],
        "VKPROVIDER_AGENT_NAME": kind,
        "VKPROVIDER_AGENT_CML_URL": ways.url,
        "VKPROVIDER_AGENT_CREDENTIALS_FILE": str(credentials),
        "VKPROVIDER_AGENT_STATE_FILE": str(layout.workers / f"{kind}.agent"),
        "VKPROVIDER_AGENT_INSECURE_SKIP_VERIFY": "true",
    }
    async with running(layout.log(f"agent-{kind}"), (*_VKPROVIDER, "agent"), env) as process:
        yield process


@asynccontextmanager
async def _tunnels(carriers: Mapping[str, Carrier]) -> AsyncIterator[Tunnels]:
    tunnels = Tunnels(carriers, heard=lambda _: None, happened=lambda _: None)
    tasks = [asyncio.create_task(hub.run(), name=kind) for kind, hub in tunnels.hubs.items()]
    try:
        yield tunnels
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _page(listening: Listening) -> AsyncIterator[str]:
    """Serve the page that agents dial."""

    async def handle(request: web.Request) -> web.StreamResponse:
        address = parse_address(request.query["agent"])
        if address is None or request.headers.get("Authorization") != f"Bearer {TOKEN}":
            raise web.HTTPUnauthorized
        return await listening.accept(request, address)

    application = web.Application()
    application.router.add_get(PATH, handle)
    runner = web.AppRunner(application, shutdown_timeout=1.0)
    await runner.setup()
    try:
        [port] = free_ports(1)
        await web.TCPSite(runner, "127.0.0.1", port, backlog=1024).start()
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def _listens(port: int) -> None:
    async with asyncio.timeout(_WITHIN_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            await writer.wait_closed()
            return
