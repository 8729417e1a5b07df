"""Bearer tokens: fixed by a setting or a file, or got by a login that all requests share."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from vkprovider.platform.backoff import delay_s
from vkprovider.platform.errors import DeadlineExceeded, OutsideError, Throttled, Unauthorized, Unavailable

_HTTP_UNAUTHORIZED: Final = 401

C = TypeVar("C")

TokenReader = Callable[[], Awaitable[str | None]]
"""Reads a service's token; called before every request, so that a changed one needs no restart."""


class Tokens(Protocol):
    """The source of a service's tokens."""

    async def current(self, end_s: float) -> str | None:
        """Return the token for the next request; None if the service wants none.

        Args:
            end_s: The deadline, by the event loop's clock.

        Raises:
            OutsideError: There is no usable token.
        """

    async def renewed(self, stale: str, end_s: float) -> str | None:
        """Return another token after the service answered 401 to `stale`; None if there is not another.

        Raises:
            OutsideError: The login failed.
        """

    def refused(self, token: str) -> OutsideError:
        """Note that the service refused a token that `renewed` has just returned; return the error."""

    def user(self) -> str:
        """Return the user whose token the last login got; "" if there was none here."""

    async def check(self) -> None:
        """Try credentials that have changed since the login, while its token still serves.

        Raises:
            OutsideError: The login with them failed, or there are none; requests go on with the present token.
        """

    def close(self) -> None:
        """Cancel a login under way."""


class GivenToken:
    """A token that is managed elsewhere.

    Args:
        name: The service, for messages.
        read: Reads the token.
    """

    def __init__(self, name: str, read: TokenReader) -> None:
        self._name = name
        self._read = read

    async def current(self, end_s: float) -> str | None:  # noqa: ARG002 (a file answers at once)
        """Read the token.

        Raises:
            Unauthorized: It cannot be read, or does not fit into a header.
        """
        try:
            token = await self._read()
        except (OSError, UnicodeDecodeError) as error:
            raise Unauthorized(f"{self._name}: the token cannot be read: {error}") from error
        if token is not None and not token.isprintable():
            raise Unauthorized(f"{self._name}: the token holds what no header may hold, such as a line break")
        return token

    async def renewed(self, stale: str, end_s: float) -> str | None:  # noqa: ARG002 (there is not another)
        """Return None: the 401 is the answer."""
        return None

    def refused(self, token: str) -> OutsideError:  # noqa: ARG002 (never called: nothing is renewed)
        """Return the error for a refused token."""
        return Unauthorized(f"{self._name} refused the token", status=_HTTP_UNAUTHORIZED)

    def user(self) -> str:
        """Return "": whose token it is, only the service knows."""
        return ""

    async def check(self) -> None:
        """Do nothing: the next request reads the token again."""

    def close(self) -> None:
        """Do nothing."""


class Holds(msgspec.Struct, frozen=True):
    """How long a failed login is not tried again with the same credentials.

    Attributes:
        refused_s: After the first refusal; each further one doubles it.
        refused_s_max: The longest time after a refusal.
        failed_s: After a login that failed otherwise; a throttled one waits as long as the service asks.
    """

    refused_s: float = 5.0
    refused_s_max: float = 60.0
    failed_s: float = 1.0


HOLDS: Final = Holds()


class _Hold(msgspec.Struct, Generic[C], frozen=True):
    """A failed login that is not tried again before `until_s` with the same credentials.

    Attributes:
        refusals: How often the service refused these credentials in a row.
    """

    credentials: C
    until_s: float
    error: OutsideError
    refusals: int = 0


