"""One session per worker: login and deadlines.

The token is cached and renewed once when CML answers 401, by one login however many requests wait for it. CML limits
the rate of logins, so a refused login is not tried again for `REFUSED_HOLD_S` unless the credentials changed, and each
time for twice as long.
"""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Final, TypeVar

import msgspec

from tunnels.base import Response, Transport
from tunnels.errors import TransportError
from vkprovider.api.errors import DeadlineExceeded, OutsideError, Throttled, Unauthorized, Unavailable
from vkprovider.cml import answers
from vkprovider.cml.allow import BASE
from vkprovider.cml.calls import CALLS, code_of
from vkprovider.cml.spi import Credentials, CredentialsReader
from vkprovider.cml.wire import CmlSystemInformation
from vkprovider.domain.backoff import delay_s

DEADLINE_S: Final[Mapping[str, float]] = {
    "probe": 3.0,  # list of lab ids, handshake: what tells whether the worker is alive
    "login": 10.0,
    "read": 10.0,
    "observe": 15.0,  # all nodes of a worker
    "action": 30.0,  # start, stop, wipe, delete: CML answers when it has accepted, a busy one late
    "import": 60.0,
    "extract": 120.0,  # CML logs in to the device
}
"""Seconds per kind of request, login and waiting for a connection included."""
ACTS_MAX: Final = 10
"""Slow requests at once, fewer than connections: they must not keep those from them that tell whether CML is alive.
Further ones wait before their time begins."""
_ACTS: Final = frozenset({"action", "import", "extract"})

REFUSED_HOLD_S: Final = 5.0
REFUSED_HOLD_S_MAX: Final = 60.0
FAILED_HOLD_S: Final = 1.0
_HTTP_UNAUTHORIZED: Final = 401

_T = TypeVar("_T")


class _Hold(msgspec.Struct, frozen=True):
    """A failed login that is not tried again before `until` with the same credentials."""

    credentials: Credentials
    until: float
    error: OutsideError


