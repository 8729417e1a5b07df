"""Refusals, each kind a class, and bearer tokens."""

from typing import Any, ClassVar, Final

import msgspec
from aiohttp import web

from vkprovider.platform.errors import shorten

_MESSAGE_CHARS_MAX: Final = 1000
"""A message may quote the request."""


class Refused(web.HTTPException):
    """Raised out of a handler to refuse a request: the base of all kinds, never raised itself.

    The answer is JSON: `{"code": 403, "reason": "NotAllowed", "message": "…"}`. `docs/reference/http.md` lists the
    kinds with their remedies.

    Attributes:
        status_code: The HTTP status.
        remedy: What a client should do, in a sentence.
        retry_s: After how many seconds a client should try again; 0 if it should not.
        realm: What a client should authenticate for; "" if that would not help.
        message: What is wrong with this request, and what to do about it.
    """

    remedy: ClassVar[str]
    retry_s: ClassVar[int] = 0
    realm: ClassVar[str] = ""

    def __init__(self, message: str) -> None:
        # A message may quote a header, which may have any bytes.
        self.message = shorten(message, _MESSAGE_CHARS_MAX).encode(errors="replace").decode()
        text = msgspec.json.encode(self.answer()).decode()
        super().__init__(text=text, content_type="application/json", headers=self.directions())

    def __str__(self) -> str:
        return f"{self.word}: {self.message}"

    @property
    def word(self) -> str:
        """The kind in one word, for clients and metrics."""
        return type(self).__name__

    def answer(self) -> dict[str, Any]:
        """Return the body of the answer."""
        return {"code": self.status_code, "reason": self.word, "message": self.message}

    def directions(self) -> dict[str, str]:
        """Return the headers by which a client knows what to do next."""
        retry = {"Retry-After": str(self.retry_s)} if self.retry_s else {}
        return retry | ({"WWW-Authenticate": f'Bearer realm="{self.realm}"'} if self.realm else {})


class TokenMissing(Refused):
    """No token was sent."""

    status_code = 401
    remedy = "Send a token of the cluster."
    realm = "vkprovider"


class TokenInvalid(Refused):
    """The cluster does not know the token."""

    status_code = 401
    remedy = "Make a new token: it is not the cluster's, it has expired, or it is not meant for the page."
    realm = "vkprovider"


class NotAllowed(Refused):
    """The sender lacks a right."""

    status_code = 403
    remedy = "Ask an admin for a role that allows what the message names."


class TooManyReviews(Refused):
    """Too many senders are unknown."""

    status_code = 429
    remedy = "Try again: too many callers are unknown to the replica."
    retry_s = 1


class ApiServerUnavailable(Refused):
    """The API server does not say who the sender is, or what it may do."""

    status_code = 503
    remedy = "Try again: the API server cannot review the token or the right now."
    retry_s = 5


class Starting(Refused):
    """The process is not ready to answer."""

    status_code = 503
    remedy = "Try again: the replica has not reached the API server yet, or does not know all objects."
    retry_s = 5


def bearer(request: web.Request) -> str:
    """Return the token of `Authorization: Bearer …`; empty if there is none, or not one of RFC 6750 (ASCII)."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.isascii() else ""


class QueryInvalid(Refused):
    """A parameter of the query is wrong."""

    status_code = 400
    remedy = "Correct the parameter that the message names."
