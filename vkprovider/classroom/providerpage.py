"""One request to the provider's page, in the name of who asks: for commands, and for the portal.

What an answer means for people, and what would help, is said by who asks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec
from yarl import URL

from tunnels.direct import is_plain
from vkprovider.platform.errors import shorten
from vkprovider.platform.http.client import OversizedError, SilentError, ask
from vkprovider.platform.settings import is_loopback

T = TypeVar("T")
DEADLINE_S: Final = 15.0
_OK: Final = 200
_BAD_REQUEST: Final = 400


class PageRefusalError(Exception):
    """The page refuses; the text is its own sentence.

    Attributes:
        status: The HTTP status.
        reason: The kind of refusal, such as `ArchiveUnknown`; "" if it names none.
    """

    def __init__(self, message: str, status: int, reason: str = "") -> None:
        super().__init__(message)
        self.status: Final = status
        self.reason: Final = reason


class PageSilenceError(Exception):
    """The page does not answer, or not to the end; the text says why, and the cause is what aiohttp says."""


class PageOversizedError(PageSilenceError):
    """An answer of the page is longer than who asks can take."""


class _Refusal(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class PageClient:
    """The page, as somebody asks it.

    Attributes:
        base: Its URL.
        authorization: The header that says who asks.
        tls: How its certificate is verified, as aiohttp takes it.
        session: From `tunnels.outgoing.open_session`.
        within_s: How long an answer may take, to its last byte.
        bytes_max: The longest answer; None for any.
    """

    base: str
    authorization: str
    tls: Any
    session: aiohttp.ClientSession
    within_s: float = DEADLINE_S
    bytes_max: int | None = None

    async def ask(self, method: str, path: str, type_: type[T], params: Mapping[str, str] | None = None) -> T:
        """Send a request without a body, and decode the answer.

        Raises:
            PageRefusalError: The page refuses, or its answer is none of this kind.
            PageSilenceError: It does not answer; `PageOversizedError`: its answer is too long.
        """
        headers = {"Authorization": self.authorization, "Accept": "application/json"}
        try:
            status, body, _ = await ask(
                self.session,
                method,
                URL(self.base + path),
                within_s=self.within_s,
                bytes_max=self.bytes_max,
                headers=headers,
                params=params,
                tls=self.tls,
            )
        except OversizedError as error:
            raise PageOversizedError(str(error)) from None
        except SilentError as error:
            why = other_scheme(self.base, error.__cause__) or str(error)
            raise PageSilenceError(why) from error.__cause__
        if status == _BAD_REQUEST and self.base.startswith("http://") and b"HTTPS" in body.upper():
            raise PageSilenceError(other_scheme(self.base, None))
        try:
            if status == _OK:
                return msgspec.json.decode(body, type=type_)
            refusal = msgspec.json.decode(body, type=_Refusal)
        except msgspec.MsgspecError:
            refusal = _Refusal(message=shorten(body.decode(errors="replace")))
        raise PageRefusalError(refusal.message or "nothing of use in the answer", status, refusal.reason)


def other_scheme(base: str, error: BaseException | None) -> str:
    """Say that an address is that of the other scheme, if a failure tells; "" if not.

    Args:
        base: The address.
        error: The failure; None for a server that says itself that it speaks TLS.
    """
    parts = urlsplit(base)
    if isinstance(error, aiohttp.ClientConnectorSSLError) and is_plain(error):
        plain = f"http://{parts.netloc}"
        advice = f"try {plain}" if is_loopback(parts.hostname or "") else "name the address that has a certificate"
        return f"that port speaks http, and not https; {advice}"
    if parts.scheme == "http" and (error is None or isinstance(error, _NO_HTTP)):
        return f"that port speaks no http; if it speaks https, try https://{parts.netloc}"
    return ""


_NO_HTTP: Final = (aiohttp.ServerDisconnectedError, aiohttp.ClientResponseError, ConnectionResetError)
"""How a TLS server answers who does not speak TLS: with an alert, or with nothing."""
