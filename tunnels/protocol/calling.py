"""The caller's side of one agent's name: requests until they are answered."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from tunnels import wire
from tunnels.base import ConnectFailed, ConnectionLost, RequestRefused, Response
from tunnels.protocol import pieces, refusals
from tunnels.protocol.pieces import Assembly
from tunnels.protocol.presence import AgentPresence, AgentState, Answered, CallerOutput, EventCount, Failed, Send
from tunnels.wire import AgentMessage, Request, Want

RESEND_S: Final = 2.0
"""The first repetition of a request without an answer; each further one waits twice as long."""
RESEND_S_MAX: Final = 15.0
DROPPED_S: Final = 0.5
"""What the carrier dropped, because its queue was full, is repeated sooner."""


@dataclass(slots=True)
class _Operation:
    """A request that is not answered yet.

    Attributes:
        head: As it was asked for; op, epoch and expiry are of the present boot.
        body: The whole body.
        deadline_s: By the caller's clock.
        boot: Whom it was sent to; empty before that.
        moved: Whether a restart of the agent made it start again.
        resend_s: When it is repeated.
        pause_s: What the next repetition waits.
        head_of_answer: The response, while pieces of its body are missing.
    """

    head: Request
    body: bytes
    deadline_s: float
    boot: str = ""
    moved: bool = False
    resend_s: float = 0.0
    pause_s: float = RESEND_S
    head_of_answer: wire.Response | None = None
    assembly: Assembly | None = None
    sent: bool = False


class Calling:
    """Requests to the agent of one name.

    Args:
        name: The agent's name, for messages.
    """

    def __init__(self, name: str) -> None:
        self.presence: Final = AgentPresence()
        self._name = name
        self._operations: dict[str, _Operation] = {}
        self._events: Final = EventCount()

    def begin(self, head: Request, body: bytes, deadline_s: float, now_s: float) -> Iterator[CallerOutput]:
        """Begin an operation; it waits until an agent is there.

        Args:
            head: Its `op` must be new; size, body and expiry are filled in here.
            body: The whole body.
            deadline_s: By the caller's clock; the caller that began it ends it with `end`.
            now_s: The time.

        Raises:
            RequestRefused: No message can hold it.
            ConnectFailed: The agent is known to be away.
        """
        if len(body) > wire.REQUEST_BYTES_MAX:
            raise RequestRefused(f"{self._name}: a body of {len(body)} bytes, more than {wire.REQUEST_BYTES_MAX}")
        try:
            wire.check(head)
        except wire.MalformedFrame as error:
            raise RequestRefused(f"{self._name}: no message can hold {head.method} {head.path:.80}: {error}") from None
        view = self.presence.view
        if view.state is AgentState.SILENT:
            raise ConnectFailed(f"{self._name}: nothing heard of the agent for {now_s - self.presence.heard_s:.0f} s")
        if view.state is AgentState.LEFT:
            raise ConnectFailed(f"{self._name}: the agent has left ({view.reason or 'no reason given'})")
        operation = self._operations[head.op] = _Operation(head, body, deadline_s)
        yield from self._send(operation, now_s)

    def end(self, op: str) -> Iterator[CallerOutput]:
        """Forget an operation, because it was answered or nobody waits for it any longer."""
        operation = self._operations.pop(op, None)
        if operation is not None and operation.boot:
            yield Send(operation.boot, wire.Cancel(op))

    def was_sent(self, op: str) -> bool:
        """Return whether any part of an operation has left, so that it may have been carried out.

        One that is not known any more was answered, perhaps just when its caller gave up.
        """
        operation = self._operations.get(op)
        return operation is None or operation.sent

    def left(self, op: str) -> None:
        """Note that the carrier took a message of the operation."""
        if operation := self._operations.get(op):
            operation.sent = True

    def dropped(self, op: str, now_s: float) -> None:
        """Note that the carrier dropped a message of the operation."""
        if operation := self._operations.get(op):
            operation.resend_s = now_s + DROPPED_S
            operation.pause_s = RESEND_S

    def received(self, boot: str, message: AgentMessage, now_s: float) -> Iterator[CallerOutput]:
        """Handle a message of an agent."""
        self.presence.heard(boot, now_s)
        match message:
            case wire.Hello():
                yield from self._hello(boot, message, now_s)
            case wire.Heartbeat():
                if not self.presence.heartbeat(boot, message, now_s):
                    yield Send(boot, wire.Probe())
                elif boot == self.presence.view.boot:
                    yield from self._events.reaches(boot, message.events)
            case wire.Goodbye():
                before = self.presence.view.boot
                self.presence.goodbye(boot, message, now_s)
                if self.presence.view.boot != before:
                    yield from self._resume(now_s)
                yield Send(boot, wire.Probe())  # the goodbye of a connection that was replaced may come late
            case wire.Response():
                yield from self._response(boot, message, now_s)
            case wire.Piece():
                yield from self._piece(boot, message, now_s)
            case wire.Want():
                yield from self._want(boot, message)
            case wire.Refusal():
                yield from self._refusal(boot, message, now_s)
            case wire.Event():
                if boot == self.presence.view.boot:
                    yield from self._events.counted(boot, message)
            case _:
                pass  # of a stream: the link hands those on

    def connected(self, now_s: float) -> Iterator[CallerOutput]:
        """Repeat everything that is unanswered: the carrier came back, and nobody knows what it lost."""
        yield from self._resume(now_s)

    def disconnected(self) -> None:
        """Note that the carrier is gone."""
        self.presence.disconnected()

    def tick(self, now_s: float) -> Iterator[CallerOutput]:
        """Let time pass."""
        before = self.presence.view.boot
        rival = self.presence.tick(now_s)
        if rival:
            yield self._name_taken(rival)
        if self.presence.view.boot != before:
            yield from self._resume(now_s)
        for operation in list(self._operations.values()):
            if operation.assembly is not None:
                if now_s >= operation.assembly.due_s():
                    yield from self._ask(operation, now_s)
            elif operation.boot and now_s >= operation.resend_s:
                yield from self._send(operation, now_s)

    def due_s(self) -> float:
        """Return when `tick` has something to do."""
        due = self.presence.due_s()
        for operation in self._operations.values():
            if operation.assembly is not None:
                due = min(due, operation.assembly.due_s())
            elif operation.boot:
                due = min(due, operation.resend_s)
        return due

    def _hello(self, boot: str, said: wire.Hello, now_s: float) -> Iterator[CallerOutput]:
        if self.presence.hello(boot, said, now_s):
            yield Send(self.presence.view.boot, wire.Probe())
        elif boot == self.presence.view.rival:
            yield self._name_taken(boot)
        elif boot == self.presence.view.boot:
            yield from self._events.reaches(boot, said.events)
            yield from self._resume(now_s)

    def _name_taken(self, rival: str) -> Send:
        text = f"another agent bears the name {self._name}: {self.presence.view.boot}, and this one is {rival}"
        return Send(rival, refusals.refusal("", refusals.NAME_TAKEN, text))

    def _resume(self, now_s: float) -> Iterator[CallerOutput]:
        """Send what waits to the present boot, and end what another boot may have carried out."""
        view = self.presence.view
        if view.state is not AgentState.THERE:
            return
        for operation in list(self._operations.values()):
            if operation.boot and operation.boot != view.boot and operation.sent:
                if operation.head.method not in wire.READS or operation.moved:
                    del self._operations[operation.head.op]
                    lost = f"{self._name}: the agent was restarted before it answered"
                    yield Failed(operation.head.op, ConnectionLost(lost))
                    continue
                operation.moved = True
            if operation.assembly is not None and operation.boot == view.boot:
                operation.assembly.forget_asked()
                yield from self._ask(operation, now_s)
            else:
                operation.pause_s = RESEND_S
                yield from self._send(operation, now_s)

    def _send(self, operation: _Operation, now_s: float) -> Iterator[CallerOutput]:
        """Send an operation, or repeat it unchanged, to the boot that is there now."""
        view = self.presence.view
        if view.state is not AgentState.THERE:
            operation.resend_s = float("inf")  # `_resume` follows the agent's return
            return
        head, body = operation.head, operation.body
        if operation.boot != view.boot:
            operation.boot = view.boot
            operation.head_of_answer = operation.assembly = None
            left_ms = int((operation.deadline_s - now_s) * 1000)
            expires_ms = max(0, self.presence.clock_ms(now_s) + left_ms)
            head = operation.head = msgspec.structs.replace(
                head, expires_ms=expires_ms, size=len(body), body=pieces.first(body)
            )
        again = operation.sent
        operation.resend_s = now_s + operation.pause_s
        operation.pause_s = min(2 * operation.pause_s, RESEND_S_MAX)
        yield Send(view.boot, head, head.op)
        if not again:
            for piece in pieces.pushed(head.op, body):
                yield Send(view.boot, piece, head.op)

    def _response(self, boot: str, head: wire.Response, now_s: float) -> Iterator[CallerOutput]:
        operation = self._of(boot, head.op)
        if operation is None or operation.assembly is not None:
            return
        operation.head_of_answer = head
        operation.assembly = Assembly(head.size, head.body, now_s)
        yield from self._ask(operation, now_s)

    def _piece(self, boot: str, piece: wire.Piece, now_s: float) -> Iterator[CallerOutput]:
        operation = self._of(boot, piece.op)
        if operation is not None and operation.assembly is not None and operation.assembly.add(piece.part, piece.data):
            yield from self._ask(operation, now_s)

    def _ask(self, operation: _Operation, now_s: float) -> Iterator[CallerOutput]:
        """Answer the caller if the body is complete, else ask for more of it."""
        head, assembly = operation.head_of_answer, operation.assembly
        if head is None or assembly is None:
            return
        if assembly.complete:
            del self._operations[head.op]
            yield Answered(head.op, Response(head.status, assembly.body(), head.headers))
        elif parts := assembly.wanted(now_s):
            yield Send(operation.boot, Want(head.op, parts))

    def _want(self, boot: str, want: Want) -> Iterator[CallerOutput]:
        operation = self._of(boot, want.op)
        if operation is not None:
            for piece in pieces.pieces(want.op, operation.body, want.parts):
                yield Send(boot, piece, want.op)

    def _refusal(self, boot: str, said: wire.Refusal, now_s: float) -> Iterator[CallerOutput]:
        operation = self._of(boot, said.op)
        if operation is None:
            return
        if said.code == refusals.LEAVING:
            operation.sent, operation.resend_s = False, float("inf")  # `_resume` follows the next boot
            return
        if said.code == refusals.FORGOTTEN and operation.head.method in wire.READS and not operation.moved:
            operation.moved = True
            operation.boot = ""
            yield from self._send(operation, now_s)
            return
        del self._operations[said.op]
        error = refusals.error_of(said, self._name)
        if operation.moved:  # the refusal is about the second attempt; nobody knows about the first
            error = ConnectionLost(str(error))
        yield Failed(said.op, error)

    def _of(self, boot: str, op: str) -> _Operation | None:
        operation = self._operations.get(op)
        return operation if operation is not None and operation.boot == boot else None
