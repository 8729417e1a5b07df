"""The listening socket of a simulator; it can refuse connections for a while."""

import asyncio
import ssl
from typing import Final

from aiohttp import web

SHUTDOWN_S: Final = 0.5
"""How long requests in flight may take when the simulator ends."""


class Listener:
    """A listening socket for an application.

    Args:
        host: Its address.
        port: Its port; 0 chooses a free one, which `port` is from then on.
        tls: Context for HTTPS; None is HTTP.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.host = host
        self.port = port
        self._tls = tls
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._reopening: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}"

    async def open(self, application: web.Application) -> None:
        """Begin to listen.

        Raises:
            OSError: The address or the port is not available.
        """
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_S)
        await self._runner.setup()
        await self._listen()

    async def close(self) -> None:
        """Stop, after requests in flight had a moment to finish."""
        if self._reopening is not None:
            self._reopening.cancel()
            await asyncio.gather(self._reopening, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    async def refuse(self, seconds: float, spare: asyncio.BaseTransport | None) -> None:
        """Refuse connections for a while, and break open ones, except the one that ordered it."""
        if self._site is None or self._runner is None or self._runner.server is None:
            return
        await self._site.stop()
        self._site = None
        for connection in self._runner.server.connections:
            if connection.transport is not None and connection.transport is not spare:
                connection.transport.abort()
        self._reopening = asyncio.create_task(self._reopen(seconds), name="sim-reopen")

    async def _listen(self) -> None:
        assert self._runner is not None  # noqa: S101 (called between open and close only)
        self._site = web.TCPSite(self._runner, self.host, self.port, ssl_context=self._tls, reuse_address=True)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def _reopen(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._listen()
