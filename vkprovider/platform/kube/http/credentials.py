"""How to reach an API server, and the parts of that which a kubeconfig and a ServiceAccount have in common."""

import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tunnels.outgoing import ProxyUnsupportedError, proxy_of
from vkprovider.platform.errors import InputError
from vkprovider.platform.reasons import StartReason


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How to reach an API server.

    Attributes:
        server: `https://10.96.0.1:443`, without a trailing slash.
        namespace: The context's or the ServiceAccount's.
        authorization: The header's value, `Bearer …`; empty with client certificates.
        tls: None for `http://`.
        tls_server_name: The name expected in the certificate, if not the URL's host.
        proxy: The URL of the proxy through which it is reached; None for none.
        context: The kubeconfig's; empty without one.
        renew: Returns the current value of the header; None if it cannot change.
        headers: More headers of each request, such as `Impersonate-User`; one may be there several times.
        expires_at: When all of this must be loaded again; None: only after a 401.
    """

    server: str
    namespace: str
    authorization: str = ""
    tls: ssl.SSLContext | None = None
    tls_server_name: str | None = None
    proxy: str | None = None
    context: str = ""
    renew: Callable[[], Awaitable[str]] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    expires_at: datetime | None = None


def proxy_for(server: str, named: str = "") -> str | None:
    """Return the proxy through which an API server is reached; None for none.

    Args:
        server: Its URL.
        named: The proxy that a kubeconfig names for it.

    Raises:
        InputError: `KubeconfigUnsupported`.
    """
    try:
        return proxy_of(server, os.environ, named)
    except ProxyUnsupportedError as error:
        raise InputError(
            StartReason.KUBECONFIG_UNSUPPORTED, f"{server}: {error}; or use a kubeconfig for `kubectl proxy`"
        ) from None


def trust_in(authorities: str | None) -> ssl.SSLContext:
    """Return the TLS settings that trust the CAs in a file; with these the system's CAs (megabytes) are not loaded.

    Raises:
        OSError: The file cannot be read, or OpenSSL does not accept it.
    """
    context = ssl.create_default_context(cafile=authorities)
    # The CAs of many clusters lack extensions that Python ≥ 3.13 requires by default and kubectl does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def bearer(path: Path) -> str:
    """Return the header for the token in a file.

    Raises:
        InputError: `TokenMissing`: it cannot be read, or is empty, as one that is being written is for a moment.
    """
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise InputError(StartReason.TOKEN_MISSING, f"token file {path} cannot be read: {error.strerror}") from None
    if not token:
        raise InputError(StartReason.TOKEN_MISSING, f"token file {path} is empty")
    return f"Bearer {token}"


def renewed_from(path: Path) -> Callable[[], Awaitable[str]]:
    """Return a callable that reads the header from a token file again."""

    async def renew() -> str:
        return bearer(path)

    return renew
