"""`/admin/*` and `/info`: what an operator asks of one replica. Each replica answers for itself."""

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from vkprovider.web.access import Access, Path

Stats = Callable[[], Mapping[str, Any]]
Trigger = Callable[[], Mapping[str, int]]


class Admin:
    """Counters, and a pass now."""

    def __init__(self, access: Access, *, info: Stats, stats: Stats, trigger: Trigger) -> None:
        """Take in what is asked.

        Args:
            access: Who may ask.
            info: Tells what this replica is.
            stats: Tells what it counted.
            trigger: Has everything looked at now; tells how much that is.
        """
        self._access = access
        self._info = info
        self._stats = stats
        self._trigger = trigger

    async def info(self, request: web.Request) -> web.Response:
        """Answer `GET /info`."""
        await self._require(request)
        return web.json_response(self._info())

    async def stats(self, request: web.Request) -> web.Response:
        """Answer `GET /admin/stats`."""
        await self._require(request)
        return web.json_response(self._stats())

    async def trigger(self, request: web.Request) -> web.Response:
        """Answer `POST /admin/trigger-reconcile`."""
        await self._require(request)
        return web.json_response({"triggered": True, **self._trigger()}, status=202)

    async def _require(self, request: web.Request) -> None:
        await self._access.require(request, Path(request.path, request.method.lower()))
