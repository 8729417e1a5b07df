"""Bodies in pieces: the first travels with its request or response, the receiver asks for the rest.

The sender sends the first `PUSHED` pieces unasked, so that a body of half a megabyte costs one way, not two.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from tunnels.wire import PIECE_BYTES, Piece

PUSHED: Final = 8
WINDOW: Final = 16
"""Pieces that a receiver has asked for and not yet received: 1 MiB."""
REASK_S: Final = 2.0
"""A piece that did not arrive for this long is asked for again."""


def first(body: bytes) -> bytes:
    """Return the piece that travels with the head."""
    return body[:PIECE_BYTES]


def pushed(op: str, body: bytes) -> Iterator[Piece]:
    """Return the pieces that follow the head unasked."""
    return pieces(op, body, range(1, PUSHED))


def pieces(op: str, body: bytes, parts: Iterable[int]) -> Iterator[Piece]:
    """Return the named pieces; those beyond the body are passed over."""
    for part in parts:
        start = part * PIECE_BYTES
        if start < len(body):
            yield Piece(op, part, body[start : start + PIECE_BYTES])


class Assembly:
    """A body that arrives in pieces, in any order, some of them twice.

    Memory grows with what has arrived, not with the announced size.

    Args:
        size: Of the whole body.
        first: Its first piece.
        now_s: The time.
    """

    def __init__(self, size: int, first: bytes, now_s: float) -> None:
        self._size = size
        self._count = max(1, -(-size // PIECE_BYTES))
        self._parts: dict[int, bytes] = {}
        self._asked_s = dict.fromkeys(range(1, min(PUSHED, self._count)), now_s)
        self._next = min(PUSHED, self._count)
        self.add(0, first)

    @property
    def complete(self) -> bool:
        """Whether every piece is here."""
        return len(self._parts) == self._count

    def add(self, part: int, data: bytes) -> bool:
        """Note a piece; False if it does not belong to the body or was here already."""
        if part >= self._count or part in self._parts or len(data) != self._length(part):
            return False
        self._parts[part] = data
        self._asked_s.pop(part, None)
        return True

    def body(self) -> bytes:
        """Return the body, which must be complete."""
        return b"".join(self._parts[part] for part in range(self._count))

    def wanted(self, now_s: float) -> tuple[int, ...]:
        """Return the pieces to ask for now, and note that they were asked for."""
        lost = [part for part, asked_s in self._asked_s.items() if now_s - asked_s >= REASK_S]
        for part in lost:
            self._asked_s[part] = now_s
        fresh: list[int] = []
        if len(self._asked_s) <= WINDOW // 2:
            last = min(self._next + WINDOW - len(self._asked_s), self._count)
            fresh = list(range(self._next, last))
            self._next = last
            self._asked_s.update(dict.fromkeys(fresh, now_s))
        return (*lost, *fresh)

    def forget_asked(self) -> None:
        """Count everything that was asked for as lost: the connection broke in between."""
        self._asked_s = dict.fromkeys(self._asked_s, float("-inf"))

    def due_s(self) -> float:
        """Return when a piece is to be asked for again; infinite if none is."""
        return min(self._asked_s.values(), default=float("inf")) + REASK_S

    def _length(self, part: int) -> int:
        return min(PIECE_BYTES, self._size - part * PIECE_BYTES) if self._size else 0
