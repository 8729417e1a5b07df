"""Map what aiohttp raises where there is no answer to `vkprovider.platform.errors`."""

import socket
import ssl
from typing import Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from vkprovider.platform import errors

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
