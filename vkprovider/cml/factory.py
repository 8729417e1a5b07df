"""Opens a worker by its URL: `https://` and `http://` a CML controller, `null://name` the null backend."""

import asyncio
from collections.abc import Callable
from typing import Final
from urllib.parse import SplitResult, urlsplit

from tunnels.base import AllowList, CertificateInvalid, Transport
from tunnels.channels import DirectStreams
from tunnels.direct import DirectTransport, Tls, trusting
from tunnels.outgoing import Guard
from vkprovider.cml.dialect import BY_SPEC, CmlDialect, Trust, with_others
from vkprovider.cml.null import NullLabs, NullWorker
from vkprovider.cml.operations import BASE, LABS_API, LOG_IN, STREAMS_API, TEXT_PATHS
from vkprovider.cml.spi import Credentials, CredentialsReader, Labs
from vkprovider.cml.worker import CmlLabs
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.platform.errors import InputError
from vkprovider.rest.client import ServiceClient, own_timeout_s
from vkprovider.rest.exchange import Calls, Exchange
from vkprovider.rest.operations import Operation
from vkprovider.rest.tokens import HOLDS, GivenToken, Holds, SharedLogin, Tokens

CONNECTIONS_MAX: Final = 12
"""The most connections to a worker. A burst opens all of them; a TLS handshake costs both sides more than a request."""
SLOW_MAX: Final = 10
"""Slow requests at once, so that two connections are left for those that show whether CML is alive."""

CALLS: Final = Calls(long_bounds=6)
"""The calls of this process: sessions come and go with workers and their settings, but a count only ever grows."""

_SCHEMES: Final = frozenset({"https", "http", "null"})
_NULL_WORKERS: Final[dict[str, NullWorker]] = {}
"""Null workers of this process by name: a worker opened again finds its labs."""


def open_labs(
    url: str,
    credentials: CredentialsReader,
    *,
    verify: bool = True,
    ca_bundle: str | None = None,
    guard: Guard | None = None,
    user_agent: str = "",
) -> Labs:
    """Open a worker; nothing is sent before the first call.

    Args:
        url: `https://cml1.example.net`, `http://127.0.0.2:8080`, `null://w1`.
        credentials: Read before every login.
        verify: Whether to verify the certificate.
        ca_bundle: PEM text of the authorities to trust instead of the system's.
        guard: Called right before a request is written, in the same step of the event loop; what it raises passes
            through.
        user_agent: The name of this client in the worker's log.

    Raises:
        InputError: `WorkerUrlInvalid` or `CaBundleInvalid`.
    """
    parts = parse_worker_url(url)
    if parts.scheme == "null":
        name = parts.netloc
        return NullLabs(_NULL_WORKERS.setdefault(name, NullWorker(name)), guard)
    session = open_session(
        url, credentials, verify=verify, ca_bundle=ca_bundle, allow=LABS_API, guard=guard, user_agent=user_agent
    )
    address = base_url_of(parts)
    streams = DirectStreams(
        address,
        tls=_tls(address, verify=verify, ca_bundle=ca_bundle),
        allow=STREAMS_API,
        may_dial=_any_port,
        texts=TEXT_PATHS,
        guard=guard,
    )
    return CmlLabs(session, address, streams)


def open_session(
    url: str,
    credentials: CredentialsReader,
    *,
    verify: bool = True,
    ca_bundle: str | None = None,
    allow: AllowList = LABS_API,
    guard: Guard | None = None,
    user_agent: str = "",
    token: str | None = None,
    holds: Holds = HOLDS,
    timeout_s: Callable[[Operation], float] = own_timeout_s,
) -> ServiceClient:
    """Open a session with a CML controller over the direct transport.

    Args:
        url: See `open_labs`.
        credentials: See `open_labs`.
        verify: See `open_labs`.
        ca_bundle: See `open_labs`.
        guard: See `open_labs`.
        user_agent: See `open_labs`.
        allow: The requests that may leave.
        token: Used until CML refuses it; without one the first request logs in.
        holds: How long a failed login is not tried again: CML limits the rate of logins.
        timeout_s: The seconds for a request of an operation.

    Raises:
        InputError: `WorkerUrlInvalid` or `CaBundleInvalid`.
    """
    parts = parse_worker_url(url)
    if parts.scheme == "null":
        raise InputError(WorkerReason.WORKER_URL_INVALID, f"{url!r}: the null backend has no sessions")
    address = base_url_of(parts)
    transport = DirectTransport(
        address,
        tls=_tls(address, verify=verify, ca_bundle=ca_bundle),
        allow=allow,
        guard=guard,
        connections_max=CONNECTIONS_MAX,
        user_agent=user_agent,
    )
    trust = with_others(BY_SPEC, ca_bundle)
    return session_over(transport, address, credentials, token=token, holds=holds, timeout_s=timeout_s, trust=trust)


