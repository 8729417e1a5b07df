"""What a caller knows of the agents of one name: which boot is there, and their events in order."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from tunnels.base import Response, TransportError
from tunnels.wire import CallerMessage, Event, Goodbye, Heartbeat, Hello


@dataclass(frozen=True, slots=True)
class Send:
    """A message for the boot of an agent.

    Attributes:
        boot: The agent's process.
        message: The message.
        op: The operation that it carries out; the guard is asked first. Empty for what changes nothing.
    """

    boot: str
    message: CallerMessage
    op: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """An operation has its response."""

    op: str
    response: Response


@dataclass(frozen=True, slots=True)
class Failed:
    """An operation has failed."""

    op: str
    error: TransportError


@dataclass(frozen=True, slots=True)
class EventReported:
    """The agent reports an event; `lost` if one or more before it did not arrive, so that only a look helps."""

    kind: str
    data: bytes
    lost: bool = False


CallerOutput = Send | Answered | Failed | EventReported


class EventCount:
    """Counts the events of the present boot of an agent."""

    def __init__(self) -> None:
        self._boot, self._seq = "", 0

    def counted(self, boot: str, event: Event) -> Iterator[EventReported]:
        """Report an event; a repeated or overtaken one is left out."""
        if boot != self._boot:
            self._boot, self._seq = boot, event.seq
            yield EventReported(event.kind, event.data, lost=True)
        elif event.seq > self._seq:
            lost = event.seq != self._seq + 1
            self._seq = event.seq
            yield EventReported(event.kind, event.data, lost=lost)

    def reaches(self, boot: str, seq: int) -> Iterator[EventReported]:
        """Notice by the agent's own count that events were lost."""
        if boot != self._boot or seq > self._seq:
            self._boot, self._seq = boot, seq
            yield EventReported("", b"", lost=True)


PROVE_S: Final = 3.0
"""An agent that is there answers a probe within this; else a newcomer of its name replaces it."""

RETURN_S: Final = 3.0
"""An agent of which its carrier says that it is lost has left if it is not back within this."""

_SAMPLES: Final = 8
"""Heartbeats by which the agent's clock is judged: a clock that was suspended meanwhile shows soon."""


class AgentState(Enum):
    """Whether an agent can be asked."""

    UNKNOWN = "unknown"  # nothing was heard since this caller came up
    THERE = "there"
    SILENT = "silent"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class AgentView:
    """What a caller knows of an agent.

    Attributes:
        state: Whether it can be asked.
        boot: The process that bears the name.
        rival: A second process that claims the name and was refused, the first one of several; empty if there is none,
            or it is silent.
        version: Of its software.
        epoch: The newest epoch that it has seen.
        facts: What its embedder said last.
        reason: Why it left.
    """

    state: AgentState = AgentState.UNKNOWN
    boot: str = ""
    rival: str = ""
    version: str = ""
    epoch: int = 0
    facts: bytes = b""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Challenger:
    boot: str
    said: Hello
    since_s: float


@dataclass(frozen=True, slots=True)
class _Lost:
    reason: str
    leaves_s: float


