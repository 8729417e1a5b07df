"""Requests to the hub: https://jupyterhub.readthedocs.io/en/stable/howto/rest.html and RFC 6749, 4.1.3."""

import asyncio
import os
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from tunnels.outgoing.proxies import ProxyUnsupportedError, proxy_of
from tunnels.outgoing.sessions import open_session
from vkprovider.portal.web.hub.place import HubPlace

T = TypeVar("T")
_DEADLINE_S: Final = 15.0
_CONNECT_S: Final = 5.0
BODY_BYTES_MAX: Final = 1 << 20
_REFUSALS: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class HubRefusedError(Exception):
    """The hub knows the code of a login no more, or not the service."""


class HubSilentError(Exception):
    """The hub does not answer, or not as a hub."""


class _Access(msgspec.Struct, frozen=True):
    access_token: str


class _AuthState(msgspec.Struct, frozen=True):
    token: str = ""


class _User(msgspec.Struct, frozen=True):
    name: str
    auth_state: _AuthState | None = None


class HubLogins:
    """Asks the hub who logged in there."""

    def __init__(self, place: HubPlace, secret: str) -> None:
        """Create it; `secret` is the token of the service."""
        self._place = place
        self._secret = secret

    async def token_of(self, code: str, verifier: str) -> str:
        """Return the token of the cluster that the hub has of whom it sent back with a code; "" if it shows none.

        Raises:
            HubRefusedError: The hub does not know the code, or the service.
            HubSilentError: It does not answer, or not as a hub.
        """
        form = {
            "grant_type": "authorization_code",
            "client_id": self._place.client_id,
            "client_secret": self._secret,
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": self._place.callback,
        }
        encoded = {"Content-Type": "application/x-www-form-urlencoded"}
        access = await self._ask("POST", "/oauth2/token", _Access, data=form, headers=encoded)
        headers = {"Authorization": f"Bearer {access.access_token}"}
        user = await self._ask("GET", "/user", _User, headers=headers)
        path = f"/users/{quote(user.name, safe='')}"  # it alone shows the auth_state
        state = (await self._ask("GET", path, _User, headers=headers)).auth_state
        return state.token if state is not None else ""

    async def _ask(
        self,
        method: str,
        path: str,
        type_: type[T],
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        url = URL(f"{self._place.api_url.removesuffix('/')}{path}", encoded=True)
        try:
            async with (
                asyncio.timeout(_DEADLINE_S),
                open_session(aiohttp.TCPConnector(), connect_s_max=_CONNECT_S) as session,
                session.request(
                    method, url, data=data, headers=headers, proxy=proxy_of(str(url), os.environ), allow_redirects=False
                ) as answer,
            ):
                status, body = answer.status, await _body(answer)
        except (aiohttp.ClientError, ProxyUnsupportedError, OSError, TimeoutError) as error:
            raise HubSilentError(f"{url.path}: {str(error) or type(error).__name__}") from error
        if status in _REFUSALS:
            raise HubRefusedError(f"{url.path}: HTTP {status}")
        try:
            return msgspec.json.decode(body, type=type_)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HubSilentError(f"{url.path}: HTTP {status}, and not what a hub answers") from error


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    """Read an answer to its end, in however many pieces it comes.

    Raises:
        HubSilentError: It is too long for an answer of a hub.
    """
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            raise HubSilentError(f"{answer.url.path}: the answer is longer than {BODY_BYTES_MAX} bytes")
    return bytes(body)
