"""Requests to one API server: credentials, one retry after a 401, and streams split into lines."""

import asyncio
import contextlib
import re
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from vkprovider.api.errors import DeadlineExceeded, InputError, Invalid, Unauthorized
from vkprovider.kube.http import answers, auth
from vkprovider.kube.http.connection import Connection, ProtocolError, SilentError
from vkprovider.kube.http.pool import Pool

_ACCEPT: Final = "application/json"
_ACCEPT_BRIEF: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_GOOD: Final = range(200, 300)
"""An API server never redirects these requests: a redirect comes from a proxy in between."""
_UNAUTHORIZED: Final = 401
_RELOAD_EVERY_S: Final = 10.0
"""How often the CA is reloaded while the server's certificate cannot be verified."""
_REPEATABLE: Final = {"GET", "PUT", "DELETE"}
_UNFIT: Final = re.compile(r"[^\x21-\x7e]")  # in a request's first line
_CONTROL: Final = re.compile(r"[^\x20-\x7e]")  # in a header


class _Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes
    connection: Connection  # already released unless it streams


class Transport:
    """Requests to one API server.

    Attributes:
        requests_total: Requests sent, retries included.
        errors: Requests that were refused, by status (`403`), or got no response (`none`).
    """

    def __init__(self, access: auth.Access, reload: Callable[[], Awaitable[auth.Access]], *, user_agent: str) -> None:
        self.requests_total = 0
        self.errors: dict[str, int] = {}
        self._user_agent = user_agent
        self._reload = reload
        self._reloading = asyncio.Lock()
        self._reloaded_at_s = -_RELOAD_EVERY_S
        self._renew_at_s = time.monotonic() + auth.TOKEN_AGE_S_MAX
        self._pool = Pool()
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
        """Send a request and return the body of a 2xx response; only the object's metadata if `brief`.

        Raises:
            OutsideError: Any of its kinds.
        """
        what = f"{method} {path}"
        target = self._target(path, params)
        content = None if body is None else (content_type, body)
        try:
            return (await self._answered(method, target, what, content, guard, brief=brief)).body
        except (OSError, ProtocolError) as error:
            raise self._broken(error, what) from error

    @asynccontextmanager
    async def lines(
        self, path: str, params: Mapping[str, str] | None, *, inactivity_s: float, brief: bool = False
    ) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """Open a stream and split it into lines; see `KubeClient.stream`."""
        what = f"GET {path}"
        target = self._target(path, params)
        deadline = asyncio.timeout(inactivity_s)
        try:
            async with deadline:
                connection = (await self._answered("GET", target, what, brief=brief, streaming=True)).connection
        except (OSError, ProtocolError) as error:
            if deadline.expired():
                raise self._silent(what, inactivity_s) from None
            raise self._broken(error, what) from error
        try:
            connection.limit_silence(inactivity_s)
            async with aclosing(self._split(connection, what, inactivity_s)) as lines:
                yield lines
        finally:
            self._pool.release(connection)

    async def _split(self, connection: Connection, what: str, inactivity_s: float) -> AsyncGenerator[list[bytes], None]:
        """Yield the whole lines of each piece of an open stream, until it ends."""
        rest: list[bytes] = []
        try:
            while data := await connection.piece():
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
        except SilentError:
            raise self._silent(what, inactivity_s) from None
        except (OSError, ProtocolError):
            return  # an open stream that breaks has ended, however it broke

    async def _answered(
        self,
        method: str,
        target: str,
        what: str,
        content: tuple[str, bytes] | None = None,
        guard: Callable[[], None] | None = None,
        *,
        brief: bool = False,
        streaming: bool = False,
    ) -> _Answer:
        """Send a request and return a 2xx response; after a 401 or an untrusted certificate, reload and retry once.

        Raises:
            OutsideError: It was refused.
            OSError: There was no response.
            ProtocolError: What arrived is not an HTTP/1.1 response.
        """
        repeated = False
        while True:
            access = await self._current()
            kind, body = content or ("", b"")
            extent = f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n" if content else ""
            accept = f"Accept: {_ACCEPT_BRIEF if brief else _ACCEPT}\r\n"
            request = f"{method} {target} HTTP/1.1\r\n{self._headers}{accept}{extent}\r\n".encode() + body
            try:
                answer = await self._once(request, guard, repeatable=method in _REPEATABLE, streaming=streaming)
            except ssl.SSLCertVerificationError:
                if repeated or time.monotonic() - self._reloaded_at_s < _RELOAD_EVERY_S:
                    raise
                repeated = True
                await self._reload_access(access)  # the cluster's CA may have been replaced
                continue
            if answer.status in _GOOD:
                return answer
            if answer.status != _UNAUTHORIZED or repeated:
                self.count_error(str(answer.status))
                raise answers.refusal(answer.status, answer.body, answer.headers, what)
            repeated = True
            await self._reload_access(access)

    async def _once(
        self, request: bytes, guard: Callable[[], None] | None, *, repeatable: bool, streaming: bool
    ) -> _Answer:
        """Send a request and wait for its response, or only for the head of a 2xx one if `streaming`.

        Raises:
            OSError: There was no response.
            ProtocolError: What arrived is not an HTTP/1.1 response.
        """
        fresh = False
        while True:
            connection = await self._pool.acquire(fresh=fresh)
            held = False
            try:
                if guard is not None:
                    guard()
                self.requests_total += 1
                connection.send(request)
                held = streaming and await connection.head() in _GOOD
                body = b"" if held else await connection.body()
                return _Answer(connection.status, connection.headers, body, connection)
            except OSError:
                # A server may close an idle connection at the moment of its reuse (RFC 9112, 9.3.1).
                if fresh or not repeatable or connection.uses == 1 or connection.heard:
                    raise
                fresh = True
            finally:
                if not held:
                    self._pool.release(connection)

    def _target(self, path: str, params: Mapping[str, str] | None) -> str:
        """Return the request target: path and query.

        Raises:
            Invalid: The path is not percent-encoded.
        """
        target = self._prefix + path
        if params:
            target = f"{target}{'&' if '?' in target else '?'}{urlencode(params)}"
        if _UNFIT.search(target):
            raise Invalid(f"{path!r} is not a valid path")
        return target

    def count_error(self, code: str = "none") -> None:
        """Count a request that was refused or got no response."""
        self.errors[code] = self.errors.get(code, 0) + 1

    def _broken(self, error: Exception, what: str) -> Exception:
        self.count_error()
        return answers.broken(error, what, self._access.server)

    def _silent(self, what: str, inactivity_s: float) -> DeadlineExceeded:
        self.count_error()
        return DeadlineExceeded(f"{what}: nothing heard from {self._access.server} for {inactivity_s:g} s")

    async def _current(self) -> auth.Access:
        """Return the credentials, rereading a rotating token once a minute."""
        access = self._access
        if access.renew is not None and time.monotonic() >= self._renew_at_s:
            self._renew_at_s = time.monotonic() + auth.TOKEN_AGE_S_MAX
            # The old token may still be valid; if not, the server answers 401.
            with contextlib.suppress(InputError, Unauthorized):
                self._authorize(await access.renew())
        return access

    async def _reload_access(self, refused: auth.Access) -> None:
        """Reload the credentials after a refusal, unless another request has done so meanwhile."""
        async with self._reloading:
            if self._access is not refused:
                return
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

    def _use(self, access: auth.Access) -> None:
        url = urlsplit(access.server)
        self._prefix, self._host = url.path, url.netloc.rpartition("@")[2]
        self._authorize(access.authorization)
        self._access = access
        self._pool.use(access)

    def _authorize(self, authorization: str) -> None:
        if _CONTROL.search(authorization):
            raise InputError("TokenInvalid", f"the token for {self._host} contains illegal characters")
        credentials = f"Authorization: {authorization}\r\n" if authorization else ""
        self._headers = (
            f"Host: {self._host}\r\nUser-Agent: {self._user_agent}\r\nAccept-Encoding: identity\r\n{credentials}"
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()
