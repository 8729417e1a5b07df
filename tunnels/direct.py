"""The direct transport: HTTP or HTTPS over a connection pool."""

import asyncio
import functools
import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import aiohttp
from yarl import URL

from tunnels.base import (
    AllowList,
    CertificateFault,
    CertificateInvalid,
    ConnectFailed,
    ConnectionLost,
    DeadlineExceeded,
    Response,
)
from tunnels.outgoing import Guard, ProxyUnsupportedError, guarded_by, open_session, proxy_of

Tls = Callable[[], ssl.SSLContext]
"""Returns the TLS settings of the next connection; as long as it returns the same, connections are used again."""

BODY_BYTES_MAX: Final = 64 * 2**20
"""A longer response does not come from any of the servers that are asked."""

_HEADERS_KEPT: Final = ("content-type", "date", "location", "retry-after")
_FAULTS: Final[dict[int, CertificateFault]] = {
    9: "not-yet-valid",
    10: "expired",
    18: "self-signed",
    19: "self-signed",
    62: "hostname",
    64: "hostname",
}
"""X509_V_ERR_* of OpenSSL's x509_vfy.h, as `ssl.SSLCertVerificationError.verify_code` gives them."""

_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"})
"""OpenSSL's reasons for an answer that is no TLS record."""


@functools.lru_cache(maxsize=64)
def ssl_context(*, verify: bool, ca_bundle: str | None) -> ssl.SSLContext:
    """Return the TLS settings of `fresh_ssl_context`; cached, because loading the system's authorities costs 20 ms."""
    return fresh_ssl_context(verify=verify, ca_bundle=ca_bundle)


@functools.cache
def system_tls() -> ssl.SSLContext:
    """Return TLS settings that trust the system's authorities."""
    return fresh_ssl_context(verify=True, ca_bundle=None)


def trusting(*, verify: bool = True, ca_bundle: str | None = None) -> Tls:
    """Return the function that returns the TLS settings of `fresh_ssl_context`, always the same.

    Raises:
        CertificateInvalid: `ca_bundle` is not PEM text.
    """
    if verify and ca_bundle is None:
        return system_tls
    context = ssl_context(verify=verify, ca_bundle=ca_bundle)
    return lambda: context


def fresh_ssl_context(*, verify: bool, ca_bundle: str | None) -> ssl.SSLContext:
    """Build TLS settings, to which the caller may add a certificate of its own.

    Args:
        verify: Whether to verify the certificate and its host name at all.
        ca_bundle: PEM text of the authorities to trust instead of the system's. The server's own certificate will do,
            even if it is not an authority's.

    Raises:
        CertificateInvalid: `ca_bundle` is not PEM text.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if ca_bundle is None:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=ca_bundle)
    except (ssl.SSLError, ValueError, TypeError) as error:
        raise CertificateInvalid("the CA bundle holds no certificate in PEM form", fault="ca-bundle") from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


class DirectTransport:
    """A `Transport` over its own connection pool.

    Args:
        base_url: `https://host[:port]` or `http://host[:port]`, without a path.
        tls: How the server's certificate is verified, where the URL is one of HTTPS.
        allow: The requests that may be sent.
        guard: Called in the same step of the event loop in which the request is written; what it raises passes through
            unchanged, and nothing is sent.
        connections_max: Requests beyond this many wait, within their deadline and in the order in which they came.
        user_agent: The `User-Agent` header; none if empty.
    """

    def __init__(
        self,
        base_url: str,
        *,
        tls: Tls = system_tls,
        allow: AllowList,
        guard: Guard | None = None,
        connections_max: int = 16,
        user_agent: str = "",
    ) -> None:
        self._base = base_url.rstrip("/")
        url = URL(self._base)
        self._where = f"{url.host}:{url.port}"
        self._tls = tls if url.scheme == "https" else None
        self._allow = allow
        self._guard = guard
        self._connections_max = connections_max
        self._turns = asyncio.Semaphore(connections_max)  # the pool itself prefers who asks just when one is free
        self._headers = {"User-Agent": user_agent} if user_agent else None
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

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
        """Send one request and return the whole response; see `Transport.request`.

        Raises:
            RequestRefused: The allow-list does not name it.
            ConnectFailed: No connection came about.
            CertificateInvalid: The certificate cannot be trusted.
            ConnectionLost: The connection ended before the response.
            DeadlineExceeded: No response within `deadline_s`.
        """
        self._allow.check(method, path)
        session = self._open()
        try:
            with translated(self._where, deadline_s), guarded_by(self._guard):
                async with (
                    asyncio.timeout(deadline_s),
                    self._turns,
                    session.request(
                        method,
                        URL(self._base + path, encoded=True),
                        params=params,
                        data=body,
                        headers=headers,
                        allow_redirects=False,
                        ssl=self._tls() if self._tls is not None else True,
                        proxy=proxy_of(self._base, os.environ),
                    ) as response,
                ):
                    kept = {name: response.headers[name] for name in _HEADERS_KEPT if name in response.headers}
                    return Response(response.status, await self._read(response), kept)
        except ConnectionLost as error:
            if self._closed:
                raise ConnectFailed(f"{self._where}: the transport is closed") from error
            raise

    async def close(self) -> None:
        """Close all connections."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise ConnectFailed(f"{self._where}: the transport is closed")
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._connections_max)
            self._session = open_session(connector, headers=self._headers)
        return self._session

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > BODY_BYTES_MAX:
                raise ConnectionLost(f"{self._where}: the response is longer than {BODY_BYTES_MAX} bytes")
            chunks.append(chunk)
        return b"".join(chunks)


