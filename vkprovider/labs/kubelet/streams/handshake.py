"""Which protocol client and server agree on, before an upgrade."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

_WEBSOCKET: Final = "websocket"
_SPDY: Final = "spdy/3.1"


@dataclass(frozen=True, slots=True)
class Agreement:
    """What both speak.

    Attributes:
        spdy: SPDY on the raw connection; otherwise a WebSocket.
        protocol: Within it; empty: the client of a WebSocket names none.
    """

    spdy: bool
    protocol: str


def agree(request: web.Request, *, websocket: Sequence[str], spdy: Sequence[str]) -> Agreement:
    """Choose the first protocol of the client that the server has.

    Raises:
        HTTPBadRequest: The request is not an upgrade, or an upgrade to something else.
        HTTPForbidden: There is no common protocol.
    """
    wanted = request.headers.get("Upgrade", "").strip().lower()
    if "upgrade" not in request.headers.get("Connection", "").lower() or wanted not in {_WEBSOCKET, _SPDY}:
        raise web.HTTPBadRequest(text="the request must upgrade the connection to a WebSocket, or to SPDY/3.1")
    if wanted == _WEBSOCKET:
        offered = _names(request.headers.getall("Sec-WebSocket-Protocol", ())) or [""]
        return Agreement(spdy=False, protocol=_common(offered, websocket))
    offered = _names(request.headers.getall("X-Stream-Protocol-Version", ()))
    if not offered:
        raise web.HTTPBadRequest(text="the header X-Stream-Protocol-Version is missing")
    return Agreement(spdy=True, protocol=_common(offered, spdy))


def _names(values: Iterable[str]) -> list[str]:
    return [name for value in values for part in value.split(",") if (name := part.strip())]


def _common(offered: Sequence[str], supported: Sequence[str]) -> str:
    for name in offered:
        if name in supported:
            return name
    known = ", ".join(name for name in supported if name)
    headers = {"X-Accepted-Stream-Protocol-Versions": known}
    raise web.HTTPForbidden(text=f"none of the offered protocols is supported: {known} are", headers=headers)
