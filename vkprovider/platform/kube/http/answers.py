"""Map an API server's refusals, and what aiohttp raises where there is no answer, to `vkprovider.platform.errors`."""

import socket
import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp
import msgspec
from aiohttp.http_exceptions import HttpProcessingError

from vkprovider.platform import errors

_REDIRECTS: Final = range(300, 400)
_RETRY_AFTER_S_MAX: Final = 300.0
_NOT_FOUND: Final = 404
_UNSERVED: Final = b"404 page not found"
"""An API server's answer for a path that none of its kinds has: Go's text, where a missing object has a Status."""


class StatusObject(msgspec.Struct, rename="camel"):
    """A `Status`: `{"code": 404, "reason": "NotFound", "message": "namespaces 'a' not found"}` and more."""

    code: int = 0
    reason: str = ""
    message: str = ""


_status_decoder: Final = msgspec.json.Decoder(StatusObject)


def refusal(status: int, body: bytes, headers: Mapping[str, str], what: str) -> errors.OutsideError:
    """Return the error for a response other than 2xx; `what` names the request (`GET /api/v1/pods`)."""
    if (place := headers.get("location")) is not None and status in _REDIRECTS:
        message = f"{what}: redirected to {place}; the kubeconfig must name the API server itself"
        return errors.Invalid(message, status=status)
    try:
        message = _status_decoder.decode(body).message
    except (msgspec.MsgspecError, UnicodeDecodeError):  # a proxy's page, or an empty body
        message = ""
    if not message and status == _NOT_FOUND and body.strip() == _UNSERVED:
        message = (
            f"{what}: the API server does not serve this kind: its custom resource definition is missing, or not "
            "established yet; `vkprovider doctor` says how it is installed"
        )
    elif not message:
        message = f"{what}: HTTP {status} {body[:200].decode(errors='replace')}"
    return errors.from_status(status, message, after_s=_retry_after_s(headers.get("retry-after")))


def error_event(body: bytes, what: str) -> errors.OutsideError:
    """Return the error for the Status inside a watch's ERROR event."""
    try:
        status = _status_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return errors.Unavailable(f"{what}: the watch reported an undecodable error", status=500)
    return errors.from_status(status.code or 500, status.message or f"{what}: the watch reported {status.reason}")


def _retry_after_s(header: str | None) -> float:
    """Read Retry-After; the API server sends whole seconds, never a date."""
    try:
        return min(max(float(header or 1.0), 0.0), _RETRY_AFTER_S_MAX)
    except ValueError:
        return 1.0


_SAID_CHARS_MAX: Final = 100
FAILURES: Final = (aiohttp.ClientError, HttpProcessingError, OSError)


def broken(error: Exception, what: str, server: str) -> errors.OutsideError:
    """Return the error for a request without a response."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return errors.Unavailable(f"{what}: the proxy to {server} answers {error.status} {error.message}")
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        place = f"{error.host}:{error.port}"
        return errors.Unavailable(f"{what}: no connection to {place}, the proxy to {server}: {_said(error.os_error)}")
    cause = _cause(error)
    if isinstance(error, aiohttp.ClientConnectorDNSError) or isinstance(cause, socket.gaierror):
        host = error.host if isinstance(error, aiohttp.ClientConnectorDNSError) else server
        place = server if host in server else f"{host}, the proxy to {server}"
        return errors.Unavailable(f"{what}: no address for {place}; check the server's name and the resolver")
    if isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        said = cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else cause.reason
        return errors.TlsFailed(f"{what}: no trust between {server} and us: {said}; check its CA and our certificate")
    if isinstance(cause, TimeoutError):
        return errors.DeadlineExceeded(f"{what}: {server} did not answer in time")
    return errors.Unavailable(f"{what}: {_said(cause)}; is the API server at {server} up and reachable?")


def _cause(error: Exception) -> Exception:
    """Return the operating system's or OpenSSL's error inside one of aiohttp."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error
    return error


def _said(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientResponseError):  # what aiohttp cannot parse
        return f"not an HTTP/1.1 response: {error.message[:_SAID_CHARS_MAX]}"
    return str(error) or type(error).__name__
