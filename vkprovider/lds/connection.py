"""One HTTP connection pool per deployment: token, deadlines, repetitions, and who is told how it went."""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from typing import Final, TypeVar

import msgspec
from yarl import URL

from tunnels.allowlist import AllowList
from tunnels.base import Response
from tunnels.direct import DirectTransport, Guard
from tunnels.errors import TransportError
from vkprovider.api.errors import DeadlineExceeded, OutsideError, Throttled, Unauthorized, Unavailable
from vkprovider.domain.backoff import delay_s
from vkprovider.lds import answers
from vkprovider.lds.calls import CALLS
from vkprovider.lds.errors import Full, may_have_happened

BASE: Final = "/api/v1"

ATTEMPTS_MAX: Final = 3
REPEAT_FIRST_S: Final = 0.2
REPEAT_MAX_S: Final = 2.0

REFRESH_S: Final = 120.0
"""At least this long may the LDS take to fetch content from its store."""

TokenReader = Callable[[], str | None]
"""Reads the deployment's token; called before every request, so that a changed one needs no restart."""

Reporter = Callable[[OutsideError | None], None]
"""Told what came of each call: None if the LDS answered as asked."""

_PATHS: Final = (
    ("GET", "/info"),
    ("GET", "/sessions"),
    ("POST", "/sessions"),
    ("GET", "/sessions/{session}"),
    ("GET", "/sessions/{session}/login_url"),
    ("PUT", "/sessions/{session}/devices"),
    ("POST", "/sessions/{session}/archive"),
    ("GET", "/sessions/{session}/responses"),
    ("GET", "/sessions/{session}/feedback"),
    ("GET", "/feedback"),
    ("POST", "/content/refresh"),
)
"""The only requests that may leave."""

_guard: ContextVar[Guard | None] = ContextVar("lds_guard", default=None)
"""The guard of the call under way: one pool serves the lablets of many nodes, and each has a guard of its own."""

_T = TypeVar("_T")


def _check() -> None:
    guard = _guard.get()
    if guard is not None:
        guard()


class Connection:
    """Requests to one deployment.

    Args:
        deployment: Its id, for messages and metrics.
        base_url: `https://host[:port][/path]`.
        token: Reads its token.
        timeout_s: Seconds for one call, repetitions included.
        ca_bundle: PEM text of the authorities to trust instead of the system's.
        report: Told what came of each call.
        user_agent: What the LDS's log calls us.

    Raises:
        CertificateInvalid: `ca_bundle` is no PEM text.
    """

    def __init__(
        self,
        deployment: str,
        base_url: str,
        *,
        token: TokenReader,
        timeout_s: float,
        ca_bundle: str | None = None,
        report: Reporter | None = None,
        user_agent: str = "",
    ) -> None:
        self.deployment: Final = deployment
        self._token = token
        self._timeout_s = timeout_s
        self._report = report
        url = URL(base_url)
        self._base = url.raw_path.rstrip("/") + BASE
        self._transport = DirectTransport(
            str(url.origin()),
            ca_bundle=ca_bundle,
            allow=AllowList((method, self._base + path) for method, path in _PATHS),
            guard=_check,
            user_agent=user_agent,
        )

    async def request(
        self,
        call: str,
        method: str,
        path: str,
        *,
        guard: Guard | None,
        repeat: bool = True,
        params: Mapping[str, str] | None = None,
        body: object = None,
        secrets: Iterable[str] = (),
        accept: int = 0,
        timeout_s: float = 0.0,
    ) -> Response:
        """Send a request and return the LDS's answer of 2xx.

        Args:
            call: What the SPI calls it.
            method: `GET`, `PUT`, …
            path: What follows the base.
            guard: Called in the loop step in which the request leaves; raises to stop it.
            repeat: Whether the request may be sent again after it failed in passing.
            params: The query.
            body: Sent as JSON; None for no body.
            secrets: What is sent and must not be quoted in an error.
            accept: A status that is an answer too.
            timeout_s: Seconds for the call, if more than usual.

        Raises:
            OutsideError: The LDS refused, failed or did not answer.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + max(timeout_s, self._timeout_s)
        content = None if body is None else msgspec.json.encode(body)
        reset = _guard.set(guard)
        failures, unsure = 0, False
        try:
            while True:
                try:
                    response = await self._send(call, method, path, params, content, secrets, accept, end)
                except Unavailable as error:
                    failures += 1
                    unsure = unsure or may_have_happened(error)
                    wait_s = delay_s(failures, first_s=REPEAT_FIRST_S, cap_s=REPEAT_MAX_S, dice=random.random())
                    late = loop.time() + wait_s >= end
                    if not repeat or late or failures >= ATTEMPTS_MAX or not _passing(error):
                        raise
                    await asyncio.sleep(wait_s)
                else:
                    self._tell(None)
                    return response
        except OutsideError as error:
            self._tell(error)
            if unsure and isinstance(error, Unavailable) and not may_have_happened(error):
                raise Unavailable(error.message, status=error.status) from error  # but an earlier try may have
            raise
        finally:
            _guard.reset(reset)

    def decode(self, call: str, response: Response, shape: type[_T]) -> _T:
        """Decode a JSON answer.

        Raises:
            Unavailable: The answer does not have the shape: something other than an LDS answered, or half of it.
        """
        try:
            return msgspec.json.decode(response.body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            message = f"{self._what(call)} brought an answer that is not an LDS's: {error}"
            wrong = Unavailable(message, status=response.status)
            self._tell(wrong)
            raise wrong from error

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    def _what(self, call: str) -> str:
        return f"LDS {self.deployment}: {call}"

    def _tell(self, error: OutsideError | None) -> None:
        if self._report is not None:
            self._report(error)

    async def _send(
        self,
        call: str,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        content: bytes | None,
        secrets: Iterable[str],
        accept: int,
        end: float,
    ) -> Response:
        what = self._what(call)
        token = self._read_token(what)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if content is not None:
            headers["Content-Type"] = "application/json"
        now_s = asyncio.get_running_loop().time
        began_s = now_s()
        error: OutsideError | None
        try:
            response = await self._transport.request(
                method,
                self._base + path,
                params=params,
                body=content,
                headers=headers,
                deadline_s=max(0.001, end - began_s),
            )
        except TransportError as cause:
            error = answers.transport_error(what, cause)
            CALLS.count(self.deployment, call, answers.code_of(error), now_s() - began_s)
            raise error from cause
        CALLS.count(self.deployment, call, str(response.status), now_s() - began_s)
        error = answers.error_of(what, response, (token or "", *secrets))
        if error is not None and response.status != accept:
            raise error
        return response

    def _read_token(self, what: str) -> str | None:
        try:
            token = self._token()
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized(f"{what}: the token cannot be read: {error}") from error
        if token is not None and not token.isprintable():
            raise Unauthorized(f"{what}: the token holds what no header may hold, such as a line break")
        return token


def _passing(error: Unavailable) -> bool:
    """Tell whether the same request may well succeed in a moment."""
    client_errors = range(400, 500)
    return error.status not in client_errors and not isinstance(error, DeadlineExceeded | Throttled | Full)
