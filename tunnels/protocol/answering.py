"""The agent's side: each operation once, its answer as often as it is asked for."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from tunnels.allowlist import AllowList
from tunnels.base import Response
from tunnels.errors import TransportError
from tunnels.protocol import pieces, refusals
from tunnels.protocol.memory import OPERATIONS_MAX, Memory, Operation
from tunnels.wire import limits, messages
from tunnels.wire.messages import Cancel, Piece, Refusal, Request, StreamOpen, Want


@dataclass(frozen=True, slots=True)
class Say:
    """A message for a caller."""

    caller: str
    message: messages.Response | Refusal | Piece | Want


@dataclass(frozen=True, slots=True)
class Run:
    """An operation is to be executed.

    Attributes:
        op: The operation; its outcome goes to `Answering.answered`.
        request: Its head.
        body: Its whole body.
        left_s: Until it expires.
    """

    op: str
    request: Request
    body: bytes
    left_s: float


@dataclass(frozen=True, slots=True)
class Stop:
    """Nobody waits any longer for an operation that runs."""

    op: str


AgentOutput = Say | Run | Stop


class Answering:
    """The operations of one agent.

    Attributes:
        epoch: The newest that was seen.
        owner: The caller that it came from.
        is_finishing: Whether new commands are left to the next boot.
        refused: How many requests were refused, by code.

    Args:
        allow: The requests that it carries out.
        epoch: The newest epoch that it has seen before, in an earlier boot.
    """

    def __init__(self, allow: AllowList, *, epoch: int = 0) -> None:
        self.epoch = epoch
        self.owner = ""
        self.is_finishing = False
        self.refused: Final[Counter[str]] = Counter()
        self._allow = allow
        self._memory = Memory()
        self._openings: dict[str, int] = {}

    def received(self, caller: str, message: Request | Cancel | Piece | Want, now_ms: int) -> Iterator[AgentOutput]:
        """Handle a message of a caller."""
        match message:
            case Request():
                yield from self._request(caller, message, now_ms)
            case Piece():
                yield from self._piece(message, now_ms)
            case Want():
                yield from self._want(caller, message)
            case Cancel():
                operation = self._memory.get(message.op)
                if operation is not None and operation.answer is None:
                    yield from self._cancel(operation)

    def answered(self, op: str, outcome: Response | TransportError) -> Iterator[AgentOutput]:
        """Note the outcome of an operation that was to be run, and answer it."""
        operation = self._memory.get(op)
        if operation is None or operation.answer is not None:
            return
        if isinstance(outcome, TransportError):
            self._memory.answer(operation, refusals.of_error(op, outcome))
        elif len(outcome.body) > limits.RESPONSE_BYTES_MAX or not _fits(outcome.headers):
            self._memory.answer(operation, refusals.refusal(op, refusals.LOST, "the response is too large"))
        else:
            head = messages.Response(op, outcome.status, dict(outcome.headers), len(outcome.body))
            self._memory.answer(operation, head, outcome.body)
        yield from self._repeat(operation)

    def tick(self, now_ms: int) -> Iterator[AgentOutput]:
        """Let time pass: ask again for pieces, forget what is over."""
        self._memory.forget_expired(now_ms)
        self._openings = {stream: until_ms for stream, until_ms in self._openings.items() if until_ms > now_ms}
        for operation in self._memory.assembling():
            if operation.assembly is not None and now_ms / 1000 >= operation.assembly.due_s():
                yield from self._ask(operation, now_ms)

    def admit(self, caller: str, opening: StreamOpen, now_ms: int) -> Refusal | bool:
        """Judge a request for a stream.

        Returns:
            Why it is refused; True if it is to be opened, False if it came before.
        """
        if opening.stream in self._openings:
            return False
        why = self._objection(caller, opening.stream, "OPEN", opening.path, opening.epoch, opening.expires_ms, now_ms)
        if why is None and len(self._openings) >= OPERATIONS_MAX:
            why = refusals.refusal(opening.stream, refusals.BUSY, f"{len(self._openings)} streams were opened lately")
        if why is not None:
            self.refused[why.code] += 1
            return why
        self._openings[opening.stream] = opening.expires_ms
        return True

    def raise_epoch(self, caller: str, epoch: int) -> bool:
        """Compare an epoch with the newest one seen; False if it is older."""
        if epoch < self.epoch:
            return False
        if epoch:
            self.epoch = epoch
            self.owner = caller
        return True

    def _request(self, caller: str, request: Request, now_ms: int) -> Iterator[AgentOutput]:
        known = self._memory.get(request.op)
        if known is not None:
            known.caller = caller
            if known.assembly is not None:
                yield from self._ask(known, now_ms)
            else:
                yield from self._repeat(known)
            return
        if self.is_finishing and request.method not in messages.READS:
            yield Say(caller, refusals.refusal(request.op, refusals.LEAVING, "the agent ends"))
            return
        why = self._objection(
            caller, request.op, request.method, request.path, request.epoch, request.expires_ms, now_ms
        ) or self._busy(request)
        if why is not None:
            self.refused[why.code] += 1
            yield Say(caller, why)
            return
        yield from self._ask(self._memory.add(caller, request, now_ms / 1000), now_ms)

    def _objection(
        self, caller: str, op: str, method: str, path: str, epoch: int, expires_ms: int, now_ms: int
    ) -> Refusal | None:
        """Return why something new is not carried out; None if it is."""
        left_ms = expires_ms - now_ms
        if left_ms <= 0:
            return refusals.refusal(op, refusals.EXPIRED, f"the request came {-left_ms} ms after its deadline")
        if left_ms > limits.DEADLINE_S_MAX * 1000:
            return refusals.refusal(op, refusals.NOT_ALLOWED, f"a deadline of {left_ms} ms is too far away")
        if not self._allow.allows(method, path):
            return refusals.refusal(op, refusals.NOT_ALLOWED, f"{method} {path} is not on the agent's allow-list")
        if epoch == 0:
            if method not in messages.READS:
                return refusals.refusal(op, refusals.NOT_ALLOWED, "without an epoch, only reads are carried out")
        elif not self.raise_epoch(caller, epoch):
            return refusals.refusal(op, refusals.STALE, f"epoch {epoch} is over: the agent has seen {self.epoch}")
        return None

    def _busy(self, request: Request) -> Refusal | None:
        if self._memory.room_for(request):
            return None
        return refusals.refusal(request.op, refusals.BUSY, f"{len(self._memory)} operations are in hand")

    def _piece(self, piece: Piece, now_ms: int) -> Iterator[AgentOutput]:
        operation = self._memory.get(piece.op)
        if operation is not None and operation.assembly is not None and operation.assembly.add(piece.part, piece.data):
            yield from self._ask(operation, now_ms)

    def _ask(self, operation: Operation, now_ms: int) -> Iterator[AgentOutput]:
        """Run an operation whose body is complete, else ask for more of it."""
        request, assembly = operation.request, operation.assembly
        if assembly is None:
            return
        if not assembly.complete:
            if parts := assembly.wanted(now_ms / 1000):
                yield Say(operation.caller, Want(request.op, parts))
            return
        left_ms = request.expires_ms - now_ms
        body = self._memory.assembled(operation)
        if 0 < request.epoch < self.epoch:
            why = refusals.refusal(request.op, refusals.STALE, f"epoch {request.epoch} is over by now: {self.epoch}")
        elif left_ms <= 0:
            why = refusals.refusal(request.op, refusals.EXPIRED, "its body was complete only after its deadline")
        else:
            yield Run(request.op, request, body, left_ms / 1000)
            return
        self.refused[why.code] += 1
        self._memory.answer(operation, why)
        yield Say(operation.caller, why)

    def _repeat(self, operation: Operation) -> Iterator[AgentOutput]:
        """Answer an operation, if its answer is known yet."""
        op = operation.request.op
        if operation.answer is None:
            return
        if operation.forgotten:
            yield Say(operation.caller, refusals.refusal(op, refusals.FORGOTTEN, "the answer is not kept any longer"))
            return
        answer = operation.answer
        if isinstance(answer, messages.Response):
            answer = msgspec.structs.replace(answer, body=pieces.first(operation.body))
        yield Say(operation.caller, answer)
        for piece in pieces.pushed(op, operation.body):
            yield Say(operation.caller, piece)

    def _want(self, caller: str, want: Want) -> Iterator[AgentOutput]:
        operation = self._memory.get(want.op)
        if operation is None or operation.forgotten:
            yield Say(caller, refusals.refusal(want.op, refusals.FORGOTTEN, "the answer is not kept any longer"))
            return
        for piece in pieces.pieces(want.op, operation.body, want.parts):
            yield Say(caller, piece)

    def _cancel(self, operation: Operation) -> Iterator[AgentOutput]:
        op = operation.request.op
        ran = operation.assembly is None
        self._memory.assembled(operation)
        self._memory.answer(operation, refusals.refusal(op, refusals.LOST, "the caller cancelled it"))
        if ran:
            yield Stop(op)


def _fits(headers: Mapping[str, str]) -> bool:
    return sum(len(name) + len(value) for name, value in headers.items()) <= limits.PIECE_BYTES
