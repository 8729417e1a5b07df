"""Transports to a loopback server, by the way in which they reach it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from tests.support.mosquitto import CALLER, PASSWORD, Mosquitto
from tunnels.agent.core import Agent, Habits, new_boot
from tunnels.agent.epochs import EpochFile
from tunnels.base import AllowList, StreamOpener, Transport
from tunnels.direct import DirectTransport
from tunnels.link.carrier import Address
from tunnels.link.hub import Hub, TunnelTransport
from tunnels.mqtt.broker import Broker
from tunnels.mqtt.carrier import AgentSide, CallerSide, MqttCarrier, TopicGrammar
from tunnels.outgoing import Guard
from tunnels.protocol.presence import AgentView

TOPICS: Final = TopicGrammar("vkprovider")
HABITS: Final = Habits(heartbeat_s=0.5, silence_s=20.0, hello_s=0.05, name_taken_s=0.5)

Version = Literal["5", "3.1.1"]


@dataclass
class Heard:
    """A `Listener` that keeps what it hears."""

    views: list[tuple[str, AgentView]] = field(default_factory=list)
    events: list[tuple[str, str, bytes, bool]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def presence(self, name: str, view: AgentView) -> None:
        self.views.append((name, view))
        self.changed.set()

    def event(self, name: str, kind: str, data: bytes, *, lost: bool) -> None:
        self.events.append((name, kind, data, lost))
        self.changed.set()

    async def until(self, predicate: Callable[[], object], within_s: float = 60.0) -> None:
        async with asyncio.timeout(within_s):
            while not predicate():
                self.changed.clear()
                await self.changed.wait()


async def eventually(predicate: Callable[[], object], within_s: float = 60.0) -> None:
    """Wait for a condition that nothing announces."""
    async with asyncio.timeout(within_s):
        while not predicate():  # noqa: ASYNC110 (see above)
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def running(*loops: Callable[[], object]) -> AsyncIterator[None]:
    """Run coroutines beside the test."""
    tasks = [asyncio.ensure_future(loop()) for loop in loops]  # type: ignore[call-overload]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def broker(mosquitto: Mosquitto, user: str, *, version: Version = "5", password: str = PASSWORD) -> Broker:
    return Broker("127.0.0.1", mosquitto.port, tls=False, login=lambda: (user, password), version=version)


def hub_over(broker: Broker, heard: Heard, caller: str = "replica-0") -> Hub:
    return Hub(MqttCarrier(broker, CallerSide(TOPICS, caller)), heard)


def agent_over(
    broker: Broker,
    transport: Transport,
    *,
    allow: AllowList,
    name: str = "w1",
    facts: bytes = b"{}",
    epochs: Path | None = None,
    habits: Habits = HABITS,
    streams: StreamOpener | None = None,
) -> Agent:
    return Agent(
        name,
        MqttCarrier(broker, AgentSide(TOPICS, Address(name, new_boot()))),
        transport,
        allow=allow,
        streams=streams,
        facts=lambda: facts,
        epochs=EpochFile(epochs) if epochs is not None else None,
        version="1.0",
        habits=habits,
    )


@contextlib.asynccontextmanager
async def over_mqtt(
    mosquitto: Mosquitto, url: str, *, version: Version, allow: AllowList, guard: Guard | None, agent_allow: AllowList
) -> AsyncIterator[Transport]:
    """A transport through an agent that is there."""
    direct = DirectTransport(url, allow=agent_allow)
    heard = Heard()
    hub = hub_over(broker(mosquitto, CALLER, version=version), heard)
    agent = agent_over(broker(mosquitto, "w1", version=version), direct, allow=agent_allow)
    transport = TunnelTransport(hub, "w1", allow=allow, guard=guard, epoch=lambda: 1)
    async with running(hub.run, agent.run):
        await heard.until(lambda: heard.views)
        yield transport
    await transport.close()
    await direct.close()


@contextlib.asynccontextmanager
async def over_direct(url: str, *, allow: AllowList, guard: Guard | None) -> AsyncIterator[Transport]:
    transport = DirectTransport(url, allow=allow, guard=guard)
    yield transport
    await transport.close()
