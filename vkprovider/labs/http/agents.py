"""`GET /tunnel`: agents beside workers dial in; who may bear which name.

An agent proves its name by a token of its own, or by a client certificate; a token without a name proves any name.
"""

import hmac
from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog
from aiohttp import web

from tunnels.link.carrier import parse_address
from tunnels.websocket.listening import Listening, NoRoomError
from vkprovider.labs.http.refusals import AgentInvalid, AgentsDisabled, AgentUnknown, TooManyAgents
from vkprovider.platform.http.answers import bearer
from vkprovider.platform.http.connections import uncount

_log: Final = structlog.get_logger(__name__)
_LOGGED_MAX: Final = 1000


class Agents:
    """The handler.

    Args:
        tokens: Returns tokens, each after the name of its agent, empty for any.
        listening: Where admitted agents go; None: there are none.
    """

    def __init__(self, tokens: Callable[[], Sequence[tuple[str, str]]], listening: Listening | None) -> None:
        self._tokens = tokens
        self._listening = listening
        self._logged: set[str] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer `GET /tunnel?agent=NAME/BOOT` with a WebSocket, until it ends.

        Raises:
            Refused: 400, 401, 403, or 503 if there are too many.
        """
        if self._listening is None:
            raise AgentsDisabled("no agent is accepted: VKPROVIDER_TUNNEL_HTTP_TOKENS is not set")
        address = parse_address(request.query.get("agent", ""))
        if address is None:
            raise AgentInvalid("agent=NAME/BOOT is missing or wrong")
        try:
            self._admit(request, address.name)
            uncount(request)
            return await self._listening.accept(request, address)
        except NoRoomError as error:
            raise TooManyAgents(str(error)) from None

    def _admit(self, request: web.Request, name: str) -> None:
        """Check that a request may bear a name; tokens are compared in constant time.

        Raises:
            Refused: It may not.
        """
        given = bearer(request).encode()
        fits = [hmac.compare_digest(given, token.encode()) for of, token in self._tokens() if of in {"", name}]
        if any(fits) or name in _certified(request):
            return
        text = f"neither a token of the agent {name} nor a certificate with its name was sent"
        if name not in self._logged and len(self._logged) < _LOGGED_MAX:
            self._logged.add(name)
            _log.warning("an agent is refused", agent=name, remote=request.remote, why=text)
        raise AgentUnknown(text)


def _certified(request: web.Request) -> set[str]:
    """Return the names in the client certificate, which TLS has verified."""
    found: dict[str, Any] = (request.get_extra_info("peercert") or {}) if request.transport is not None else {}
    common = {value for part in found.get("subject", ()) for key, value in part if key == "commonName"}
    return common | {value for kind, value in found.get("subjectAltName", ()) if kind == "DNS"}
