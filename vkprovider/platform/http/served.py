"""What every answer of our pages has: security headers, and a line in the log."""

import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import structlog
from aiohttp import web

_log: Final = structlog.get_logger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
"""Answers a request; raises `Refused` to refuse it."""


def attachment(name: str) -> dict[str, str]:
    """Return the header by which a browser saves an answer as a file of that name (RFC 6266, 4.3)."""
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}


def strict_headers(styles: str = "") -> dict[str, str]:
    """Return the security headers of an answer that shows nothing, or a page without scripts and images.

    Args:
        styles: Which style sheets count, in the words of a Content-Security-Policy; "" for none.
    """
    style = f"style-src {styles}; " if styles else ""
    return {
        "Cache-Control": "no-store",
        "Content-Security-Policy": f"default-src 'none'; {style}frame-ancestors 'none'; base-uri 'none'; "
        "form-action 'none'",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }


def served(handler: Handler, headers: Mapping[str, str], path: str = "") -> Handler:
    """Return a handler whose answers, refusals too, have headers, and whose requests are logged.

    Args:
        handler: Makes the answers.
        headers: Those of every answer that has no other of the same name; a stream has its own alone.
        path: What the log names, where the path of a request may hold a secret; "" for the path itself.
    """

    async def handle(request: web.Request) -> web.StreamResponse:
        began, status = time.monotonic(), int(HTTPStatus.INTERNAL_SERVER_ERROR)
        try:
            response = await handler(request)
            status = response.status
            if not response.prepared:
                _complete(response, headers)
        except web.HTTPException as refusal:
            status = refusal.status
            _complete(refusal, headers)
            raise
        finally:
            took_ms = round((time.monotonic() - began) * 1000, 1)
            _log.info("request", method=request.method, path=path or request.path, status=status, took_ms=took_ms)
        return response

    return handle


def _complete(response: web.StreamResponse, headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        response.headers.setdefault(name, value)
