"""The agent's side: each operation is executed once, and its answer sent as often as it is asked for."""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from tunnels import base, wire
from tunnels.base import AllowList, TransportError
from tunnels.protocol import pieces, refusals
from tunnels.protocol.pieces import Assembly
from tunnels.wire import Cancel, Piece, Refusal, Request, Response, StreamOpen, Want

OPERATIONS_MAX: Final = 16_384
"""Operations that are remembered at once. Answered reads make room for new ones; if there are none, a new operation is
refused as `busy`: 270 commands a second, each with a minute until it expires."""

BYTES_MAX: Final = 16 * 2**20
"""Bodies of answers; beyond that the oldest are forgotten."""

ASSEMBLING_BYTES_MAX: Final = 64 * 2**20
"""Announced bodies of all requests that are not complete."""

_RUNNING_MS: Final = 1000


@dataclass(slots=True)
class AgentOperation:
    """One operation.

    Attributes:
        caller: Who asked last; the answer goes there.
        request: Its head, without a body.
        assembly: The request's body, while pieces of it are missing.
        answer: What was answered, without a body; None while it runs.
        body: Of the answer.
        forgotten: Whether the answer's body was dropped to save memory.
    """

    caller: str
    request: Request
    assembly: Assembly | None = None
    answer: Response | Refusal | None = None
    body: bytes = b""
    forgotten: bool = False


class OperationMemory:
    """Operations until they expire, with bounds on their number and bytes."""

    def __init__(self) -> None:
        self._operations: dict[str, AgentOperation] = {}
        self._expiries: list[tuple[int, str]] = []
        self._assembling: dict[str, AgentOperation] = {}
        self._assembling_bytes = 0
        self._reads: dict[str, None] = {}
        self._commands: dict[str, None] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._operations)

    def get(self, op: str) -> AgentOperation | None:
        """Return an operation."""
        return self._operations.get(op)

    def assembling(self) -> list[AgentOperation]:
        """Return the operations whose request is not complete."""
        return list(self._assembling.values())

    def room_for(self, request: Request) -> bool:
        """Return whether a further operation can be remembered; answered reads make room."""
        if len(self._operations) >= OPERATIONS_MAX and self._reads:
            self.forget(next(iter(self._reads)))
        return len(self._operations) < OPERATIONS_MAX and self._assembling_bytes + request.size <= ASSEMBLING_BYTES_MAX

    def add(self, caller: str, request: Request, now_s: float) -> AgentOperation:
        """Remember a new operation."""
        head = msgspec.structs.replace(request, body=b"")
        operation = AgentOperation(caller, head, Assembly(request.size, request.body, now_s))
        self._operations[head.op] = self._assembling[head.op] = operation
        self._assembling_bytes += head.size
        heapq.heappush(self._expiries, (head.expires_ms, head.op))
        return operation

    def assembled(self, operation: AgentOperation) -> bytes:
        """Note that a request is complete or given up, and return what there is of its body."""
        assembly, operation.assembly = operation.assembly, None
        if self._assembling.pop(operation.request.op, None) is not None:
            self._assembling_bytes -= operation.request.size
        return assembly.body() if assembly is not None and assembly.complete else b""

    def answer(self, operation: AgentOperation, answer: Response | Refusal, body: bytes = b"") -> None:
        """Note the answer to an operation; older answers make room for its body."""
        operation.answer = answer
        operation.body = body
        self._bytes += len(body)
        op = operation.request.op
        (self._reads if operation.request.method == "GET" else self._commands)[op] = None
        while self._bytes > BYTES_MAX:
            oldest = next((old for kind in (self._reads, self._commands) for old in kind if old != op), None)
            if oldest is None:
                return
            self._forget_body(self._operations[oldest])

    def forget(self, op: str) -> None:
        """Forget an operation altogether."""
        operation = self._operations.pop(op, None)
        if operation is not None:
            self.assembled(operation)
            self._bytes -= len(operation.body)
            self._reads.pop(op, None)
            self._commands.pop(op, None)

    def forget_expired(self, now_ms: int) -> None:
        """Forget what has expired, unless it runs: if its request still comes, it is refused as expired."""
        while self._expiries and self._expiries[0][0] <= now_ms:
            _, op = heapq.heappop(self._expiries)
            operation = self._operations.get(op)
            if operation is not None and operation.answer is None and operation.assembly is None:
                heapq.heappush(self._expiries, (now_ms + _RUNNING_MS, op))
            elif operation is not None and operation.request.expires_ms <= now_ms:
                self.forget(op)

    def _forget_body(self, operation: AgentOperation) -> None:
        """Drop a body: a read may be repeated, so it is forgotten; anything else is remembered without its answer."""
        op = operation.request.op
        if op in self._reads:
            self.forget(op)
        else:
            self._bytes -= len(operation.body)
            operation.forgotten = bool(operation.body)
            operation.body = b""
            del self._commands[op]


@dataclass(frozen=True, slots=True)
class Say:
    """A message for a caller."""

    caller: str
    message: wire.Response | Refusal | Piece | Want


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
class StopOperation:
    """Nobody waits any longer for an operation that runs."""

    op: str


AgentOutput = Say | Run | StopOperation


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
        self._memory = OperationMemory()
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

    def answered(self, op: str, outcome: base.Response | TransportError) -> Iterator[AgentOutput]:
        """Note the outcome of an operation that was to be run, and answer it."""
        operation = self._memory.get(op)
        if operation is None or operation.answer is not None:
            return
        if isinstance(outcome, TransportError):
            self._memory.answer(operation, refusals.of_error(op, outcome))
        elif len(outcome.body) > wire.RESPONSE_BYTES_MAX or not _fits(outcome.headers):
            self._memory.answer(operation, refusals.refusal(op, refusals.LOST, "the response is too large"))
        else:
            head = wire.Response(op, outcome.status, dict(outcome.headers), len(outcome.body))
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
        if self.is_finishing and request.method not in wire.READS:
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
        if left_ms > wire.DEADLINE_S_MAX * 1000:
            return refusals.refusal(op, refusals.NOT_ALLOWED, f"a deadline of {left_ms} ms is too far away")
        if not self._allow.allows(method, path):
            return refusals.refusal(op, refusals.NOT_ALLOWED, f"{method} {path} is not on the agent's allow-list")
        if epoch == 0:
            if method not in wire.READS:
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

    def _ask(self, operation: AgentOperation, now_ms: int) -> Iterator[AgentOutput]:
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

    def _repeat(self, operation: AgentOperation) -> Iterator[AgentOutput]:
        """Answer an operation, if its answer is known yet."""
        op = operation.request.op
        if operation.answer is None:
            return
        if operation.forgotten:
            yield Say(operation.caller, refusals.refusal(op, refusals.FORGOTTEN, "the answer is not kept any longer"))
            return
        answer = operation.answer
        if isinstance(answer, wire.Response):
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

    def _cancel(self, operation: AgentOperation) -> Iterator[AgentOutput]:
        op = operation.request.op
        ran = operation.assembly is None
        self._memory.assembled(operation)
        self._memory.answer(operation, refusals.refusal(op, refusals.LOST, "the caller cancelled it"))
        if ran:
            yield StopOperation(op)


def _fits(headers: Mapping[str, str]) -> bool:
    return sum(len(name) + len(value) for name, value in headers.items()) <= wire.PIECE_BYTES
