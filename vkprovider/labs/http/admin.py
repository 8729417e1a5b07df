"""`/admin/*` and `/info`: administration of one replica. Each replica answers for itself."""

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from vkprovider.labs.http.refusals import path_right
from vkprovider.platform.http.access import AccessControl


def answering(access: AccessControl, told: Callable[[], Mapping[str, Any]], status: int = 200) -> Handler:
    """Return a handler that answers with JSON who has the right to the path.

    Args:
        access: Checks the caller's rights.
        told: Returns the answer; called only after the right was checked.
        status: Of the answer.
    """

    async def answer(request: web.Request) -> web.Response:
        await access.require(request, path_right(request.path, request.method.lower()))
        return web.json_response(told(), status=status)

    return answer
