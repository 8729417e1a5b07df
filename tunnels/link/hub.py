"""The caller's end of one carrier, shared by all agents that it reaches, and the `Transport` to each of them."""

import asyncio
import itertools
import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from tunnels import wire
from tunnels.base import AllowList, ConnectFailed, DeadlineExceeded, Response
from tunnels.link.carrier import ALL, Address, Carrier, parse_address
from tunnels.link.stream import ByteStream, StreamPort
from tunnels.outgoing import Guard
from tunnels.protocol import refusals
from tunnels.protocol.calling import Calling
from tunnels.protocol.presence import AgentState, AgentView, Answered, CallerOutput, EventReported, Failed, Send
from tunnels.wire import Request, StreamOpen

TICK_S: Final = 0.25
AGENTS_MAX: Final = 10_000
"""Names that are remembered; a carrier whose access rules hold brings no more than there are agents."""

_LOG: Final = logging.getLogger("tunnels")


class AgentListener(Protocol):
    """Who wants to know what agents say by themselves; called in the event loop, must not block or raise."""

    def presence(self, name: str, view: AgentView) -> None:
        """Note that something about an agent changed."""

    def event(self, name: str, kind: str, data: bytes, *, lost: bool) -> None:
        """Note an event; after a lost one only a look at the server helps."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    name: str
    future: asyncio.Future[Response]
    guard: Guard | None


class Hub:
    """Requests to agents, and what they say by themselves.

    Args:
        carrier: Carries the frames.
        listener: Hears of agents and their events.
    """

    def __init__(self, carrier: Carrier, listener: AgentListener) -> None:
        self.counts: Final[Counter[str]] = Counter()
        self._carrier: Final = carrier
        self._listener: Final = listener
        self._callings: dict[str, Calling] = {}
        self._views: dict[str, AgentView] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._ids: Iterator[str] = map(f"{secrets.token_hex(8)}-{{}}".format, itertools.count(1))
        self._complained: set[str] = set()
        self._streams = StreamPort(self._tell)

    async def run(self) -> None:
        """Run the carrier and the clock of all agents, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._carrier.run(self), name="carrier")
            group.create_task(self._tick(), name="ticks of the tunnels")

    def view(self, name: str) -> AgentView:
        """Return the presence of an agent."""
        return self._views.get(name, AgentView())

    async def request(
        self,
        name: str,
        head: wire.Request,
        body: bytes,
        *,
        guard: Guard | None,
        deadline_s: float,
    ) -> Response:
        """Send a request through an agent and return the response.

        Args:
            name: The agent's name.
            head: The request; its operation, expiry, size and first piece are filled in here.
            body: The body.
            guard: Asked before every frame that carries the request.
            deadline_s: Seconds until `DeadlineExceeded`.

        Raises:
            ConnectFailed: The agent is away, or did not come before the deadline: nothing was sent.
            TransportError: See `Transport.request`.
        """
        op = next(self._ids)
        calling = self._calling(name)
        waiting = _Waiting(name, asyncio.get_running_loop().create_future(), guard)
        self._waiting[op] = waiting
        now_s = _now_s()
        try:
            async with asyncio.timeout(deadline_s):
                begun = calling.begin(msgspec.structs.replace(head, op=op), body, now_s + deadline_s, now_s)
                self._handle(name, calling, begun)
                return await waiting.future
        except TimeoutError:
            if calling.was_sent(op):
                raise DeadlineExceeded(f"{name}: no response through the agent within {deadline_s:.3g} s") from None
            raise ConnectFailed(f"{name}: no agent was there within {deadline_s:.3g} s") from None
        finally:
            del self._waiting[op]
            self._handle(name, calling, calling.end(op))

    async def open_stream(
        self, name: str, opening: wire.StreamOpen, *, guard: Guard | None, deadline_s: float
    ) -> ByteStream:
        """Open a stream of bytes to something beside an agent.

        Args:
            name: The agent's name.
            opening: What is wanted; its id and expiry are filled in here.
            guard: Asked before it is sent.
            deadline_s: Seconds until it must be open.

        Raises:
            ConnectFailed: No agent is there.
            TransportError: The stream was refused, or not opened in time.
        """
        view = self.view(name)
        if view.state is not AgentState.THERE:
            raise ConnectFailed(f"{name}: no agent is there ({view.state.value})")
        if guard is not None:
            guard()
        expires_ms = max(0, self._calling(name).presence.clock_ms(_now_s()) + int(deadline_s * 1000))
        whole = msgspec.structs.replace(opening, stream=next(self._ids), expires_ms=expires_ms)
        return await self._streams.open(str(Address(name, view.boot)), whole, deadline_s)

    def received(self, peer: str, frame: bytes) -> None:
        """Handle a frame; see `Inbox`."""
        address = parse_address(peer)
        if address is None or (address.name not in self._callings and len(self._callings) >= AGENTS_MAX):
            self._refuse(peer, "not an agent's address, or one too many")
            return
        try:
            message = wire.from_agent(frame)
        except wire.MalformedFrame as error:
            self._refuse(peer, str(error))
            return
        calling = self._calling(address.name)
        if isinstance(message, wire.StreamData | wire.StreamAck):
            calling.presence.heard(address.boot, _now_s())
            self._streams.received(peer, message)
        elif not (
            isinstance(message, wire.Refusal)
            and self._streams.refused(peer, message.op, refusals.error_of(message, address.name))
        ):
            self._handle(address.name, calling, calling.received(address.boot, message, _now_s()))

    def connected(self, peer: str) -> None:
        """Ask who is there, and repeat what is unanswered; see `Inbox`."""
        if peer == ALL:
            self._carrier.send(ALL, wire.encode(wire.Probe()))
            for name, calling in list(self._callings.items()):
                self._handle(name, calling, calling.connected(_now_s()))
        elif (address := parse_address(peer)) is not None and address.name in self._callings:
            calling = self._callings[address.name]
            self._handle(address.name, calling, calling.connected(_now_s()))
        self._streams.connected(peer)

    def disconnected(self, peer: str) -> None:
        """Count a loss; what is unanswered is repeated when the connection is back. See `Inbox`."""
        self.counts["disconnected"] += 1
        if peer == ALL:
            for calling in self._callings.values():
                calling.disconnected()
        _LOG.info("tunnel: no connection to %s", peer or "the carrier")

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            now_s = _now_s()
            for name, calling in list(self._callings.items()):
                if calling.due_s() <= now_s:
                    self._handle(name, calling, calling.tick(now_s))
            self._streams.tick()

    def _calling(self, name: str) -> Calling:
        return self._callings.setdefault(name, Calling(name))

    def _handle(self, name: str, calling: Calling, outputs: Iterable[CallerOutput]) -> None:
        for output in outputs:
            match output:
                case Send():
                    self._send(name, calling, output)
                case Answered():
                    self._settle(output.op, output.response)
                case Failed():
                    self._settle(output.op, output.error)
                case EventReported():
                    self._listener.event(name, output.kind, output.data, lost=output.lost)
        view = calling.presence.view
        before = self.view(name)
        if view != before:
            self._views[name] = view
            if before.boot and view.boot != before.boot:
                self._streams.vanished(str(Address(name, before.boot)))
            self._listener.presence(name, view)

    def _send(self, name: str, calling: Calling, output: Send) -> None:
        if output.op:
            waiting = self._waiting.get(output.op)
            if waiting is None or waiting.future.done():
                return
            try:
                if waiting.guard is not None:
                    waiting.guard()
            except Exception as error:  # noqa: BLE001 (handed to the caller that waits for the response)
                waiting.future.set_exception(error)
                return
        if self._carrier.send(str(Address(name, output.boot)), wire.encode(output.message)):
            self.counts["sent"] += 1
            calling.left(output.op)
        else:
            self.counts["dropped"] += 1
            calling.dropped(output.op, _now_s())

    def _tell(self, peer: str, message: wire.CallerMessage) -> None:
        self.counts["sent" if self._carrier.send(peer, wire.encode(message)) else "dropped"] += 1

    def _settle(self, op: str, outcome: Response | Exception) -> None:
        waiting = self._waiting.get(op)
        if waiting is None or waiting.future.done():
            return
        if isinstance(outcome, Response):
            waiting.future.set_result(outcome)
        else:
            waiting.future.set_exception(outcome)

    def _refuse(self, peer: str, why: str) -> None:
        """Count a frame that cannot be used, and log the first one of each peer."""
        self.counts["refused"] += 1
        if peer not in self._complained and len(self._complained) < AGENTS_MAX:
            self._complained.add(peer)
            _LOG.warning("tunnel: a frame of %.100r is refused: %s", peer, why)


