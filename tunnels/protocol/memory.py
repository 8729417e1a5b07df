"""The operations that an agent remembers, so that none is executed twice."""

from dataclasses import dataclass
from typing import Final

from tunnels.protocol.pieces import Assembly
from tunnels.wire.messages import Refusal, Request, Response

OPERATIONS_MAX: Final = 4096
"""Operations that are remembered at once; further ones are refused as `busy`."""

BYTES_MAX: Final = 16 * 2**20
"""Bodies of answers; beyond that the oldest are forgotten."""


@dataclass(slots=True)
class Operation:
    """One operation.

    Attributes:
        caller: Who asked last; the answer goes there.
        request: Its head.
        assembly: The request's body, while pieces of it are missing.
        answer: What was answered; None while it runs.
        body: Of a response.
        forgotten: Whether the body was dropped to save memory.
    """

    caller: str
    request: Request
    assembly: Assembly | None = None
    answer: Response | Refusal | None = None
    body: bytes = b""
    forgotten: bool = False


class Memory:
    """Operations until they expire, with a bound on the bytes of their answers."""

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._operations)

    @property
    def full(self) -> bool:
        """Whether no further operation can be remembered."""
        return len(self._operations) >= OPERATIONS_MAX

    def get(self, op: str) -> Operation | None:
        """Return an operation."""
        return self._operations.get(op)

    def all(self) -> list[Operation]:
        """Return all operations, the oldest first."""
        return list(self._operations.values())

    def add(self, operation: Operation) -> None:
        """Remember a new operation."""
        self._operations[operation.request.op] = operation

    def answer(self, operation: Operation, answer: Response | Refusal, body: bytes) -> None:
        """Note the answer to an operation; older answers make room for its body."""
        operation.answer = answer
        operation.body = body
        self._bytes += len(body)
        for reads in (True, False):
            for other in self.all():
                if self._bytes <= BYTES_MAX:
                    return
                if other is not operation and other.body and (other.request.method == "GET") is reads:
                    self._forget_body(other)

    def forget(self, op: str) -> None:
        """Forget an operation altogether."""
        operation = self._operations.pop(op, None)
        if operation is not None:
            self._bytes -= len(operation.body)

    def forget_expired(self, now_ms: int) -> None:
        """Forget what is answered and expired: if its request still comes, it is refused as expired."""
        for op, operation in list(self._operations.items()):
            ended = operation.answer is not None or operation.assembly is not None
            if ended and operation.request.expires_ms <= now_ms:
                self.forget(op)

    def _forget_body(self, operation: Operation) -> None:
        """Drop a body: a read may be repeated, so it is forgotten; anything else is remembered without its answer."""
        if operation.request.method == "GET":
            self.forget(operation.request.op)
        else:
            self._bytes -= len(operation.body)
            operation.body = b""
            operation.forgotten = True
