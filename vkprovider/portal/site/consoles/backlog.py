"""Output that waits for a slow browser: the last of it, so that who interrupts a noisy device sees that at once. Pure.

The provider does the same for a session that reads too slowly. But between it and a browser megabytes fit into the
buffers of the connections, and would be shown before anything that comes after them.
"""

from collections import deque
from typing import Final

WAITING_BYTES_MAX: Final = 256 * 1024
"""The most output that waits for a browser."""
SKIPPED: Final = b"\r\n[output was skipped: this browser shows it too slowly]\r\n"


class Backlog:
    """Output that a browser has not got."""

    def __init__(self) -> None:
        """Begin without any."""
        self._parts: deque[bytes] = deque()
        self._size = 0

    def __len__(self) -> int:
        """Count the bytes."""
        return self._size

    def feed(self, data: bytes) -> None:
        """Add output; if too much waits, all but the new is dropped, with a line that says so."""
        if self._size + len(data) > WAITING_BYTES_MAX:
            self._parts.clear()
            self._parts.append(SKIPPED)
            self._size = len(SKIPPED)
        self._parts.append(data)
        self._size += len(data)

    def take(self, most: int) -> bytes:
        """Remove and return the next bytes, as many as given at most."""
        taken: list[bytes] = []
        left = most
        while left > 0 and self._parts:
            part = self._parts.popleft()
            if len(part) > left:
                self._parts.appendleft(part[left:])
                part = part[:left]
            taken.append(part)
            left -= len(part)
        self._size -= most - left
        return b"".join(taken)
