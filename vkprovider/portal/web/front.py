"""The front page, which leads to the page that a visitor needs, and the answer for paths that lead nowhere."""

from typing import Final
from urllib.parse import quote

from aiohttp import web

from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.web.layout import link
from vkprovider.portal.web.visitors import Visitors

_ELSEWHERE: Final = "/{path:(?!nublado/).*}"
"""Every path but those of the routes for hubs."""


class Front:
    """The handlers."""

    def __init__(self, visitors: Visitors, callers: PortalCallers) -> None:
        """Create them.

        Args:
            visitors: Finds out who asks.
            callers: Says what they may.
        """
        self._visitors = visitors
        self._callers = callers

    def routes(self) -> tuple[Route, ...]:
        """Return the paths; they come after all others."""
        return Route("GET", "/", self._front), Route("GET", _ELSEWHERE, self._nowhere)

    async def _front(self, request: web.Request) -> web.StreamResponse:
        """Lead a learner to the own lab, and others to the classes."""
        visitor = await self._visitors.of(request)
        is_learner = await self._callers.owns(visitor.known, visitor.user)
        raise web.HTTPSeeOther(link(request, f"/labs/{quote(visitor.user, safe='')}" if is_learner else "/classes"))

    async def _nowhere(self, request: web.Request) -> web.StreamResponse:
        await self._visitors.of(request)
        raise web.HTTPNotFound
