"""The operations that an agent remembers, so that none is executed twice."""

import heapq
from dataclasses import dataclass
from typing import Final

import msgspec

from tunnels.protocol.pieces import Assembly
from tunnels.wire.messages import Refusal, Request, Response

OPERATIONS_MAX: Final = 16_384
"""Operations that are remembered at once. Answered reads make room for new ones; if there are none, a new operation is
refused as `busy`: 270 commands a second, each with a minute until it expires."""

BYTES_MAX: Final = 16 * 2**20
"""Bodies of answers; beyond that the oldest are forgotten."""

ASSEMBLING_BYTES_MAX: Final = 64 * 2**20
"""Announced bodies of all requests that are not complete."""

_RUNNING_MS: Final = 1000


@dataclass(slots=True)
class Operation:
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


class Memory:
    """Operations until they expire, with bounds on their number and bytes."""

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}
        self._expiries: list[tuple[int, str]] = []
        self._assembling: dict[str, Operation] = {}
        self._assembling_bytes = 0
        self._reads: dict[str, None] = {}
        self._commands: dict[str, None] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._operations)

    def get(self, op: str) -> Operation | None:
        """Return an operation."""
        return self._operations.get(op)

    def assembling(self) -> list[Operation]:
        """Return the operations whose request is not complete."""
        return list(self._assembling.values())

    def room_for(self, request: Request) -> bool:
        """Return whether a further operation can be remembered; answered reads make room."""
        if len(self._operations) >= OPERATIONS_MAX and self._reads:
            self.forget(next(iter(self._reads)))
        return len(self._operations) < OPERATIONS_MAX and self._assembling_bytes + request.size <= ASSEMBLING_BYTES_MAX

    def add(self, caller: str, request: Request, now_s: float) -> Operation:
        """Remember a new operation."""
        head = msgspec.structs.replace(request, body=b"")
        operation = Operation(caller, head, Assembly(request.size, request.body, now_s))
        self._operations[head.op] = self._assembling[head.op] = operation
        self._assembling_bytes += head.size
        heapq.heappush(self._expiries, (head.expires_ms, head.op))
        return operation

    def assembled(self, operation: Operation) -> bytes:
        """Note that a request is complete or given up, and return what there is of its body."""
        assembly, operation.assembly = operation.assembly, None
        if self._assembling.pop(operation.request.op, None) is not None:
            self._assembling_bytes -= operation.request.size
        return assembly.body() if assembly is not None and assembly.complete else b""

    def answer(self, operation: Operation, answer: Response | Refusal, body: bytes = b"") -> None:
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

    def _forget_body(self, operation: Operation) -> None:
        """Drop a body: a read may be repeated, so it is forgotten; anything else is remembered without its answer."""
        op = operation.request.op
        if op in self._reads:
            self.forget(op)
        else:
            self._bytes -= len(operation.body)
            operation.forgotten = bool(operation.body)
            operation.body = b""
            del self._commands[op]
