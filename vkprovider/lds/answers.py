"""What the LDS's answers and the transport's errors mean, in our own tree of errors. Pure.

A 404 becomes `NotFound` only if the LDS itself says so by its code: the 404 of a proxy, or of another server behind
the URL, must never make a live session look archived. What an LDS says is quoted without the secrets that were sent.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from tunnels import errors as transport_errors
from tunnels.base import Response
from vkprovider.api.errors import (
    DeadlineExceeded,
    Invalid,
    NotFound,
    OutsideError,
    TlsFailed,
    Unauthorized,
    Unavailable,
    from_status,
)
from vkprovider.lds.errors import Full, Unsent

UNKNOWN_SESSION: Final = "UnknownSession"
UNKNOWN_FORM: Final = "UnknownForm"
CAPACITY_EXHAUSTED: Final = "CapacityExhausted"

_REDIRECTS: Final = range(300, 400)
_SUCCESSES: Final = range(200, 300)
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404
_UNAVAILABLE: Final = 503


class _Error(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


def error_of(what: str, response: Response, secrets: Iterable[str] = ()) -> OutsideError | None:
    """Judge an answer; None if the LDS did as asked.

    Args:
        what: Deployment and call, for the message.
        response: The answer.
        secrets: What was sent and must not be quoted.
    """
    status = response.status
    if status in _SUCCESSES:
        foreign = response.headers.get("content-type", "").startswith("text/html")
        return not_lds(what, status) if foreign else None
    if status in _REDIRECTS:
        return Invalid(f"{what} was redirected: correct the deployment's base_url", status=status)
    if status == _UNAUTHORIZED:
        return Unauthorized(f"{what}: the token was refused: check token_file or LDS_API_TOKEN", status=status)
    error = _decoded(response)
    said = " ".join(part for part in (error.code, redacted(error.message, secrets)) if part)
    if status == _NOT_FOUND:
        if error.code in {UNKNOWN_SESSION, UNKNOWN_FORM}:
            return NotFound(f"{what}: {said}", status=status)
        return not_lds(what, status)
    if status == _UNAVAILABLE and error.code == CAPACITY_EXHAUSTED:
        return Full(f"{what}: {said}", status=status)
    return from_status(status, f"{what}: {status} {said}".rstrip(), after_s=response.retry_after_s())


def transport_error(what: str, error: transport_errors.TransportError) -> OutsideError:
    """Translate an error of the transport."""
    match error:
        case transport_errors.CertificateInvalid():
            return TlsFailed(f"{what}: the certificate cannot be trusted ({error}): renew it, or correct ca_file")
        case transport_errors.DeadlineExceeded():
            return DeadlineExceeded(f"{what}: {error}")
        case transport_errors.ConnectFailed():
            return Unsent(f"{what}: {error}")
        case transport_errors.RequestRefused():
            return Invalid(f"{what}: {error}")
        case _:
            return Unavailable(f"{what}: {error}")


def not_lds(what: str, status: int) -> Unavailable:
    """Give the error for an answer that is of something in front of the LDS, or of another server."""
    return Unavailable(f"{what} was answered {status} by something other than an LDS: check base_url", status=status)


def code_of(error: OutsideError) -> str:
    """Name what came of a request: its status, or what came instead of an answer."""
    match error:
        case OutsideError(status=status) if status:
            return str(status)
        case DeadlineExceeded():
            return "timeout"
        case TlsFailed():
            return "certificate"
        case Unsent():
            return "unreachable"
        case Invalid():
            return "not_allowed"
        case _:
            return "lost"


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Take secrets out of a foreign text."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def _decoded(response: Response) -> _Error:
    try:
        return msgspec.json.decode(response.body, type=_Error)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Error()
