"""How requests end: each with its headers, refusals as pages, and a line in the log."""

from http import HTTPStatus
from typing import Final

from aiohttp import web

from vkprovider.platform.http.answers import Refused
from vkprovider.platform.http.served import Handler, served
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.service.requests import Rejected
from vkprovider.portal.web.layout import HEADERS, PIECE, Layout

_REDIRECTS: Final = range(300, 400)
_WORDS: Final = {
    404: "The page does not exist, or it is not for you.",
    400: "The portal cannot read this request; load the page again.",
}


def answering(layout: Layout, route: Route) -> Route:
    """Return a route whose refusals are pages, and whose requests are logged by the route: a path may hold a secret."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return await _answer(layout, route.handler, request)

    return route._replace(handler=served(handle, HEADERS, route.path))


async def _answer(layout: Layout, handler: Handler, request: web.Request) -> web.StreamResponse:
    try:
        return await handler(request)
    except Rejected as error:
        return _refusal(layout, request, error.rejection.grounds.status, error.rejection.msg)
    except Refused as refusal:
        response = _refusal(layout, request, refusal.status_code, refusal.message)
        response.headers.update(refusal.directions())
        return response
    except web.HTTPException as error:
        if error.status in _REDIRECTS and PIECE in request.headers and request.method == "POST":
            return web.Response(status=HTTPStatus.NO_CONTENT, headers={"X-Location": error.headers["Location"]})
        if error.status in _REDIRECTS:
            return web.Response(status=error.status, headers={"Location": error.headers["Location"]})
        return _refusal(layout, request, error.status, _WORDS.get(error.status) or error.text or error.reason)


def _refusal(layout: Layout, request: web.Request, status: int, words: str) -> web.Response:
    """Return a refusal as a page, or as JSON for a program: `{"code": 403, "message": "…"}`."""
    if "application/json" in request.headers.get("Accept", ""):
        return web.json_response({"code": status, "message": words}, status=status)
    return layout.refusal(request, status, words)
