"""Who asks: with the password of the page, which opens all muxes, or with a token of the cluster."""

import asyncio
import base64
import hmac
from collections.abc import Iterable
from typing import Final

from aiohttp import web

from vkprovider.platform.http.access import AccessControl, ResourceRight, User
from vkprovider.platform.http.answers import Refused

SLOW_S: Final = 2.0
"""How long a wrong password is not answered."""


class PasswordMissing(Refused):
    """Neither the password of the debug page was sent, nor a token."""

    status_code = 401
    remedy = "Send the password of the debug page of muxes with any user name, or a token of the cluster."

    def directions(self) -> dict[str, str]:
        """Return the headers by which a browser asks for the password."""
        return {"WWW-Authenticate": 'Basic realm="vkprovider-mux", charset="UTF-8"'}


class Caller:
    """Somebody who is known, and what they may see."""

    def __init__(self, access: AccessControl, user: User | None) -> None:
        """Create it.

        Args:
            access: Asks for rights.
            user: The user of a token; None for who knows the password.
        """
        self._access = access
        self._user = user

    @property
    def sees_all(self) -> bool:
        """Whether every mux is visible."""
        return self._user is None

    async def visible(self, keys: Iterable[str]) -> list[str]:
        """Return the muxes among these that may be seen, in the order of their names.

        Raises:
            Refused: 503: the API server cannot be asked.
        """
        if self._user is None:
            return sorted(keys)
        user, found = self._user, []
        for key in sorted(keys):
            namespace, _, name = key.partition("/")
            if await self._access.may(user, ResourceRight("get", "services", namespace, name)):
                found.append(key)
        return found


class Callers:
    """Finds out who asks."""

    def __init__(self, access: AccessControl, password: str | None) -> None:
        """Create it.

        Args:
            access: Asks for the user of a token.
            password: The password of the page; None if there is none.
        """
        self._access = access
        self._password = password

    async def known(self, request: web.Request) -> Caller:
        """Return who asks.

        Raises:
            Refused: 401: nobody that is known; 503: the API server cannot be asked.
        """
        header = request.headers.get("Authorization", "")
        scheme = header.partition(" ")[0].lower()
        if scheme == "bearer":
            return Caller(self._access, await self._access.user(request))
        if scheme == "basic" and self._password is not None:
            if _password_of(header, self._password):
                return Caller(self._access, None)
            await asyncio.sleep(SLOW_S)
            raise PasswordMissing("the password is wrong")
        ways = "a token of the cluster as `Authorization: Bearer …`"
        raise PasswordMissing(f"send {'the password, with any user name, or ' if self._password else ''}{ways}")


def _password_of(header: str, expected: str) -> bool:
    """Return whether a header of Basic authentication has the password, in a time that tells nothing of it."""
    try:
        _, colon, sent = base64.b64decode(header.partition(" ")[2], validate=True).partition(b":")
    except ValueError:
        return False
    return bool(colon) and hmac.compare_digest(sent, expected.encode())
