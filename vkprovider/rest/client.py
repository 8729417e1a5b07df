"""The client of a service: a token, a deadline and, where it is safe, retries with back-off."""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final, TypeVar

import msgspec

from tunnels.base import Response
from vkprovider.platform.backoff import delay_s
from vkprovider.platform.errors import DeadlineExceeded, Forbidden, OutsideError, Throttled, Unauthorized, Unavailable
from vkprovider.rest import dialect as dialects
from vkprovider.rest.dialect import NotDone, Unsent, may_have_happened
from vkprovider.rest.exchange import Exchange
from vkprovider.rest.operations import Operation, OperationRequest
from vkprovider.rest.tokens import Tokens

_HTTP_UNAUTHORIZED: Final = 401
_HTTP_NOT_FOUND: Final = 404
_CLIENT_ERRORS: Final = range(400, 500)

_T = TypeVar("_T")

Reporter = Callable[[OutsideError | None], None]
"""Called with the outcome of each call: None if the service did as asked."""


class Retry(msgspec.Struct, frozen=True):
    """How often and when a request that failed in passing is sent again.

    Attributes:
        attempts_max: Requests in all.
        first_s: The bound of the first delay.
        cap_s: The greatest bound.
    """

    attempts_max: int = 1
    first_s: float = 0.2
    cap_s: float = 2.0


ONCE: Final = Retry()


def own_timeout_s(operation: Operation) -> float:
    """Return the operation's own timeout."""
    return operation.timeout_s


class ServiceClient:
    """Requests to one service.

    Args:
        exchange: Carries the requests.
        tokens: The source of its tokens.
        timeout_s: The seconds for a request of an operation, retries included.
        retry: When to send a request again.
        slow_max: Slow requests at once, fewer than connections, so that they cannot keep those from other requests;
            a further one waits before its time begins. None for no limit.
        report: Called with the outcome of each call.
    """

    def __init__(
        self,
        exchange: Exchange,
        tokens: Tokens,
        *,
        timeout_s: Callable[[Operation], float] = own_timeout_s,
        retry: Retry = ONCE,
        slow_max: int | None = None,
        report: Reporter | None = None,
    ) -> None:
        self._exchange = exchange
        self._tokens = tokens
        self._timeout_s = timeout_s
        self._retry = retry
        self._slow = None if slow_max is None else asyncio.Semaphore(slow_max)
        self._report = report

    async def send(self, request: OperationRequest, *, repeat: bool = True) -> Response:
        """Send a request and return the answer of 2xx.

        Args:
            request: The request.
            repeat: Whether it may be sent again after it failed in passing.

        Raises:
            OutsideError: The service refused, failed or did not answer.
        """
        with self._reported():
            return await self._perform(request, repeat=repeat)

    async def fetch(
        self, request: OperationRequest, shape: type[_T], *, repeat: bool = True, missing: _T | None = None
    ) -> _T:
        """Send a request and decode the answer.

        Args:
            request: The request.
            shape: The type of the answer.
            repeat: As in `send`.
            missing: What a 404 means, where it is an answer and not an error.

        Raises:
            OutsideError: As in `send`; `Unavailable` if the answer does not have the shape.
        """
        with self._reported():
            response = await self._perform(request, repeat=repeat, accept_missing=missing is not None)
            if missing is not None and response.status == _HTTP_NOT_FOUND:
                return missing
            return dialects.decode(self._exchange.dialect, request, response, shape)

    async def check_login(self) -> None:
        """Try credentials that have changed since the login; see `Tokens.check`.

        Raises:
            OutsideError: The login with them failed, or there are none.
        """
        await self._tokens.check()

    def user(self) -> str:
        """Return the user of the last login; "" if there was none here."""
        return self._tokens.user()

    def server_time(self) -> int:
        """Return the service's time by its last answer, in Unix seconds, never ahead of it; 0 while it is unknown."""
        return self._exchange.clock.at(asyncio.get_running_loop().time())

    async def close(self) -> None:
        """End a login under way and close the connections."""
        self._tokens.close()
        await self._exchange.close()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except OutsideError as error:
            if self._report is not None:
                self._report(error)
            raise
        if self._report is not None:
            self._report(None)

    async def _perform(self, request: OperationRequest, *, repeat: bool, accept_missing: bool = False) -> Response:
        async with self._slow if self._slow is not None and request.operation.slow else nullcontext():
            now_s = asyncio.get_running_loop().time
            end_s = now_s() + self._timeout_s(request.operation)
            failures, unsure = 0, False
            while True:
                try:
                    return await self._attempt(request, end_s, accept_missing=accept_missing)
                except Unavailable as error:
                    failures += 1
                    unsure = unsure or may_have_happened(error)
                    wait_s = delay_s(
                        failures, first_s=self._retry.first_s, cap_s=self._retry.cap_s, dice=random.random()
                    )
                    late = now_s() + wait_s >= end_s
                    if not repeat or late or failures >= self._retry.attempts_max or not _passing(error):
                        if unsure and not may_have_happened(error):  # but an earlier attempt may have
                            raise Unavailable(error.message, status=error.status) from error
                        raise
                    await asyncio.sleep(wait_s)
                except (Unauthorized, Forbidden) as error:
                    if unsure:  # this attempt did nothing, but an earlier one may have
                        raise Unavailable(error.message, status=error.status) from error
                    raise

    async def _attempt(self, request: OperationRequest, end_s: float, *, accept_missing: bool) -> Response:
        token = None if request.operation.anonymous else await self._tokens.current(end_s)
        response = await self._exchange.send(request, token, end_s)
        if response.status == _HTTP_UNAUTHORIZED and token is not None:
            renewed = await self._tokens.renewed(token, end_s)
            if renewed is not None:
                response = await self._exchange.send(request, renewed, end_s)
                if response.status == _HTTP_UNAUTHORIZED:
                    raise self._tokens.refused(renewed)
        if accept_missing and response.status == _HTTP_NOT_FOUND:
            return response
        secrets = (token or "", *request.secrets)
        if (error := dialects.error_of(self._exchange.dialect, request, response, secrets)) is not None:
            raise error
        return response


def _passing(error: Unavailable) -> bool:
    """Return whether the same request may well succeed in a moment."""
    if isinstance(error, NotDone) and not isinstance(error, Unsent):
        return False  # the service refused it as long as it is full
    return error.status not in _CLIENT_ERRORS and not isinstance(error, DeadlineExceeded | Throttled)
