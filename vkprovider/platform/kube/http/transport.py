"""Requests to one API server: credentials, one retry after a 401, and streams split into lines."""

import asyncio
import contextlib
import io
import re
import socket
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from tunnels.outgoing import guarded_by, open_session
from vkprovider.platform.errors import DeadlineExceeded, InputError, Invalid, OutsideError, Unauthorized
from vkprovider.platform.kube.clock import ApiClock
from vkprovider.platform.kube.http import answers, auth
from vkprovider.platform.kube.http.answers import FAILURES, broken
from vkprovider.platform.kube.http.credentials import ClusterAccess
from vkprovider.platform.kube.http.websockets import KubeWebSocket, keep_refusal, open_websocket
from vkprovider.platform.reasons import StartReason

_ACCEPT: Final = "application/json"
_ACCEPT_BRIEF: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_ACCEPT_BRIEF_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_GOOD: Final = range(200, 300)
"""An API server never redirects these requests: a redirect comes from a proxy in between."""
_UNAUTHORIZED: Final = 401
_RELOAD_EVERY_S: Final = 10.0
"""How often the CA is reloaded while the server's certificate cannot be verified."""
_CONNECT_S_MAX: Final = 5.0
_IDLE_S_MAX: Final = 60.0
"""Idle connections are closed before the API server does so, whose limit is 90 s."""
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
_UNACKNOWLEDGED_MS_MAX: Final = 30_000
_AT_ONCE_BYTES_MAX: Final = 1 << 20
"""A longer body is written in pieces, so that the event loop goes on."""
_UNFIT: Final = re.compile(r"[^\x21-\x7e]|#")  # in a request's first line
_CONTROL: Final = re.compile(r"[^\x20-\x7e]")  # in a header


class _Request(NamedTuple):
    method: str
    path: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None = None
    silence_s_max: float | None = None

    @property
    def what(self) -> str:
        return f"{self.method} {self.path}"