class AgentPresence:
    """The agents of one name.

    The first one that is heard bears the name. A second one bears it as soon as the first has left, is silent, or does
    not answer a probe; until then it is a challenger, and if the first one does answer, a rival.
    """

    def __init__(self) -> None:
        self.view = AgentView()
        self.heard_s = float("-inf")
        self._silence_s = 0.0
        self._offsets_ms: deque[float] = deque(maxlen=_SAMPLES)
        self._challenger: _Challenger | None = None
        self._lost: _Lost | None = None
        self._rival_heard_s = float("-inf")
        self._rival_silence_s = 0.0

    def hello(self, boot: str, said: Hello, now_s: float) -> bool:
        """Note a hello; True if the bearer of the name has to prove now that it is still there."""
        if self.view.state is not AgentState.THERE or boot == self.view.boot or self._lost is not None:
            self._adopt(boot, said, now_s)
            return False
        if boot == self.view.rival:
            self._rival_heard_s = now_s
            return False
        if self._challenger is not None and self._challenger.boot == boot:
            return False
        self._challenger = _Challenger(boot, said, now_s)
        return True

    def heartbeat(self, boot: str, said: Heartbeat, now_s: float) -> bool:
        """Note a heartbeat; False if its sender has to introduce itself first."""
        if boot == self.view.boot and self.view.state is AgentState.THERE:
            self.heard_s, self._lost = now_s, None
            self._offsets_ms.append(said.clock_ms - now_s * 1000)
            self.view = replace(self.view, epoch=said.epoch, facts=said.facts or self.view.facts)
            return True
        if self.view.state is not AgentState.THERE or boot != self.view.rival:
            return False
        self._rival_heard_s = now_s
        return True

    def heard(self, boot: str, now_s: float) -> None:
        """Note a sign of life: any other message."""
        if boot == self.view.boot and self.view.state is AgentState.THERE:
            self.heard_s = now_s

    def goodbye(self, boot: str, said: Goodbye, now_s: float) -> None:
        """Note a goodbye; a challenger or rival only gives up its claim."""
        if self._challenger is not None and self._challenger.boot == boot:
            self._challenger = None
        if boot == self.view.rival:
            self.view = replace(self.view, rival="")
        if boot == self.view.boot:
            self._lost = _Lost(said.reason, now_s + RETURN_S)
            if not said.lost or self._challenger is not None:
                self._leave(now_s)

    def disconnected(self) -> None:
        """Believe no longer that an agent is lost: a broker that is shut down says so of everybody."""
        self._lost = None

    def tick(self, now_s: float) -> str:
        """Let time pass; return the boot of a rival that is to be refused now, or an empty text."""
        if self.view.state is not AgentState.THERE:
            return ""
        refused = ""
        challenger = self._challenger
        if challenger is not None and now_s - challenger.since_s >= PROVE_S:
            if self.heard_s > challenger.since_s:
                refused = challenger.boot
                self._challenger = None
                self._note_rival(challenger, now_s)
            else:
                self._promote(now_s)
        if self.view.rival and now_s - self._rival_heard_s >= self._rival_silence_s:
            self.view = replace(self.view, rival="")
        if self._lost is not None and now_s >= self._lost.leaves_s:
            self._leave(now_s)
        elif now_s - self.heard_s >= self._silence_s:
            self.view = replace(self.view, state=AgentState.SILENT)
            self._promote(now_s)
        return refused

    def due_s(self) -> float:
        """Return when `tick` has something to do; infinite if never."""
        if self.view.state is not AgentState.THERE:
            return float("inf")
        due_s = self.heard_s + self._silence_s
        if self._challenger is not None:
            due_s = min(due_s, self._challenger.since_s + PROVE_S)
        if self.view.rival:
            due_s = min(due_s, self._rival_heard_s + self._rival_silence_s)
        return due_s if self._lost is None else min(due_s, self._lost.leaves_s)

    def clock_ms(self, now_s: float) -> int:
        """Return the agent's clock, or a little less.

        A heartbeat shows the clock as it was when it was sent; of several, the fastest one shows it best.
        """
        return int(now_s * 1000 + max(self._offsets_ms, default=0.0))

    def _leave(self, now_s: float) -> None:
        if self._lost is not None and self.view.state is not AgentState.LEFT:
            self.view = replace(self.view, state=AgentState.LEFT, reason=self._lost.reason)
        self._lost = None
        self._promote(now_s)

    def _adopt(self, boot: str, said: Hello, now_s: float) -> None:
        self._lost = None
        if boot != self.view.boot:
            self._offsets_ms.clear()
        self.heard_s = now_s
        self._silence_s = said.silence_ms / 1000
        self._offsets_ms.append(said.clock_ms - now_s * 1000)
        rival = "" if boot == self.view.rival else self.view.rival
        self.view = AgentView(AgentState.THERE, boot, rival, said.version, said.epoch, said.facts)

    def _note_rival(self, challenger: _Challenger, now_s: float) -> None:
        """Note who was refused; of several, only the first one, so that they do not replace each other for ever."""
        if not self.view.rival:
            self.view = replace(self.view, rival=challenger.boot)
            self._rival_heard_s, self._rival_silence_s = now_s, challenger.said.silence_ms / 1000

    def _promote(self, now_s: float) -> None:
        challenger, self._challenger = self._challenger, None
        if challenger is not None:
            self._adopt(challenger.boot, challenger.said, challenger.since_s)
            self.heard_s = now_s
