"""Asks workers through their agents, over the broker of `spec.tunnel: mqtt`. Read only.

This process is a caller of its own beside the replicas. It owns nothing, so that its requests bear the epoch 0, which
an agent compares with no other; it says nothing to agents but such requests; and it waits for their heartbeats instead
of asking all of them for a hello, because every replica repeats requests when it hears one.
"""

import asyncio
import itertools
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tunnels import wire
from tunnels.agent.core import Habits
from tunnels.base import ConnectFailed, ConnectionLost, DeadlineExceeded, Response
from tunnels.link.carrier import Address
from tunnels.mqtt.broker import Broker, BrokerFault
from tunnels.mqtt.carrier import TopicGrammar
from tunnels.mqtt.connection import BrokerConnection, Client
from tunnels.protocol import refusals
from vkprovider.cml.dialect import BY_AGENT
from vkprovider.cml.factory import session_over
from vkprovider.cml.operations import HANDSHAKE
from vkprovider.cml.wire import CmlSystemInformation
from vkprovider.doctor.findings import Finding
from vkprovider.labs.checks.tunnels import BrokerSeen, check_broker, check_unseen
from vkprovider.labs.checks.workers import WorkerProbe
from vkprovider.platform import wellknown
from vkprovider.platform.concurrency import at_most, end_tasks
from vkprovider.platform.errors import InputError, OutsideError
from vkprovider.platform.objects import CustomResource

HEARTBEAT_S: Final = Habits().heartbeat_s
"""The interval of an agent's heartbeats."""
_HEARTBEATS: Final = 1.5
"""How many of them are waited for."""
_ASKED_MAX: Final = 16
"""Agents that are asked at the same time."""
_NOBODY: Final = Address("doctor", "doctor")
"""Boots are random words of another kind, so that no process hears what is sent to this one."""


async def ask_agents(
    broker: Broker | InputError | None, resources: Iterable[CustomResource], namespace: str
) -> tuple[dict[str, WorkerProbe], list[Finding]]:
    """Return the workers' answers through their agents, by CMLWorker, and the findings on their tunnels.

    Args:
        broker: See `Doctor`.
        resources: All CMLWorkers.
        namespace: The provider's.
    """
    workers: dict[str, list[str]] = {}
    for resource in resources:
        workers.setdefault(str(resource.spec.get("tunnel")), []).append(resource.metadata.name)
    if not isinstance(broker, Broker):
        return {}, check_unseen(workers, broker, namespace)
    seen = await look(broker, workers.pop("mqtt", []))
    return seen.probes, [*check_broker(broker, seen), *check_unseen(workers, None, namespace)]


async def look(broker: Broker, workers: Collection[str], *, heartbeat_s: float = HEARTBEAT_S) -> BrokerSeen:
    """Connect to the broker as replicas do, and ask the workers of some CMLWorkers for their versions.

    Args:
        broker: The broker.
        workers: The names of the CMLWorkers, which are those of their agents.
        heartbeat_s: The interval of an agent's heartbeats.
    """
    caller = _Caller(broker, workers)
    try:
        return await caller.look(_HEARTBEATS * heartbeat_s)
    except BrokerFault as fault:
        return BrokerSeen(fault)
    finally:
        await caller.close()


@dataclass(frozen=True, slots=True)
class _Heard:
    """A process of an agent, and how far its clock is ahead of the event loop's."""

    address: Address
    ahead_ms: float


