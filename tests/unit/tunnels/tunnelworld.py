"""Callers, agents and a network in virtual time: everything that a carrier may do to a message, and restarts."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tunnels import wire
from tunnels.base import AllowList, DeadlineExceeded, Response, TransportError
from tunnels.protocol.answering import AgentOutput, Answering, Run, Say, StopOperation
from tunnels.protocol.calling import Calling
from tunnels.protocol.presence import Answered, CallerOutput, EventReported, Failed, Send
from tunnels.wire import Cancel, Goodbye, Heartbeat, Hello, Message, Piece, Probe, Request, Want

ALLOW: Final = AllowList([(method, "/labs/{lab}") for method in ("GET", "POST", "PUT", "DELETE")])
HEARTBEAT_S: Final = 1.0
SILENCE_S: Final = 30.0
CLOCK_MS: Final = 1_000_000
TO_AGENT: Final = True
TO_CALLER: Final = False


@dataclass
class Frame:
    """A frame on its way: from a caller to a boot, or back; `caller` None means all callers."""

    to_agent: bool
    boot: str
    caller: int | None
    frame: bytes


@dataclass
class Asked:
    caller: int
    op: str
    method: str
    path: str
    body: bytes
    deadline_s: float
    epoch: int
    outcome: Response | TransportError | None = None


@dataclass
class Agent:
    boot: str
    answering: Answering
    running: dict[str, Run] = field(default_factory=dict)
    beat_s: float = 0.0


class World:
    """One name, an agent that bears it, some callers."""

    def __init__(self, callers: int = 1) -> None:
        self.now_s = 100.0
        self.network: list[Frame] = []
        self.callings = [Calling("w1") for _ in range(callers)]
        self.asked: list[Asked] = []
        self.executed: Counter[str] = Counter()
        self.epochs_run: list[int] = []
        self.happened: list[tuple[int, EventReported]] = []
        self.boots = 0
        self.agent = self._boot(0)

    def _boot(self, epoch: int) -> Agent:
        self.boots += 1
        agent = Agent(f"b{self.boots}", Answering(ALLOW, epoch=epoch))
        self.agent = agent
        self.hello()
        return agent

    def restart(self, *, goodbye: bool) -> None:
        """Kill the agent; with `goodbye` its carrier says so."""
        if goodbye:
            self._announce(Goodbye("killed"))
        self._boot(self.agent.answering.epoch)

    def hello(self) -> None:
        answering = self.agent.answering
        self._announce(Hello(self.agent_ms(), int(SILENCE_S * 1000), epoch=answering.epoch))

    def agent_ms(self) -> int:
        return CLOCK_MS * self.boots + int(self.now_s * 1000)

    def _announce(self, message: Message) -> None:
        for caller in range(len(self.callings)):
            self.network.append(Frame(TO_CALLER, self.agent.boot, caller, wire.encode(message)))

    def ask(self, caller: int, method: str, body: bytes = b"", *, deadline_s: float = 60.0, epoch: int = 1) -> Asked:
        number = len(self.asked)
        asked = Asked(caller, f"c{caller}-{number}", method, f"/labs/l{number}", body, self.now_s + deadline_s, epoch)
        self.asked.append(asked)
        head = Request(asked.op, epoch, 0, method, asked.path)
        try:
            self._caller_does(caller, list(self.callings[caller].begin(head, body, asked.deadline_s, self.now_s)))
        except TransportError as error:
            asked.outcome = error
        return asked

    def _caller_does(self, caller: int, outputs: list[CallerOutput]) -> None:
        by_op = {asked.op: asked for asked in self.asked}
        for output in outputs:
            match output:
                case Send():
                    self.network.append(Frame(TO_AGENT, output.boot, caller, wire.encode(output.message)))
                    self.callings[caller].left(output.op)
                case Answered():
                    assert by_op[output.op].outcome is None
                    assert by_op[output.op].caller == caller
                    by_op[output.op].outcome = output.response
                case Failed():
                    assert by_op[output.op].outcome is None
                    by_op[output.op].outcome = output.error
                case EventReported():
                    self.happened.append((caller, output))

    def deliver(self, index: int, *, keep: bool = False) -> None:
        """Deliver a frame; `keep` leaves it there, to be delivered once more."""
        frame = self.network[index] if keep else self.network.pop(index)
        if frame.to_agent:
            if frame.boot == self.agent.boot and frame.caller is not None:
                self._agent_receives(frame.caller, frame.frame)
        elif frame.caller is not None:
            message = wire.from_agent(frame.frame)
            self._caller_does(frame.caller, list(self.callings[frame.caller].received(frame.boot, message, self.now_s)))

    def _agent_receives(self, caller: int, frame: bytes) -> None:
        message = wire.from_caller(frame)
        match message:
            case Probe():
                hello = Hello(self.agent_ms(), int(SILENCE_S * 1000), epoch=self.agent.answering.epoch)
                self.network.append(Frame(TO_CALLER, self.agent.boot, caller, wire.encode(hello)))
            case Request() | Cancel() | Piece() | Want():
                self._agent_does(list(self.agent.answering.received(str(caller), message, self.agent_ms())))
            case _:
                pass

    def _agent_does(self, outputs: list[AgentOutput]) -> None:
        for output in outputs:
            match output:
                case Say():
                    frame = wire.encode(output.message)
                    self.network.append(Frame(TO_CALLER, self.agent.boot, int(output.caller), frame))
                case Run():
                    assert output.op not in self.agent.running
                    self.epochs_run.append(output.request.epoch)
                    self.executed[output.request.path] += 1
                    self.agent.running[output.op] = output
                case StopOperation():
                    pass  # the server goes on, as one that was asked already may

    def finish(self, op: str, *, error: bool = False) -> None:
        """Let the server answer a running operation with what it was asked, so that a mixed-up answer shows."""
        run = self.agent.running.pop(op)
        said = run.request.path.encode() + b"=" + run.body
        outcome = DeadlineExceeded("the server is slow") if error else Response(200, said)
        self._agent_does(list(self.agent.answering.answered(op, outcome)))

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        if self.now_s >= self.agent.beat_s + HEARTBEAT_S:
            self.agent.beat_s = self.now_s
            self._announce(Heartbeat(self.agent_ms(), epoch=self.agent.answering.epoch))
        self._agent_does(list(self.agent.answering.tick(self.agent_ms())))
        for caller, calling in enumerate(self.callings):
            self._caller_does(caller, list(calling.tick(self.now_s)))
        for asked in self.asked:
            if asked.outcome is None and asked.deadline_s <= self.now_s:
                asked.outcome = DeadlineExceeded("no response")
                self._caller_does(asked.caller, list(self.callings[asked.caller].end(asked.op)))

    def reconnect(self, caller: int) -> None:
        """Lose everything on the way to and from a caller, as a broker without persistence does."""
        self.network = [frame for frame in self.network if frame.caller != caller]
        self._caller_does(caller, list(self.callings[caller].connected(self.now_s)))
        self.network.append(Frame(TO_AGENT, self.agent.boot, caller, wire.encode(Probe())))

    def settle(self, seconds: float = 70.0) -> None:
        """Let everything arrive, in order, for a while."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            while self.network or self.agent.running:
                while self.network:
                    self.deliver(0)
                for op in list(self.agent.running):
                    self.finish(op)
            self.advance(1.0)