def _now_s() -> float:
    return asyncio.get_running_loop().time()


class TunnelTransport:
    """A `Transport` through an agent; the hub and its connection are shared with all others.

    Args:
        hub: Of the carrier.
        name: The agent's name.
        allow: The requests that may be sent; the agent has a list of its own.
        guard: Asked in the same step of the event loop in which a frame leaves, repetitions included; what it raises
            passes through unchanged.
        epoch: Returns the epoch of the caller's ownership; 0: it may only read.
        user_agent: The `User-Agent` header; none if empty.
    """

    def __init__(
        self,
        hub: Hub,
        name: str,
        *,
        allow: AllowList,
        guard: Guard | None = None,
        epoch: Callable[[], int],
        user_agent: str = "",
    ) -> None:
        self._hub: Final = hub
        self._name: Final = name
        self._allow: Final = allow
        self._guard: Final = guard
        self._epoch: Final = epoch
        self._headers: Final = {"User-Agent": user_agent} if user_agent else {}
        self._closed = False

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
        """Send one request and return the whole response; see `Transport.request`.

        Raises:
            RequestRefused: The allow-list, or the agent's, does not name it.
            StaleEpoch: The agent has seen a newer epoch.
            ConnectFailed: The agent is away, or has no connection to the server.
            CertificateInvalid: The agent cannot trust the server's certificate.
            ConnectionLost: The agent, or its connection to the server, ended before the response.
            DeadlineExceeded: No response within `deadline_s`.
        """
        self._allow.check(method, path)
        if self._closed:
            raise ConnectFailed(f"{self._name}: the transport is closed")
        head = Request(
            op="-",
            epoch=self._epoch(),
            expires_ms=0,
            method=method,
            path=path,
            params=dict(params or {}),
            headers={**self._headers, **(headers or {})},
        )
        return await self._hub.request(self._name, head, body or b"", guard=self._guard, deadline_s=deadline_s)

    async def open_stream(self, path: str, *, params: Mapping[str, str] | None = None, deadline_s: float) -> ByteStream:
        """Open a stream of bytes, such as a console; the allow-list names it with the method `OPEN`.

        Raises:
            TransportError: It was not opened.
        """
        self._allow.check("OPEN", path)
        if self._closed:
            raise ConnectFailed(f"{self._name}: the transport is closed")
        opening = StreamOpen("-", self._epoch(), 0, path, dict(params or {}))
        return await self._hub.open_stream(self._name, opening, guard=self._guard, deadline_s=deadline_s)

    async def close(self) -> None:
        """Refuse later requests; the connection stays, for the others."""
        self._closed = True