@contextmanager
def translated(where: str, deadline_s: float) -> Iterator[None]:
    """Turn the errors of aiohttp and the operating system into those of `tunnels.base`.

    Args:
        where: Host and port, for messages.
        deadline_s: The time that there was.

    Raises:
        TransportError: For any of them.
    """
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        raise _certificate(where, error) from error
    except aiohttp.ClientConnectorSSLError as error:
        raise ConnectFailed(f"{where}: no TLS connection: {no_tls(error)}") from error
    except aiohttp.ClientProxyConnectionError as error:
        raise ConnectFailed(f"{where}: no connection to its proxy {error.host}: {why(error.os_error)}") from error
    except aiohttp.ClientConnectorError as error:
        raise ConnectFailed(f"{where}: {why(error.os_error)}") from error
    except aiohttp.ClientHttpProxyError as error:
        raise ConnectFailed(f"{where}: its proxy answers {error.status} {error.message}") from error
    except ProxyUnsupportedError as error:
        raise ConnectFailed(f"{where}: {error}") from error
    except TimeoutError as error:
        raise DeadlineExceeded(f"{where}: no response within {deadline_s:.3g} s") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionLost(f"{where}: the connection ended before the response") from error


def _certificate(where: str, error: aiohttp.ClientConnectorCertificateError) -> CertificateInvalid:
    cause = error.certificate_error
    fault: CertificateFault = "untrusted"
    text = str(cause)
    if isinstance(cause, ssl.SSLCertVerificationError):
        fault = _FAULTS.get(cause.verify_code, "untrusted")
        text = cause.verify_message
    return CertificateInvalid(f"{where}: {text}", fault=fault)


def is_plain(error: aiohttp.ClientConnectorSSLError) -> bool:
    """Return whether the other side answers, and not in TLS."""
    return getattr(error.os_error, "reason", "") in _NOT_TLS


def no_tls(error: aiohttp.ClientConnectorSSLError) -> str:
    """Return why TLS failed before there was a certificate."""
    reason = getattr(error.os_error, "reason", "")
    if is_plain(error):
        return "it answers without TLS: give it a certificate, or, for tests only, write http://"
    return f"{reason or error.os_error.strerror}".lower().replace("_", " ")


def why(error: OSError) -> str:
    """Return the operating system's text; asyncio replaces `Connection refused` by its own words."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
