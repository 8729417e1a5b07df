"""How a request leaves this process: its guard, its proxy, and the session of every HTTP client of ours."""

import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection

Guard = Callable[[], None]
"""Called in the step of the event loop in which a request is written; raises to stop it."""

_guard: Final[ContextVar[Guard | None]] = ContextVar("guard", default=None)


@contextmanager
def guarded_by(guard: Guard | None) -> Iterator[None]:
    """Ask `guard` before each request that is written within the block; None asks nobody."""
    token = _guard.set(guard)
    try:
        yield
    finally:
        _guard.reset(token)


class GuardedRequest(aiohttp.ClientRequest):
    """A request that is written only if the guard of its block agrees; what the guard raises passes through.

    aiohttp writes a request without body inside `send`, and one with a body inside `write_bytes`, which may be a task
    of its own that runs a step later; hence both places. A proxy's CONNECT, which comes before, is none of them.
    """

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Ask the guard, then send; the head of a request with a body waits for `write_bytes`."""
        _ask()
        return await super().send(conn)

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        """Ask the guard again, then write head and body."""
        try:
            _ask()
        except Exception as error:  # noqa: BLE001 (handed to the task that waits for the response)
            if conn.protocol is not None:
                conn.protocol.set_exception(error)
            return
        await super().write_bytes(writer, conn, content_length)


def _ask() -> None:
    guard = _guard.get()
    if guard is not None:
        guard()


Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_VARIABLES: Final = {"https": ("HTTPS_PROXY", "https_proxy"), "http": ("HTTP_PROXY", "http_proxy")}
_EXCEPTIONS: Final = ("NO_PROXY", "no_proxy")
_PORTS: Final = {"https": 443, "http": 80}
_SCHEMES: Final = frozenset({"http", "https"})
_MAPPED_BITS: Final = 96
"""The length of the prefix `::ffff:0:0`, below which IPv6 has the addresses of IPv4."""


class ProxyUnsupportedError(ValueError):
    """A proxy is named that cannot be used; the message names it without its password."""


def proxy_of(url: str, environ: Mapping[str, str], named: str = "") -> str | None:
    """Return the URL of the proxy for `url`, or None to dial it directly.

    >>> proxy_of("https://10.1.2.3:6443", {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": "10.0.0.0/8"})
    >>> proxy_of("https://a.example.com", {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": "10.0.0.0/8"})
    'http://proxy:3128'

    Args:
        url: `http://…` or `https://…`.
        environ: The environment: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`, or these in lower case.
        named: A proxy that is named for this server alone, as by `proxy-url` in a kubeconfig; it has no exceptions.

    Raises:
        ProxyUnsupportedError: The proxy is none of HTTP, such as `socks5://…`.
    """
    parts = urlsplit(url)
    found = named or _first(environ, _VARIABLES.get(parts.scheme, ()))
    if not found or (not named and _is_excepted(parts, _first(environ, _EXCEPTIONS))):
        return None
    proxy = _parsed(found)
    if proxy is None:
        if named:
            raise ProxyUnsupportedError(f"proxy {named!r} is not a URL")
        return None  # Go ignores it, too
    if proxy.scheme not in _SCHEMES or not proxy.hostname:
        where = place_of(proxy.geturl())
        raise ProxyUnsupportedError(f"proxy {proxy.scheme}://{where}: only http:// and https:// are supported")
    return proxy.geturl()


def place_of(proxy: str) -> str:
    """Return host and port of a proxy, without the name and password in its URL."""
    return urlsplit(proxy).netloc.rpartition("@")[2]


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    """Return the first of these variables that is not empty."""
    return next((value for name in names if (value := environ.get(name, ""))), "")


def _parsed(proxy: str) -> SplitResult | None:
    """Return the URL of a proxy; `proxy:3128` is one of `http://`. None if it is no URL."""
    for text in (proxy, f"http://{proxy}"):
        try:
            parts = urlsplit(text)
            if parts.scheme and parts.netloc and parts.port != 0:
                return parts
        except ValueError:
            continue
    return None


def _is_excepted(url: SplitResult, no_proxy: str) -> bool:
    host = _ascii(url.hostname or "")
    port = url.port or _PORTS[url.scheme]
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = [entry for part in no_proxy.split(",") if (entry := part.strip().lower())]
    return "*" in entries or any(_matches(entry, host, port, address) for entry in entries)


def _matches(entry: str, host: str, port: int, address: Address | None) -> bool:
    """Return whether an entry of NO_PROXY names a host: `10.0.0.0/8`, `10.0.0.1`, `[::1]:443`, `.example.com:80`."""
    network = _network(entry)
    if network is not None:
        return address is not None and address in network
    named = _split(entry)
    own = _address(named.host)
    if own is not None:
        return own == address and named.is_for(port)
    if not named.host or address is not None:
        return False
    name = _ascii(named.host[1:] if named.host.startswith("*.") else named.host)
    found = host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")
    return found and named.is_for(port)


@dataclass(frozen=True, slots=True)
class _Entry:
    host: str
    port: str

    def is_for(self, port: int) -> bool:
        return self.port in {"", str(port)}


def _split(entry: str) -> _Entry:
    """Split `host:port` as Go's `net.SplitHostPort` does; without a port, or with colons more, it is all host."""
    host, colon, port = entry.rpartition(":")
    if not colon:
        return _Entry(entry, "")
    if host.startswith("[") and host.endswith("]"):
        return _Entry(host[1:-1], port)
    return _Entry(entry, "") if ":" in host or "[" in entry or "]" in entry else _Entry(host, port)


def _address(text: str) -> Address | None:
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped) or found


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    base, slash, bits = text.partition("/")
    if not slash or not bits.isdecimal():
        return None
    try:
        found = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Network) and found.prefixlen >= _MAPPED_BITS:
        mapped = _address(base)
        if isinstance(mapped, ipaddress.IPv4Address):
            return ipaddress.IPv4Network((mapped, found.prefixlen - _MAPPED_BITS), strict=False)
    return found


def _ascii(name: str) -> str:
    """Return a name in the form that DNS has of it."""
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name


class BrokenOffError(aiohttp.ClientConnectionError):
    """The connection ended after a write was sent and before its answer: it may have been carried out."""


def open_session(
    connector: aiohttp.TCPConnector,
    *,
    headers: Mapping[str, str] | None = None,
    connect_s_max: float | None = None,
    middlewares: Sequence[aiohttp.ClientMiddlewareType] = (),
) -> aiohttp.ClientSession:
    """Open a session whose requests ask the guard of `guarded_by`, and whose writes are sent at most once.

    It has no deadline of its own but for connecting: callers set one for each request. It reads neither the environment
    (which knows no CIDR in `NO_PROXY`) nor netrc: callers pass `proxy=`, from `proxy_of`.

    Args:
        connector: Its connections; closed with the session.
        headers: Sent with every request.
        connect_s_max: Seconds for one attempt to connect; None for no limit.
        middlewares: Of the caller, which see an answer after ours.
    """
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_s_max),
        headers=headers,
        skip_auto_headers=("Content-Type", "User-Agent"),
        request_class=GuardedRequest,
        middlewares=(*middlewares, _write_once),
        trust_env=False,
    )


async def _write_once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request, and keep aiohttp from sending a write again when a kept-alive connection breaks.

    aiohttp repeats every idempotent method (RFC 9110, 9.2.2) after `ClientOSError` and `ServerDisconnectedError`. A
    second PUT or DELETE may undo what another client did in between, so only reads are repeated.

    Raises:
        BrokenOffError: In place of those two, for a write.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:  # there was no connection, so nothing was sent
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        if request.method in request.GET_METHODS:
            raise
        raise BrokenOffError(str(error) or "the server closed the connection") from error