class SharedLogin(Generic[C]):
    """A token got by logging in: one login at a time, however many requests wait for it.

    A service may limit the rate of logins, hence `Holds`. Changed credentials are tried at once.

    Args:
        name: The service, for messages.
        credentials: Read before every login, so that a changed password needs no restart.
        log_in: Logs in and returns the token; raises `Unauthorized` if the credentials are wrong.
        token: Used until the service refuses it.
        holds: See `Holds`.
        user_of: Returns the user's name in credentials; None if they have none.
    """

    def __init__(
        self,
        name: str,
        credentials: Callable[[], Awaitable[C]],
        log_in: Callable[[C], Awaitable[str]],
        *,
        token: str | None = None,
        holds: Holds = HOLDS,
        user_of: Callable[[C], str] | None = None,
    ) -> None:
        self._name = name
        self._credentials = credentials
        self._log_in = log_in
        self._token = token
        self._holds = holds
        self._user_of = user_of
        self._task: asyncio.Task[str] | None = None
        self._hold: _Hold[C] | None = None
        self._trial: _Hold[C] | None = None
        self._used: C | None = None

    async def current(self, end_s: float) -> str:
        """Return the token, after a login if there is none.

        Raises:
            OutsideError: The login failed, or failed a moment ago.
        """
        return self._token or await self._login(end_s)

    async def renewed(self, stale: str, end_s: float) -> str:
        """Return a token other than `stale`.

        Raises:
            OutsideError: As in `current`.
        """
        if self._token is not None and self._token != stale:
            return self._token
        return await self._login(end_s)

    def refused(self, token: str) -> OutsideError:
        """Hold logins back: the service refused even a new token."""
        error = Unauthorized(f"{self._name} refused a token that it had just issued", status=_HTTP_UNAUTHORIZED)
        if self._token == token:
            self._token = None
            if self._used is not None:
                until_s = asyncio.get_running_loop().time() + self._holds.refused_s
                self._hold = _Hold(self._used, until_s, error)
        return error

    def user(self) -> str:
        """Return the user of the last login that succeeded; "" before the first one."""
        return self._user_of(self._used) if self._used is not None and self._user_of is not None else ""

    async def check(self) -> None:
        """Try credentials that have changed since the login, while its token still serves; see `Tokens.check`.

        A failure here holds no other login back: once the service refuses the token, they are tried again at once.
        """
        if self._token is None or self._task is not None:
            return  # the next request logs in, or a login is under way
        credentials = await self._credentials()
        if credentials == self._used:
            self._trial = None
            return
        _raise_held(self._trial, credentials)
        try:
            token = await self._log_in(credentials)
        except OutsideError as error:
            self._trial = self._held(self._trial, credentials, error)
            raise
        self._accepted(credentials, token)

    def close(self) -> None:
        """Cancel a login under way; those who wait for it get `Unavailable`."""
        if self._task is not None:
            self._task.cancel()

    async def _login(self, end_s: float) -> str:
        """Join the login under way, or start one."""
        if self._task is None:
            self._task = asyncio.create_task(self._renew(), name=f"login {self._name}")
            self._task.add_done_callback(self._done)
        task = self._task
        try:
            async with asyncio.timeout_at(end_s):
                return await asyncio.shield(task)
        except TimeoutError as error:
            raise DeadlineExceeded(f"{self._name}: no answer to the login in time") from error
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if task.cancelled() and me is not None and not me.cancelling():
                raise Unavailable(f"{self._name}: the connection is closed") from None
            raise

    def _done(self, task: asyncio.Task[str]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # mark as retrieved: every waiter may be gone

    async def _renew(self) -> str:
        self._token = None
        credentials = await self._credentials()
        _raise_held(self._hold, credentials)
        try:
            token = await self._log_in(credentials)
        except OutsideError as error:
            self._hold = self._held(self._hold, credentials, error)
            raise
        self._accepted(credentials, token)
        return token

    def _accepted(self, credentials: C, token: str) -> None:
        self._hold, self._trial, self._used, self._token = None, None, credentials, token

    def _held(self, before: _Hold[C] | None, credentials: C, error: OutsideError) -> _Hold[C]:
        """Return the pause after a failed login; each further refusal of the same credentials lengthens it."""
        refusals = before.refusals if before is not None and before.credentials == credentials else 0
        if isinstance(error, Throttled):
            hold_s = error.after_s
        elif isinstance(error, Unauthorized):
            refusals += 1
            hold_s = delay_s(refusals, first_s=self._holds.refused_s, cap_s=self._holds.refused_s_max)
        else:
            hold_s = self._holds.failed_s
        return _Hold(credentials, asyncio.get_running_loop().time() + hold_s, error, refusals)


def _raise_held(hold: _Hold[C] | None, credentials: C) -> None:
    """Raise the error of a login with these credentials that is not to be repeated yet.

    Raises:
        OutsideError: There is one.
    """
    if hold is not None and hold.credentials == credentials and asyncio.get_running_loop().time() < hold.until_s:
        raise hold.error.with_traceback(None)
