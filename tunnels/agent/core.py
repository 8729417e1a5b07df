"""Relays callers' requests to one server, and says by itself that it is alive and what has changed."""

import asyncio
import contextlib
import logging
import random
import secrets
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Final

from tunnels import wire
from tunnels.agent.epochs import EpochFile
from tunnels.agent.server import Server
from tunnels.base import AllowList, ConnectionLost, StreamOpener, Transport
from tunnels.link.carrier import ALL, WORD, Carrier
from tunnels.protocol import refusals
from tunnels.protocol.answering import AgentOutput, Answering, Run, Say, StopOperation

CALLERS_MAX: Final = 1000
_NOT_ENTITLED: Final = frozenset({refusals.STALE, refusals.NOT_ALLOWED})
_TICK_S: Final = 0.25
_LOG: Final = logging.getLogger("tunnels")


@dataclass(frozen=True, slots=True)
class Habits:
    """How an agent behaves.

    Attributes:
        heartbeat_s: Between two heartbeats, but for a tenth of jitter.
        silence_s: A caller that hears nothing for this long counts the agent as silent.
        hello_s: A broadcast probe is answered within this, at random, so that 1,000 agents do not answer at once.
        name_taken_s: An agent whose name another one bears introduces itself again after this.
    """

    heartbeat_s: float = 10.0
    silence_s: float = 30.0
    hello_s: float = 1.0
    name_taken_s: float = 30.0


def new_boot() -> str:
    """Return a word for a process of an agent, unlike that of any other."""
    return secrets.token_hex(6)


