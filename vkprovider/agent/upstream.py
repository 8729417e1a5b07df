"""CML as an agent reaches it. Credentials, tokens and CML's certificate stay on this side of the tunnel."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from tunnels.base import AllowList, CertificateInvalid, ConnectFailed, Response, Transport
from vkprovider.cml.dialect import BY_OWN_SETTINGS, CmlDialect, Trust
from vkprovider.cml.factory import shared_login
from vkprovider.cml.operations import BASE, CAPTURES, CONSOLES, HANDSHAKE, IMAGES, LABS, LOG_IN, STATS, STREAMS_API
from vkprovider.cml.spi import Credentials, CredentialsReader
from vkprovider.platform.errors import OutsideError, Throttled, Unauthorized
from vkprovider.rest.exchange import Exchange
from vkprovider.rest.operations import allow_list

AGENT_API: Final[AllowList] = AllowList(
    (
        *allow_list(tuple(dict.fromkeys((*LABS, *CONSOLES, *CAPTURES, *STATS, *IMAGES))), BASE).entries,
        *STREAMS_API.entries,
    )
)
"""What an agent carries out: labs with their consoles and captures, the figures of `stats: On`, and the list of
`images: On`; no user, licence or system management."""

_ANONYMOUS: Final = frozenset({BASE + HANDSHAKE.path, BASE + LOG_IN.path})
_LINES: Final = 2
_HTTP_UNAUTHORIZED: Final = 401
_HTTP_THROTTLED: Final = 429


class LoggedIn:
    """A `Transport` that adds a token to requests that bring none, and gets it by logging in.

    Args:
        transport: To CML.
        address: CML's URL, for messages.
        credentials: Read before every login.
        trust: Where the authorities stand that may sign CML's certificate.
    """

    def __init__(
        self, transport: Transport, address: str, credentials: CredentialsReader, trust: Trust = BY_OWN_SETTINGS
    ) -> None:
        self._transport = transport
        self._tokens = shared_login(Exchange(transport, CmlDialect(address, trust), base=BASE), address, credentials)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        deadline_s: float,
    ) -> Response:
        """Send one request, after a login where one is due; see `Transport.request`.

        Wrong credentials become a 401, and too many logins a 429, as CML would answer them.

        Raises:
            TransportError: The response did not arrive, or nothing was sent because there is no token.
        """
        end_s = asyncio.get_running_loop().time() + deadline_s

        async def send(token: str | None) -> Response:
            extra = {"Authorization": f"Bearer {token}"} if token is not None else {}
            left_s = max(0.001, end_s - asyncio.get_running_loop().time())
            return await self._transport.request(
                method, path, params=params, body=body, headers={**(headers or {}), **extra}, deadline_s=left_s
            )

        if path in _ANONYMOUS or any(name.lower() == "authorization" for name in headers or {}):
            return await send(None)
        try:
            token = await self._tokens.current(end_s)
            response = await send(token)
            if response.status != _HTTP_UNAUTHORIZED:
                return response
            renewed = await self._tokens.renewed(token, end_s)
            response = await send(renewed)
            if response.status == _HTTP_UNAUTHORIZED:
                self._tokens.refused(renewed)
        except OutsideError as error:
            return _without_token(error)
        return response

    async def close(self) -> None:
        """End a login under way and close the connections."""
        self._tokens.close()
        await self._transport.close()


def _without_token(error: OutsideError) -> Response:
    """Return the response that stands for a login that failed.

    Raises:
        TransportError: There was no answer to it: the request itself was not sent.
    """
    if isinstance(error, Throttled):
        return Response(_HTTP_THROTTLED, headers={"retry-after": f"{error.after_s:g}"})
    if isinstance(error, Unauthorized):
        why = "CML refuses the agent's user name or password; correct its credentials file"
        said = {"code": _HTTP_UNAUTHORIZED, "description": why if error.status else error.message}
        return Response(_HTTP_UNAUTHORIZED, msgspec.json.encode(said), {"content-type": "application/json"})
    if isinstance(error.__cause__, CertificateInvalid):
        raise error.__cause__
    raise ConnectFailed(f"no login: {error.message}") from error


def credentials_in(path: str) -> CredentialsReader:
    """Return the function that reads CML's user name and password from the first two lines of a file."""

    async def read() -> Credentials:
        try:
            text = await asyncio.to_thread(Path(path).read_text, "utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized(f"the credentials file {path} cannot be read: {error}") from error
        lines = text.splitlines()
        if len(lines) < _LINES or not all(lines[:_LINES]):
            raise Unauthorized(f"the credentials file {path} does not hold a user name and, below it, a password")
        return Credentials(lines[0], lines[1], f"the credentials file {path}")

    return read
