"""The site under the path of a hub's service, and at the paths of users' servers."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from aiohttp import web

from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.web.hub.login import HubLogin
from vkprovider.portal.web.hub.place import HubPlace
from vkprovider.portal.web.layout import BASE
from vkprovider.portal.web.visitors import Handler, Visitors

_LOGINS: Final = ("/login", "/logout")
"""What the hub does in place of the site."""


def hub_routes(login: HubLogin, visitors: Visitors) -> tuple[Route, ...]:
    """Return the paths of logins at the hub, as those of the site."""
    return (
        Route("GET", "/login", login.begin),
        Route("GET", "/oauth_callback", login.come_back),
        Route("POST", "/logout", visitors.posting(login.log_out)),
    )


def mounted(place: HubPlace, hub: Iterable[Route], site: Iterable[Route]) -> Iterator[Route]:
    """Yield the paths of the site behind a hub; they come before those of the site alone.

    Args:
        place: Where the hub is.
        hub: The paths of logins at the hub.
        site: Those of the site, with its own logins.
    """

    async def to_front(_: web.Request) -> web.StreamResponse:
        return _led(f"{place.base}/")

    async def to_lab(request: web.Request) -> web.StreamResponse:
        return _led(f"{place.base}/labs/{quote(request.match_info['hub_user'], safe='')}")

    kept = (route for route in site if not route.path.startswith(_LOGINS))
    for route in (*hub, *kept):
        yield Route(route.method, place.base + route.path, _based(place.base, route.handler))
    yield Route("GET", place.base, to_front)
    # The server of a user, in the hub's words: the proxy leads here while the spawner says that there is one.
    yield Route("GET", f"{place.front}user/{{hub_user}}{{tail:(/.*)?}}", to_lab)


def _based(base: str, handler: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        request[BASE] = base
        return await handler(request)

    return handle


def _led(location: str) -> web.Response:
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": location, "Cache-Control": "no-store"})
