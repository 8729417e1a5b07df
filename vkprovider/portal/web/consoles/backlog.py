"""Output that waits for a slow browser: the last of it, so that who interrupts a noisy device sees that at once. Pure.

The provider does the same for a session that reads too slowly. But between it and a browser megabytes fit into the
buffers of the connections, and would be shown before anything that comes after them.
"""

from typing import Final

WAITING_BYTES_MAX: Final = 256 * 1024
"""The most output that waits for a browser."""
SKIPPED: Final = b"\r\n[output was skipped: this browser shows it too slowly]\r\n"
_KEPT_BYTES_MAX: Final = WAITING_BYTES_MAX - len(SKIPPED)


class Backlog:
    """Output that a browser has not got."""

    def __init__(self) -> None:
        """Begin without any."""
        self._bytes = bytearray()  # parts that are objects of their own would take more memory than their bytes

    def __len__(self) -> int:
        """Count the bytes."""
        return len(self._bytes)

    def feed(self, data: bytes) -> None:
        """Add output; if too much waits, all but the end of the new is dropped, with a line that says so."""
        if len(self) + len(data) > WAITING_BYTES_MAX:
            self._bytes = bytearray(SKIPPED)
            data = data[-_KEPT_BYTES_MAX:]
        self._bytes += data

    def take(self, most: int) -> bytes:
        """Remove and return the next bytes, as many as given at most."""
        taken = bytes(self._bytes[:most])
        del self._bytes[:most]
        return taken
