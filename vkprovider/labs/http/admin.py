"""`/admin/*` and `/info`: administration of one replica. Each replica answers for itself."""

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from vkprovider.labs.http.refusals import path_right
from vkprovider.platform.http.access import AccessControl

Stats = Callable[[], Mapping[str, Any]]
Trigger = Callable[[], Mapping[str, int]]


class Admin:
    """The handlers."""

    def __init__(self, access: AccessControl, *, info: Stats, stats: Stats, trigger: Trigger) -> None:
        """Store the sources of the answers.

        Args:
            access: Checks the caller's rights.
            info: Returns what this replica is.
            stats: Returns its counters.
            trigger: Queues everything for a pass; returns how much that is.
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
        await self._access.require(request, path_right(request.path, request.method.lower()))
