"""Map an API server's refusals and broken connections to `vkprovider.api.errors`."""

import socket
import ssl
from collections.abc import Mapping
from typing import Final

import msgspec

from vkprovider.api import errors

_REDIRECTS: Final = range(300, 400)
_RETRY_AFTER_S_MAX: Final = 300.0


class Status(msgspec.Struct, rename="camel"):
    """A `Status` object: `{"code": 404, "reason": "NotFound", "message": "namespaces 'a' not found"}` and more."""

    code: int = 0
    reason: str = ""
    message: str = ""


_status_decoder: Final = msgspec.json.Decoder(Status)


def refusal(status: int, body: bytes, headers: Mapping[str, str], what: str) -> errors.OutsideError:
    """Return the error for a response other than 2xx; `what` names the request (`GET /api/v1/pods`)."""
    if (place := headers.get("location")) is not None and status in _REDIRECTS:
        message = f"{what}: redirected to {place}; the kubeconfig must name the API server itself"
        return errors.Invalid(message, status=status)
    try:
        message = _status_decoder.decode(body).message
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a proxy's page, or an empty body
        message = ""
    if not message:
        message = f"{what}: HTTP {status} {body[:200].decode(errors='replace')}"
    return errors.from_status(status, message, after_s=_retry_after_s(headers.get("retry-after")))


def error_event(body: bytes, what: str) -> errors.OutsideError:
    """Return the error for the Status inside a watch's ERROR event."""
    try:
        status = _status_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return errors.Unavailable(f"{what}: the watch reported an undecodable error", status=500)
    return errors.from_status(status.code or 500, status.message or f"{what}: the watch reported {status.reason}")


def broken(error: Exception, what: str, server: str) -> errors.OutsideError:
    """Return the error for a request without a response."""
    if isinstance(error, socket.gaierror):
        return errors.Unavailable(f"{what}: no address for {server}; check the server's name and the resolver")
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        said = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else error.reason
        return errors.TlsFailed(f"{what}: no trust between {server} and us: {said}; check its CA and our certificate")
    if isinstance(error, TimeoutError):
        return errors.DeadlineExceeded(f"{what}: {server} did not answer in time")
    text = str(error) or type(error).__name__
    return errors.Unavailable(f"{what}: {text}; is the API server at {server} up and reachable?")


def _retry_after_s(header: str | None) -> float:
    """Read Retry-After; the API server sends whole seconds, never a date."""
    try:
        return min(max(float(header or 1.0), 0.0), _RETRY_AFTER_S_MAX)
    except ValueError:
        return 1.0
