"""Refusals: a status, a reason in one word, and a message with the remedy."""

from collections.abc import Mapping

import msgspec
from aiohttp import web


class Refused(web.HTTPException):
    """Raised out of a handler to refuse a request."""

    def __init__(self, status: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        self.status_code = status
        message = message.encode(errors="replace").decode()  # it may quote a header, which may have any bytes
        body = {"code": status, "reason": reason, "message": message}
        super().__init__(text=msgspec.json.encode(body).decode(), content_type="application/json", headers=headers)
        self.why = reason


def bearer(request: web.Request) -> str:
    """Return the token of `Authorization: Bearer …`; empty if there is none, or not one of RFC 6750 (ASCII)."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.isascii() else ""
