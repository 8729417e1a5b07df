"""Whether a backend of a mux, or the mux itself, accepts TCP connections."""

import asyncio
import contextlib
import time
from typing import Any, Final

TIMEOUT_S: Final = 3.0
AT_ONCE: Final = 4
"""Probes at once, of all callers."""


class Probe:
    """Connects, and closes the connection at once."""

    def __init__(self) -> None:
        """Probe nothing yet."""
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def test(self, host: str, port: int) -> dict[str, Any]:
        """Return whether a connection was accepted, and how long that took."""
        async with self._turns:
            began = time.monotonic()
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    _, writer = await asyncio.open_connection(host, port)
            except TimeoutError:
                return {"success": False, "error": f"no answer within {TIMEOUT_S:g} s"}
            except OSError as error:
                return {"success": False, "error": error.strerror or str(error)}
            took_ms = round((time.monotonic() - began) * 1000, 1)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return {"success": True, "took_ms": took_ms}
