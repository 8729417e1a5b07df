"""A client of `kubectl attach` and `exec`, without kubectl: what it types, and what it is sent."""

import asyncio
from collections import deque

from tunnels.base import ConnectionLost
from vkprovider.labs.kubelet.spi import Exit


class Terminal:
    """A `RemoteCommand` whose other end is the test.

    Args:
        tty: Whether it is a terminal.
        stdin: Whether it types.
    """

    def __init__(self, *, tty: bool = True, stdin: bool = True) -> None:
        self.tty, self.stdin, self.stdout, self.stderr = tty, stdin, True, not tty
        self.out = ""
        self.err = ""
        self._keys: deque[bytes] = deque()
        self._gone = asyncio.Event()
        self._changed = asyncio.Event()

    def type(self, text: str) -> None:
        """Type."""
        self._keys.append(text.encode())
        self._changed.set()

    def half_close(self) -> None:
        """Type nothing more."""
        self.type("")

    def leave(self) -> None:
        """Close the connection."""
        self._gone.set()
        self._changed.set()

    async def shows(self, text: str, within_s: float = 60.0) -> None:
        """Wait until something has been shown; what is shown later is looked for behind it."""
        async with asyncio.timeout(within_s):
            while text not in self.out + self.err:
                if self._gone.is_set():
                    raise AssertionError(f"left; shown was {self.out + self.err!r}")
                self._changed.clear()
                await self._changed.wait()
        self.out = self.out.partition(text)[2] if text in self.out else self.out

    async def read(self) -> bytes:
        while not self._keys and not self._gone.is_set():
            self._changed.clear()
            await self._changed.wait()
        return self._keys.popleft() if self._keys else b""

    async def write(self, data: bytes) -> None:
        if self._gone.is_set():
            raise ConnectionLost("the client left")
        self.out += data.decode()
        self._changed.set()

    async def write_error(self, data: bytes) -> None:
        self.err += data.decode()
        self._changed.set()

    async def exit(self, status: Exit) -> None:  # noqa: ARG002 (the caller of `attach` has it)
        self.leave()

    async def gone(self) -> None:
        await self._gone.wait()