class Agent:
    """The agent of one server.

    Args:
        name: Its name, for messages and logs.
        carrier: Carries the frames; its address bears the boot.
        transport: Reaches the server. Whatever holds credentials wraps it.
        allow: The requests that it relays; checked here, whatever a caller believes.
        streams: Opens streams; None: there are none.
        facts: Returns what hellos and heartbeats say of the server: short, at once.
        epochs: Keeps the newest epoch; None: it is forgotten with the process.
        version: Of the software.
        habits: How it behaves.

    Raises:
        ValueError: The epoch file is spoiled.
        OSError: It cannot be read.
    """

    def __init__(
        self,
        name: str,
        carrier: Carrier,
        transport: Transport,
        *,
        allow: AllowList,
        streams: StreamOpener | None = None,
        facts: Callable[[], bytes],
        epochs: EpochFile | None,
        version: str = "",
        habits: Habits | None = None,
    ) -> None:
        self.counts: Final[Counter[str]] = Counter()
        self.name: Final = name
        self._carrier: Final = carrier
        self._facts: Final = facts
        self._epochs: Final = epochs
        self._version: Final = version
        self._habits: Final = habits or Habits()
        self._answering = Answering(allow, epoch=epochs.read() if epochs is not None else 0)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._commands: set[asyncio.Task[None]] = set()
        self._events = 0
        self._hello_s = float("inf")
        self._complained: set[str] = set()
        self._server = Server(name, transport, streams, self._say, self.counts)

    @property
    def refused(self) -> Counter[str]:
        """How many requests were refused, by code."""
        return self._answering.refused

    async def run(self) -> None:
        """Run the carrier, the heartbeats and the requests, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carrier.run(self), name="carrier")
                group.create_task(self._beat(), name="heartbeats")
                group.create_task(self._tick(), name="ticks of the agent")
        finally:
            running = list(self._running.values())
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def finish(self, within_s: float) -> None:
        """Begin no further command, and wait, while `run` goes on, until those under way are answered.

        Args:
            within_s: At most this long.
        """
        self._answering.is_finishing = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._commands:
                    await asyncio.wait(self._commands)

    def push(self, kind: str, data: bytes) -> None:
        """Tell the owner that something changed; with no owner, the next one learns by the count that it has to look.

        Args:
            kind: At most 64 characters.
            data: At most 64 KiB.
        """
        self._events += 1
        if self._answering.owner:
            self._say(self._answering.owner, wire.Event(self._events, kind, data))

    def received(self, peer: str, frame: bytes) -> None:
        """Handle a frame of a caller; see `Inbox`."""
        if peer != ALL and WORD.fullmatch(peer) is None:
            self._complain(peer, "not a caller's address")
            return
        try:
            message = wire.from_caller(frame)
        except wire.MalformedFrame as error:
            self._complain(peer, str(error))
            return
        match message:
            case wire.Probe():
                if peer == ALL:
                    self._hello_s = min(self._hello_s, self._now_s() + random.uniform(0, self._habits.hello_s))
                else:
                    self._say(peer, self._hello())
            case wire.Refusal():
                self._turned_away(message)
            case wire.Request() | wire.Cancel() | wire.Piece() | wire.Want():
                if peer != ALL:
                    self._handle(self._answering.received(peer, message, self._now_ms()))
            case wire.StreamOpen():
                self._open_stream(peer, message)
            case wire.StreamData() | wire.StreamAck():
                self._server.streams.received(peer, message)

    def connected(self, peer: str) -> None:
        """Introduce itself; see `Inbox`."""
        self._say(peer, self._hello())
        self._server.streams.connected(peer)

    def disconnected(self, peer: str) -> None:
        """Go on: what callers miss, they ask for again. See `Inbox`."""
        self.counts["disconnected"] += 1
        _LOG.info("agent %s: no connection to %s", self.name, peer or "the carrier")

    async def _beat(self) -> None:
        while True:
            heartbeat_s = self._habits.heartbeat_s
            await asyncio.sleep(heartbeat_s * random.uniform(0.9, 1.0))
            self._say(ALL, wire.Heartbeat(self._now_ms(), self._answering.epoch, self._events, self._bounded_facts()))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            if self._now_s() >= self._hello_s:
                self._hello_s = float("inf")
                self._say(ALL, self._hello())
            self._handle(self._answering.tick(self._now_ms()))
            self._server.streams.tick()

    def _handle(self, outputs: Iterable[AgentOutput]) -> None:
        for output in outputs:
            match output:
                case Say():
                    self._say(output.caller, output.message)
                    if isinstance(output.message, wire.Refusal):
                        self._note_refusal(output.caller, output.message)
                case Run():
                    self._start(output)
                case StopOperation():
                    if (task := self._running.get(output.op)) is not None:
                        task.cancel()

    def _start(self, run: Run) -> None:
        if (lost := self._store_epoch()) is not None:
            self._handle(self._answering.answered(run.op, lost))
            return
        task = self._spawn(run.op, self._relay(run))
        if run.request.method not in wire.READS:
            self._commands.add(task)
            task.add_done_callback(self._commands.discard)

    def _store_epoch(self) -> ConnectionLost | None:
        """Put a raised epoch on disk, before anything is done under it."""
        try:
            if self._epochs is not None:
                self._epochs.keep(self._answering.epoch)
        except OSError as error:
            _LOG.error("agent %s: the epoch cannot be stored: %s", self.name, error)
            return ConnectionLost(f"the agent cannot store the epoch: {error}")
        return None

    def _spawn(self, key: str, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=f"agent: {key}")
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))
        return task

    async def _relay(self, run: Run) -> None:
        outcome = await self._server.answer(run)
        self.counts["relayed"] += 1
        self._handle(self._answering.answered(run.op, outcome))

    def _open_stream(self, peer: str, opening: wire.StreamOpen) -> None:
        verdict = self._answering.admit(peer, opening, self._now_ms())
        if verdict is False:
            self._server.streams.again(opening.stream)
        elif verdict is not True:
            self._say(peer, verdict)
        elif (lost := self._store_epoch()) is not None:
            self._say(peer, refusals.of_error(opening.stream, lost))
        else:
            left_s = (opening.expires_ms - self._now_ms()) / 1000
            self._spawn(opening.stream, self._server.carry(peer, opening, left_s))

    def _say(self, peer: str, message: wire.Message) -> None:
        if not self._carrier.send(peer, wire.encode(message)):
            self.counts["dropped"] += 1

    def _hello(self) -> wire.Hello:
        return wire.Hello(
            clock_ms=self._now_ms(),
            silence_ms=int(self._habits.silence_s * 1000),
            epoch=self._answering.epoch,
            events=self._events,
            version=self._version,
            facts=self._bounded_facts(),
        )

    def _bounded_facts(self) -> bytes:
        facts = self._facts()
        if len(facts) > wire.FACTS_BYTES_MAX:
            self._complain("its own facts", f"{len(facts)} bytes, more than {wire.FACTS_BYTES_MAX}")
            return b""
        return facts

    def _turned_away(self, said: wire.Refusal) -> None:
        """Note that a caller knows another agent of this name, and ask again later."""
        if said.code == refusals.NAME_TAKEN:
            self.counts["name_taken"] += 1
            _LOG.error("agent %s: %s", self.name, said.text)
            self._hello_s = min(self._hello_s, self._now_s() + self._habits.name_taken_s)

    def _note_refusal(self, peer: str, said: wire.Refusal) -> None:
        """Log the first request of each caller that is refused by what it asks for, or by whom."""
        if said.code in _NOT_ENTITLED and self._is_first(f"{said.code} {peer}"):
            _LOG.warning("agent %s: a request of %.100r is refused (%s): %s", self.name, peer, said.code, said.text)

    def _complain(self, peer: str, why: str) -> None:
        """Count a frame that cannot be used, and log the first one of each peer."""
        self.counts["malformed"] += 1
        if self._is_first(peer):
            _LOG.warning("agent %s: a frame of %.100r is refused: %s", self.name, peer, why)

    def _is_first(self, complaint: str) -> bool:
        """Return whether a complaint is a new one; of very many, none is."""
        if complaint in self._complained or len(self._complained) >= CALLERS_MAX:
            return False
        self._complained.add(complaint)
        return True

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)