class CmlSession:
    """A logged-in CML user on one worker.

    Args:
        transport: Carries the requests; the session owns and closes it.
        credentials: Read before every login.
        address: The worker's URL, for messages.
        token: A token from elsewhere, used until CML refuses it.
    """

    def __init__(
        self, transport: Transport, credentials: CredentialsReader, *, address: str, token: str | None = None
    ) -> None:
        self.address: Final = address
        self._transport = transport
        self._credentials = credentials
        self._token = token
        self._login: asyncio.Task[str] | None = None
        self._hold: _Hold | None = None
        self._refusals = 0
        self._used: Credentials | None = None
        self._acts = asyncio.Semaphore(ACTS_MAX)

    async def request(
        self,
        kind: str,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Response:
        """Send a request with the token and return CML's answer of 2xx.

        Args:
            kind: A key of `DEADLINE_S`.
            method: `GET`, `PUT`, …
            path: What follows `/api/v0`: `/labs`.
            params: The query.
            body: The body.

        Raises:
            OutsideError: CML refused, failed or did not answer; `NotFound` only if CML itself said so.
        """
        async with self._acts if kind in _ACTS else nullcontext():
            end = asyncio.get_running_loop().time() + DEADLINE_S[kind]
            token = self._token or await self._renew(None, end)
            response = await self._send(method, path, token, params, body, end)
            if response.status == _HTTP_UNAUTHORIZED:
                token = await self._renew(token, end)
                response = await self._send(method, path, token, params, body, end)
                if response.status == _HTTP_UNAUTHORIZED:
                    raise self._token_refused(token)
        if (error := answers.error_of(self.address, method, path, response)) is not None:
            raise error
        return response

    async def fetch(
        self, kind: str, path: str, shape: type[_T], *, method: str = "GET", params: Mapping[str, str] | None = None
    ) -> _T:
        """Send a request without body and decode CML's answer.

        Raises:
            OutsideError: As in `request`; `Unavailable` if the answer does not have the shape.
        """
        response = await self.request(kind, method, path, params=params)
        return self.decode(f"{method} {path}", response, shape)

    async def system_information(self) -> CmlSystemInformation:
        """Shake hands without a login: version and readiness.

        Raises:
            OutsideError: As in `request`.
        """
        end = asyncio.get_running_loop().time() + DEADLINE_S["probe"]
        response = await self._send("GET", "/system_information", None, None, None, end)
        if (error := answers.error_of(self.address, "GET", "/system_information", response)) is not None:
            raise error
        return self.decode("GET /system_information", response, CmlSystemInformation)

    def decode(self, what: str, response: Response, shape: type[_T]) -> _T:
        """Decode a JSON answer.

        Raises:
            Unavailable: The answer does not have the shape: something other than CML answered, or half of it.
        """
        try:
            return msgspec.json.decode(response.body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            message = f"{self.address}: {what} brought an answer that is not CML's: {error}"
            raise Unavailable(message, status=response.status) from error

    async def close(self) -> None:
        """End a login under way and close the transport."""
        if self._login is not None:
            self._login.cancel()
        await self._transport.close()

    async def _send(
        self,
        method: str,
        path: str,
        token: str | None,
        params: Mapping[str, str] | None,
        body: bytes | None,
        end: float,
    ) -> Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if path == "/authenticate":
            headers["Content-Type"] = "application/json"
        now_s = asyncio.get_running_loop().time
        began_s = now_s()
        try:
            response = await self._transport.request(
                method, BASE + path, params=params, body=body, headers=headers, deadline_s=max(0.001, end - began_s)
            )
        except TransportError as error:
            CALLS.count(method, path, code_of(error), now_s() - began_s)
            raise answers.transport_error(self.address, method, path, error) from error
        CALLS.count(method, path, str(response.status), now_s() - began_s)
        return response

    async def _renew(self, stale: str | None, end: float) -> str:
        """Give a token other than `stale`; all who wait share one login."""
        if self._token is not None and self._token != stale:
            return self._token
        if self._login is None:
            self._login = asyncio.create_task(self._log_in(), name=f"cml-login {self.address}")
            self._login.add_done_callback(self._logged_in)
        login = self._login
        try:
            async with asyncio.timeout_at(end):
                return await asyncio.shield(login)
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self.address}: no answer to the login in time") from error
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if login.cancelled() and me is not None and not me.cancelling():
                raise Unavailable(f"{self.address}: the session is closed") from None
            raise

    def _logged_in(self, task: asyncio.Task[str]) -> None:
        self._login = None
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may have

    async def _log_in(self) -> str:
        self._token = None
        credentials = await self._credentials()
        loop = asyncio.get_running_loop()
        hold = self._hold
        if hold is not None and hold.credentials == credentials and loop.time() < hold.until:
            raise hold.error.with_traceback(None)
        if hold is None or hold.credentials != credentials:
            self._refusals = 0
        body = msgspec.json.encode({"username": credentials.username, "password": credentials.password})
        end = loop.time() + DEADLINE_S["login"]
        response = await self._send("POST", "/authenticate", None, None, body, end)
        try:
            token = answers.token_of(self.address, credentials.username, response)
        except OutsideError as error:
            hold_s = FAILED_HOLD_S
            if isinstance(error, Unauthorized):
                self._refusals += 1
                hold_s = delay_s(self._refusals, first_s=REFUSED_HOLD_S, cap_s=REFUSED_HOLD_S_MAX)
            elif isinstance(error, Throttled):
                hold_s = error.after_s
            self._hold = _Hold(credentials, loop.time() + hold_s, error)
            raise
        self._hold, self._used, self._token = None, credentials, token
        return token

    def _token_refused(self, token: str) -> Unauthorized:
        """Hold logins back: CML refused even a new token."""
        error = Unauthorized(f"{self.address} refused a token that it had just given out", status=_HTTP_UNAUTHORIZED)
        if self._token == token:
            self._token = None
            if self._used is not None:
                self._hold = _Hold(self._used, asyncio.get_running_loop().time() + REFUSED_HOLD_S, error)
        return error