class _Caller:
    """A caller that asks, and hears nothing but agents' signs of life and the answers."""

    def __init__(self, broker: Broker, wanted: Collection[str]) -> None:
        self._identity = f"doctor-{secrets.token_hex(6)}"
        self._topics = TopicGrammar(wellknown.MANAGER)
        self._wanted = frozenset(wanted)
        self._heard: dict[str, _Heard] = {}
        self._answers: dict[str, asyncio.Future[wire.Response]] = {}
        self._operations = map(f"{self._identity}-{{}}".format, itertools.count(1))
        self._all_heard = asyncio.Event()
        client = Client(f"caller-{self._identity}", self._topics.of_caller(self._identity))
        self._connection = BrokerConnection(broker, client, deliver=self._deliver, refused=lambda _: None)

    async def look(self, within_s: float) -> BrokerSeen:
        """Do what the module says.

        Raises:
            BrokerFault: The broker cannot be used as replicas have to use it.
        """
        await self._connection.open()
        tending = asyncio.create_task(self._connection.tend(), name="connection to the broker")
        try:
            await self._connection.confirm(self._topics.down(_NOBODY, self._identity), b"")
            if self._wanted:
                await self._listen(tending, within_s)
            asked = [self._heard[name] for name in sorted(self._heard)]
            found = await at_most(_ASKED_MAX, self._ask, asked)
        finally:
            await end_tasks((tending,))
        answers = dict(zip((heard.address.name for heard in asked), found, strict=True))
        return BrokerSeen(
            probes={
                name: answers[name][0] if name in answers else WorkerProbe(unheard_s=within_s)
                for name in sorted(self._wanted)
            },
            round_trips_s={name: taken_s for name, (probe, taken_s) in answers.items() if probe.error is None},
        )

    async def request(self, heard: _Heard, head: wire.Request, deadline_s: float) -> Response:
        """Send a request, and return the answer.

        Raises:
            TransportError: See `Transport.request`.
        """
        name = heard.address.name
        answer = self._answers[head.op] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(deadline_s):
                topic = self._topics.down(heard.address, self._identity)
                await self._connection.confirm(topic, wire.encode(head))
                said = await answer
        except BrokerFault as fault:
            raise ConnectFailed(f"{name}: {fault}") from fault
        except TimeoutError:
            raise DeadlineExceeded(f"{name}: no response through the agent within {deadline_s:.3g} s") from None
        finally:
            del self._answers[head.op]
        if said.size > len(said.body):
            raise ConnectionLost(f"{name}: a response of {said.size} bytes, longer than expected")
        return Response(said.status, said.body, said.headers)

    def request_to(self, heard: _Heard, method: str, path: str, deadline_s: float) -> wire.Request:
        """Return a request to an agent that expires with its deadline, by the agent's clock."""
        expires_ms = int((_now_s() + deadline_s) * 1000 + heard.ahead_ms)
        return wire.Request(next(self._operations), 0, max(0, expires_ms), method, path)

    async def close(self) -> None:
        """Disconnect."""
        await self._connection.close()

    async def _listen(self, connection: asyncio.Task[None], within_s: float) -> None:
        """Wait until all agents were heard, or the time is over.

        Raises:
            BrokerFault: The connection ended.
        """
        hearing = asyncio.create_task(self._all_heard.wait(), name="heartbeats")
        await asyncio.wait((connection, hearing), timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        hearing.cancel()
        if connection.done():
            connection.result()

    async def _ask(self, heard: _Heard) -> tuple[WorkerProbe, float]:
        """Return a worker's version, and the time that its answer took."""
        session = session_over(_Through(self, heard), f"agent://{heard.address.name}", None, trust=BY_AGENT)
        began_s = _now_s()
        try:
            found = await session.fetch(HANDSHAKE.to(), CmlSystemInformation)
        except OutsideError as error:
            return WorkerProbe(error=error), 0.0
        finally:
            await session.close()
        return WorkerProbe(found.version), _now_s() - began_s

    def _deliver(self, topic: str, frame: bytes) -> None:
        address = self._topics.from_agent(topic)
        if address is None or address.name not in self._wanted:
            return
        try:
            message = wire.from_agent(frame)
        except wire.MalformedFrame:
            return
        match message:
            case wire.Hello() | wire.Heartbeat():
                heard = _Heard(address, message.clock_ms - _now_s() * 1000)
                self._heard.setdefault(address.name, heard)
                if self._heard.keys() == self._wanted:
                    self._all_heard.set()
            case wire.Response() if (answer := self._waiting(message.op)) is not None:
                answer.set_result(message)
            case wire.Refusal() if (answer := self._waiting(message.op)) is not None:
                answer.set_exception(refusals.error_of(message, address.name))

    def _waiting(self, op: str) -> asyncio.Future[wire.Response] | None:
        answer = self._answers.get(op)
        return None if answer is None or answer.done() else answer


class _Through:
    """A `Transport` to the worker beside an agent."""

    def __init__(self, caller: _Caller, heard: _Heard) -> None:
        self._caller = caller
        self._heard = heard

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,  # noqa: ARG002 (a handshake has none)
        body: bytes | None = None,  # noqa: ARG002 (as above)
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 (as above)
        deadline_s: float,
    ) -> Response:
        """See `Transport`."""
        head = self._caller.request_to(self._heard, method, path, deadline_s)
        return await self._caller.request(self._heard, head, deadline_s)

    async def close(self) -> None:
        """Do nothing: the connection is closed with the caller."""


def _now_s() -> float:
    return asyncio.get_running_loop().time()
