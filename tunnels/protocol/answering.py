"""The agent's side: each operation once, its answer as often as it is asked for."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tunnels.allowlist import AllowList
from tunnels.base import Response
from tunnels.errors import TransportError
from tunnels.protocol import pieces, refusals
from tunnels.protocol.memory import Memory, Operation
from tunnels.protocol.pieces import Assembly
from tunnels.wire import limits, messages
from tunnels.wire.messages import Cancel, Piece, Refusal, Request, Want

ASSEMBLING_BYTES_MAX: Final = 64 * 2**20
"""Announced bodies of all requests that are not complete; further ones are refused as `busy`."""

_READS: Final = frozenset({"GET", "HEAD"})


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

    Args:
        allow: The requests that it carries out.
        epoch: The newest epoch that it has seen before, in an earlier boot.
    """

    def __init__(self, allow: AllowList, *, epoch: int = 0) -> None:
        self.epoch = epoch
        self.owner = ""
        self.refused: Final[Counter[str]] = Counter()
        self._allow = allow
        self._memory = Memory()

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
            self._memory.answer(operation, refusals.of_error(op, outcome), b"")
        elif len(outcome.body) > limits.RESPONSE_BYTES_MAX or not _fits(outcome.headers):
            self._memory.answer(operation, refusals.refusal(op, refusals.LOST, "the response is too large"), b"")
        else:
            head = messages.Response(
                op, outcome.status, dict(outcome.headers), len(outcome.body), pieces.first(outcome.body)
            )
            self._memory.answer(operation, head, outcome.body)
        yield from self._repeat(operation)

    def tick(self, now_ms: int) -> Iterator[AgentOutput]:
        """Let time pass: ask again for pieces, forget what is over."""
        self._memory.forget_expired(now_ms)
        for operation in self._memory.all():
            if operation.assembly is not None and now_ms / 1000 >= operation.assembly.due_s():
                yield from self._ask(operation, now_ms)

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
        operation = Operation(caller, request)
        why = self._objection(caller, request, now_ms)
        if why is not None:
            self.refused[why.code] += 1
            yield Say(caller, why)
            return
        operation.assembly = Assembly(request.size, request.body, now_ms / 1000)
        self._memory.add(operation)
        yield from self._ask(operation, now_ms)

    def _objection(self, caller: str, request: Request, now_ms: int) -> Refusal | None:
        """Return why a new request is not carried out; None if it is."""
        op, left_ms = request.op, request.expires_ms - now_ms
        if left_ms <= 0:
            return refusals.refusal(op, refusals.EXPIRED, f"the request came {-left_ms} ms after its deadline")
        if left_ms > limits.DEADLINE_S_MAX * 1000:
            return refusals.refusal(op, refusals.NOT_ALLOWED, f"a deadline of {left_ms} ms is too far away")
        if not self._allow.allows(request.method, request.path):
            said = f"{request.method} {request.path} is not on the agent's allow-list"
            return refusals.refusal(op, refusals.NOT_ALLOWED, said)
        if request.epoch == 0:
            if request.method not in _READS:
                return refusals.refusal(op, refusals.NOT_ALLOWED, "without an epoch, only reads are carried out")
        elif not self.raise_epoch(caller, request.epoch):
            return refusals.refusal(
                op, refusals.STALE, f"epoch {request.epoch} is over: the agent has seen {self.epoch}"
            )
        assembling = sum(other.request.size for other in self._memory.all() if other.assembly is not None)
        if self._memory.full or assembling + request.size > ASSEMBLING_BYTES_MAX:
            return refusals.refusal(op, refusals.BUSY, f"{len(self._memory)} operations are in hand")
        return None

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
        operation.assembly = None
        if 0 < request.epoch < self.epoch:
            why = refusals.refusal(request.op, refusals.STALE, f"epoch {request.epoch} is over by now: {self.epoch}")
        elif left_ms <= 0:
            why = refusals.refusal(request.op, refusals.EXPIRED, "its body was complete only after its deadline")
        else:
            yield Run(request.op, request, assembly.body(), left_ms / 1000)
            return
        self.refused[why.code] += 1
        self._memory.answer(operation, why, b"")
        yield Say(operation.caller, why)

    def _repeat(self, operation: Operation) -> Iterator[AgentOutput]:
        """Answer an operation, if its answer is known yet."""
        op = operation.request.op
        if operation.answer is None:
            return
        if operation.forgotten:
            yield Say(operation.caller, refusals.refusal(op, refusals.FORGOTTEN, "the answer is not kept any longer"))
            return
        yield Say(operation.caller, operation.answer)
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
        operation.assembly = None
        self._memory.answer(operation, refusals.refusal(op, refusals.LOST, "the caller cancelled it"), b"")
        if ran:
            yield Stop(op)


def _fits(headers: Mapping[str, str]) -> bool:
    return sum(len(name) + len(value) for name, value in headers.items()) <= limits.PIECE_BYTES