class ApiTransport:
    """Requests to one API server.

    It has no limit of connections, because watches hold them for minutes: `KubeClient` limits requests in flight.

    Attributes:
        clock: The API server's, by its answers.
        requests_total: Requests begun, retries after a 401 included.
        errors: Requests that were refused, by status (`403`), or got no response (`none`).
    """

    def __init__(
        self, access: ClusterAccess, reload: Callable[[], Awaitable[ClusterAccess]], *, user_agent: str
    ) -> None:
        self.clock = ApiClock()
        self.requests_total = 0
        self.errors: dict[str, int] = {}
        self._user_agent = user_agent
        self._reload = reload
        self._reloading: asyncio.Task[None] | None = None
        self._reloaded_at_s = -_RELOAD_EVERY_S
        self._renew_at_s = time.monotonic() + auth.TOKEN_AGE_S_MAX
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._use(access)

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        guard: Callable[[], None] | None = None,
        brief: bool = False,
    ) -> bytes:
        """Send a request and return the body of a 2xx response; only metadata if `brief`.

        A request with a `limit` among its `params` is one for a list.

        Raises:
            OutsideError: Any of its kinds.
        """
        one = _ACCEPT_BRIEF_LIST if params and "limit" in params else _ACCEPT_BRIEF
        headers = {"Accept": one if brief else _ACCEPT}
        if body is not None:
            headers["Content-Type"] = content_type
        request = _Request(method, path, self._url(path, params), headers, body)
        try:
            with guarded_by(guard):
                async with await self._answered(request) as response:
                    return await response.read()
        except FAILURES as error:
            raise self._broken(error, request.what) from error

    @asynccontextmanager
    async def lines(
        self, path: str, params: Mapping[str, str] | None, *, inactivity_s: float, brief: bool = False
    ) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """Open a stream and split it into lines; see `KubeClient.stream`."""
        headers = {"Accept": _ACCEPT_BRIEF if brief else _ACCEPT}
        request = _Request("GET", path, self._url(path, params), headers, silence_s_max=inactivity_s)
        deadline = asyncio.timeout(inactivity_s)
        try:
            async with deadline:
                response = await self._answered(request)
        except FAILURES as error:
            if deadline.expired() or isinstance(error, aiohttp.SocketTimeoutError):
                raise self._silent(request) from None
            raise self._broken(error, request.what) from error
        try:
            async with aclosing(self._split(response.content, request)) as lines:
                yield lines
        finally:
            response.close()  # unless it has ended: then its connection is used again

    async def websocket(self, path: str, params: Sequence[tuple[str, str]], protocols: Sequence[str]) -> KubeWebSocket:
        """Open a WebSocket; see `KubeClient.websocket`."""
        access = await self._current()
        url = self._url(f"{path}?{urlencode(params)}", None)
        self.requests_total += 1
        connector = aiohttp.TCPConnector(limit=0, force_close=True, socket_factory=_watched_socket)
        session = open_session(connector, connect_s_max=_CONNECT_S_MAX, middlewares=(keep_refusal,))
        try:
            return await open_websocket(session, access, url, self._headers, protocols)
        except OutsideError as error:
            self.count_error(str(error.status) if error.status else "none")
            raise

    async def _split(self, content: aiohttp.StreamReader, request: _Request) -> AsyncGenerator[list[bytes], None]:
        """Yield the whole lines of each piece of an open stream, until it ends."""
        rest: list[bytes] = []
        try:
            while data := await content.readany():
                if b"\n" not in data:
                    rest.append(data)
                    continue
                if rest:
                    data = b"".join((*rest, data))
                    rest.clear()
                lines = data.split(b"\n")
                if tail := lines.pop():
                    rest.append(tail)
                yield lines
        except aiohttp.SocketTimeoutError:
            raise self._silent(request) from None
        except FAILURES:
            return  # an open stream that breaks has ended, however it broke

    async def _answered(self, request: _Request) -> aiohttp.ClientResponse:
        """Send a request and return a 2xx response; after a 401 or an untrusted certificate, reload and retry once.

        Raises:
            OutsideError: It was refused.
            aiohttp.ClientError: There was no response, as with the rest of `FAILURES`.
        """
        repeated = False
        while True:
            access = await self._current()
            self.requests_total += 1
            try:
                response = await self._send(request, access)
            except aiohttp.ClientConnectorCertificateError:
                if repeated or time.monotonic() - self._reloaded_at_s < _RELOAD_EVERY_S:
                    raise
                repeated = True
                await self._reload_access(access)  # the cluster's CA may have been replaced
                continue
            if response.status in _GOOD:
                return response
            async with response:
                body = await response.read()
            if response.status != _UNAUTHORIZED or repeated:
                self.count_error(str(response.status))
                raise answers.refusal(response.status, body, response.headers, request.what)
            repeated = True
            await self._reload_access(access)

    async def _send(self, request: _Request, access: ClusterAccess) -> aiohttp.ClientResponse:
        body = request.body
        response = await self._open().request(
            request.method,
            request.url,
            data=io.BytesIO(body) if body is not None and len(body) > _AT_ONCE_BYTES_MAX else body,
            headers=CIMultiDict((*self._headers.items(), *request.headers.items(), *access.headers)),
            allow_redirects=False,
            ssl=access.tls if access.tls is not None else True,
            server_hostname=access.tls_server_name,
            proxy=access.proxy,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S_MAX, sock_read=request.silence_s_max),
        )
        self.clock.note(response.headers.get("Date"))
        return response

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise ConnectionResetError("this client has been closed")
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_S_MAX, socket_factory=_watched_socket)
            self._session = open_session(connector)
        return self._session

    def _url(self, path: str, params: Mapping[str, str] | None) -> URL:
        """Return the URL of a path and its query.

        Raises:
            Invalid: The path is not percent-encoded.
        """
        target = path
        if params:
            target = f"{target}{'&' if '?' in target else '?'}{urlencode(params)}"
        if _UNFIT.search(target):
            raise Invalid(f"{path!r} is not a valid path")
        return URL(self._base + target, encoded=True)

    def count_error(self, code: str = "none") -> None:
        """Count a request that was refused or got no response."""
        self.errors[code] = self.errors.get(code, 0) + 1

    def _broken(self, error: Exception, what: str) -> Exception:
        self.count_error()
        return broken(error, what, self._access.server)

    def _silent(self, request: _Request) -> DeadlineExceeded:
        self.count_error()
        server = self._access.server
        return DeadlineExceeded(f"{request.what}: nothing heard from {server} for {request.silence_s_max:g} s")

    async def _current(self) -> ClusterAccess:
        """Return the credentials: loaded again when they expire, a token file read again once a minute."""
        access = self._access
        if access.expires_at is not None and datetime.now(UTC) >= access.expires_at:
            await self._reload_access(access)
            return self._access
        if access.renew is not None and time.monotonic() >= self._renew_at_s:
            self._renew_at_s = time.monotonic() + auth.TOKEN_AGE_S_MAX
            # The old token may still be valid; if not, the server answers 401.
            with contextlib.suppress(InputError, Unauthorized):
                self._authorize(await access.renew())
        return access

    async def _reload_access(self, refused: ClusterAccess) -> None:
        """Reload the credentials after a refusal, unless another request has done so meanwhile.

        All requests wait for one reload, which outlives those whose deadline ends: a login may take longer.
        """
        if self._access is not refused:
            return
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._reload_now(refused), name="reload of credentials")
            self._reloading.add_done_callback(_retrieve)
        reloading = self._reloading
        try:
            await asyncio.shield(reloading)
        except asyncio.CancelledError:
            if reloading.cancelled() and self._closed:
                raise ConnectionResetError("this client has been closed") from None
            raise

    async def _reload_now(self, refused: ClusterAccess) -> None:
        self._reloaded_at_s = time.monotonic()
        try:
            access = await self._reload()
            if access.server == refused.server:
                self._use(access)
        except InputError as error:
            raise Unauthorized(
                f"{refused.server} refused our credentials, and reloading them failed: {error.message}"
            ) from error
        if access.server != refused.server:  # every cache is of the first server
            raise Unauthorized(
                f"{refused.server} refused our credentials, and the kubeconfig now names {access.server}; restart"
            )

    def _use(self, access: ClusterAccess) -> None:
        """Use these credentials from now on; other TLS settings or another proxy lead to new connections."""
        url = urlsplit(access.server)
        self._base = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
        self._authorize(access.authorization)
        self._access = access

    def _authorize(self, authorization: str) -> None:
        if _CONTROL.search(authorization):
            raise InputError(StartReason.TOKEN_INVALID, f"the token for {self._base} contains illegal characters")
        self._headers = {"User-Agent": self._user_agent, "Accept-Encoding": "identity"}
        if authorization:
            self._headers["Authorization"] = authorization

    async def close(self) -> None:
        """Close every connection, also those in use, and open no others."""
        self._closed = True
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.wait([self._reloading])
        session, self._session = self._session, None
        if session is not None:
            await session.close()


def _retrieve(task: asyncio.Task[None]) -> None:
    """Retrieve the error of a reload that nobody has waited for."""
    if not task.cancelled():
        task.exception()


def _watched_socket(address: tuple[object, ...]) -> socket.socket:
    """Return a socket whose peer's disappearance the kernel detects within half a minute."""
    family, kind, protocol = address[:3]
    made = socket.socket(family=family, type=kind, proto=protocol)  # type: ignore[arg-type]
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if option := getattr(socket, name, None):  # macOS has only some
            made.setsockopt(socket.IPPROTO_TCP, option, value)
    if option := getattr(socket, "TCP_USER_TIMEOUT", None):  # Linux
        made.setsockopt(socket.IPPROTO_TCP, option, _UNACKNOWLEDGED_MS_MAX)
    return made