def _tls(address: str, *, verify: bool, ca_bundle: str | None) -> Tls:
    """Return the TLS settings of connections to a CML controller.

    Raises:
        InputError: `CaBundleInvalid`.
    """
    try:
        return trusting(verify=verify, ca_bundle=ca_bundle or None)
    except CertificateInvalid as error:
        raise InputError(WorkerReason.CA_BUNDLE_INVALID, f"tls.caBundle of {address}: {error}") from error


def session_over(
    transport: Transport,
    address: str,
    credentials: CredentialsReader | None,
    *,
    token: str | None = None,
    holds: Holds = HOLDS,
    timeout_s: Callable[[Operation], float] = own_timeout_s,
    trust: Trust = BY_SPEC,
) -> ServiceClient:
    """Open a session with a CML controller over a transport; nothing is sent before the first call.

    Args:
        transport: Carries the requests; closed with the session.
        address: The controller, as messages name it.
        credentials: See `open_labs`; None if an agent at the other end logs in.
        token: See `open_session`.
        holds: See `open_session`.
        timeout_s: See `open_session`.
        trust: Where the authorities stand that may sign CML's certificate.
    """
    dialect = CmlDialect(address, trust)
    exchange = Exchange(transport, dialect, base=BASE, calls=CALLS)
    tokens: Tokens = GivenToken(address, _no_token)
    if credentials is not None:
        tokens = shared_login(exchange, address, credentials, token=token, holds=holds, timeout_s=timeout_s)
    return ServiceClient(exchange, tokens, timeout_s=timeout_s, slow_max=SLOW_MAX)


def shared_login(
    exchange: Exchange,
    address: str,
    credentials: CredentialsReader,
    *,
    token: str | None = None,
    holds: Holds = HOLDS,
    timeout_s: Callable[[Operation], float] = own_timeout_s,
) -> SharedLogin[Credentials]:
    """Return the login that all requests to a CML controller share; for the arguments see `session_over`."""

    async def log_in(user: Credentials) -> str:
        request = LOG_IN.to(json={"username": user.username, "password": user.password})
        end_s = asyncio.get_running_loop().time() + timeout_s(LOG_IN)
        return CmlDialect(address).token_of(request, await exchange.send(request, None, end_s), user.source)

    return SharedLogin(
        address, credentials, log_in, token=token, holds=holds, user_of=lambda credentials: credentials.username
    )


def _any_port(port: int) -> bool:
    """Return True: which ports are a lablet's, its claim says."""
    return 0 < port < 2**16


async def _no_token() -> None:
    """Return None: requests go without a token."""


def base_url_of(parts: SplitResult) -> str:
    """Return a worker's URL without path."""
    return f"{parts.scheme}://{parts.netloc}"


def parse_worker_url(url: str) -> SplitResult:
    """Check a worker's URL: scheme, host, port, nothing else.

    Raises:
        InputError: `WorkerUrlInvalid`, with what is wrong and an example.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _url_invalid(url, str(error)) from error
    if parts.scheme not in _SCHEMES:
        raise _url_invalid(url, "the scheme is not https or http")
    if "@" in parts.netloc:
        raise _url_invalid(f"{parts.scheme}://…", "user and password belong in the credentials Secret")
    if not parts.hostname or any(char.isspace() for char in url):
        raise _url_invalid(url, "there is no host")
    if port == 0:
        raise _url_invalid(url, "port 0 cannot be dialled")
    if parts.path not in {"", "/"} or "?" in url or "#" in url:
        raise _url_invalid(url, "a path or query is not allowed")
    return parts


def _url_invalid(url: str, why: str) -> InputError:
    return InputError(WorkerReason.WORKER_URL_INVALID, f"{url!r}: {why}; write for instance https://cml1.example.net")
