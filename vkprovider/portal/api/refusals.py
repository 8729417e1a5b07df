"""Answers to requests that are refused, in both dialects alike.

{"detail": [{"msg": "…", "type": "unknown_user", "loc": ["path", "username"]}]}
"""

from collections.abc import Sequence
from typing import Any, Final

from aiohttp import web

from vkprovider.platform.http.answers import Refused
from vkprovider.portal.pure.rejections import Grounds, Rejection

_GROUNDS: Final = {
    401: Grounds.INVALID_TOKEN,
    403: Grounds.PERMISSION_DENIED,
    429: Grounds.UNAVAILABLE,
    503: Grounds.UNAVAILABLE,
}
"""The grounds of refusals of access control, by their status."""


def rejected(rejections: Sequence[Rejection]) -> web.Response:
    """Return the answer to a request that is refused for these reasons; the first one decides the status."""
    details = [_detail(each.msg, each.grounds, each.loc) for each in rejections]
    return web.json_response({"detail": details}, status=rejections[0].grounds.status)


def refused(refusal: Refused) -> web.Response:
    """Return the answer to a request that access control refuses."""
    grounds = _GROUNDS.get(refusal.status_code, Grounds.UNAVAILABLE)
    detail = [_detail(refusal.message, grounds, ())]
    return web.json_response({"detail": detail}, status=refusal.status_code, headers=refusal.directions())


def _detail(msg: str, grounds: Grounds, loc: tuple[str, ...]) -> dict[str, Any]:
    return {"msg": msg, "type": grounds.word, **({"loc": list(loc)} if loc else {})}
