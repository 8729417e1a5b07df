"""Authentication and authorization by the cluster: TokenReview and SubjectAccessReview, as in stock components.

The API server's answers are cached for a few seconds, so that a dashboard does not ask it with every request; a
revoked right therefore still counts for that long. Concurrent requests that need the same answer share one review.
Reviews have lanes of their own: callers with made-up tokens can use up the lane of tokens, and nothing else of the
provider; tokens out of sealed sessions have another, and the rights of those whom the cluster knows a third.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from aiohttp import web

from vkprovider.platform.errors import OutsideError
from vkprovider.platform.http.answers import (
    ApiServerUnavailable,
    NotAllowed,
    Refused,
    TokenInvalid,
    TokenMissing,
    TooManyReviews,
    bearer,
)
from vkprovider.platform.kube.access import user_may, user_of
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.flow import TokenBucket
from vkprovider.platform.rights import Right, User, refusal

REMEMBER_S: Final = 10.0
REMEMBER_REFUSED_S: Final = 3.0
REMEMBER_UNKNOWN_S: Final = 30.0
"""How long a token that the cluster does not know is remembered: it will hardly be known soon."""
ENTRIES_MAX: Final = 2000
REVIEWS_AT_ONCE: Final = 4
REVIEWS_PER_S: Final = 20.0
REVIEWS_BURST: Final = 40.0
"""The limits of each lane, unless a program sets others."""
_ASK_S: Final = 5.0
_TOKEN_CHARS_MAX: Final = 16_384

V = TypeVar("V")


class _Memory(Generic[V]):
    """A cache of answers with a lifetime; calls in flight are shared."""

    def __init__(self, now: Callable[[], float], entries_max: int) -> None:
        self._now = now
        self._entries_max = entries_max
        self._entries: OrderedDict[bytes, tuple[float, V]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[V]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    async def get(self, key: bytes, ask: Callable[[], Coroutine[Any, Any, V]], remember_s: Callable[[V], float]) -> V:
        """Return the cached answer, or ask."""
        entry = self._entries.get(key)
        if entry is not None and self._now() < entry[0]:
            return entry[1]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(ask())
            task.add_done_callback(lambda done: self._asked(key, done, remember_s))
        return await asyncio.shield(task)

    def _asked(self, key: bytes, task: asyncio.Task[V], remember_s: Callable[[V], float]) -> None:
        self._asking.pop(key, None)
        if task.cancelled() or task.exception() is not None:
            return
        self._entries[key] = self._now() + remember_s(task.result()), task.result()
        self._entries.move_to_end(key)
        while len(self._entries) > self._entries_max:
            self._entries.popitem(last=False)


class Pace(NamedTuple):
    """The limits of a lane of reviews.

    Attributes:
        at_once: How many run at once.
        per_s, burst: How many there are in a second in the long run, and how many may come together.
    """

    at_once: int = REVIEWS_AT_ONCE
    per_s: float = REVIEWS_PER_S
    burst: float = REVIEWS_BURST


_USUAL: Final = Pace()


class _Lane:
    """Limits reviews: how many run at once, and how many there are in a second."""

    def __init__(self, pace: Pace, now: Callable[[], float]) -> None:
        self._at_once = asyncio.Semaphore(pace.at_once)
        self._bucket = TokenBucket(pace.per_s, pace.burst, now=now)

    async def run(self, review: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Run a review.

        Raises:
            Refused: 429: there are too many.
        """
        if not self._bucket.take():
            raise TooManyReviews("too many questions at once about callers and their rights; try again")
        async with self._at_once:
            return await review()


class AccessControl:
    """Asks the API server for the user of a token and for the user's rights."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        audiences: Sequence[str] = (),
        pace: Pace = _USUAL,
        now: Callable[[], float] = time.monotonic,
        entries_max: int = ENTRIES_MAX,
    ) -> None:
        """Create it with empty caches.

        Args:
            kube: The client of the API server.
            audiences: Of which a token must have one; none means the API server's own.
            pace: The limits of each lane.
            now: A clock.
            entries_max: How many answers each cache holds.
        """
        self._kube = kube
        self._audiences = list(audiences)
        self._tokens = _Lane(pace, now)
        self._sessions = _Lane(pace, now)
        self._reviews = _Lane(pace, now)
        self._users: _Memory[User | None] = _Memory(now, entries_max)
        self._rights: _Memory[bool] = _Memory(now, entries_max)

    async def user(self, request: web.Request) -> User:
        """Return the user of the request's token.

        Raises:
            Refused: 401: the cluster does not know the token; 503: it cannot be asked.
        """
        return await self.user_of(bearer(request))

    async def user_of(self, token: str, *, of_session: bool = False) -> User:
        """Return the user of a token, which may be empty.

        Args:
            token: What somebody shows.
            of_session: Whether it comes out of what this program has sealed, so that the cluster knew it once. Such
                tokens have a lane of their own, which those who make tokens up cannot use.

        Raises:
            Refused: 401: the cluster does not know the token; 503: it cannot be asked.
        """
        if not token:
            raise TokenMissing(
                "send a token of the cluster as `Authorization: Bearer …`, such as `kubectl create token` gives"
            )
        if len(token) > _TOKEN_CHARS_MAX:
            raise TokenInvalid("that is too long for a token")
        lane = self._sessions if of_session else self._tokens
        key = hashlib.sha256(token.encode()).digest()
        try:
            user = await self._users.get(key, lambda: self._review_token(token, lane), _remember_user_s)
        except OutsideError as error:
            raise _cannot_ask("who you are", error) from None
        if user is None:
            raise TokenInvalid(self._unknown_token())
        return user

    def _unknown_token(self) -> str:
        text = "the cluster does not know the token, or it has expired"
        if self._audiences:
            text += f"; it must be meant for {' or '.join(self._audiences)} (`kubectl create token --audience`)"
        return text

    async def require(self, request: web.Request, right: Right) -> User:
        """Refuse a request unless the cluster grants its sender the right.

        Raises:
            Refused: 401, 403, or 503 if the API server cannot be asked.
        """
        user = await self.user(request)
        await self.check(user, right)
        return user

    async def check(self, user: User, right: Right) -> None:
        """Refuse a user who lacks a right.

        Raises:
            Refused: 403, or 503 if the API server cannot be asked.
        """
        if not await self.may(user, right):
            raise NotAllowed(refusal(user, right))

    async def may(self, user: User, right: Right) -> bool:
        """Return whether a user has a right.

        Raises:
            Refused: 503: the API server cannot be asked.
        """
        attributes = right.attributes()
        key = hashlib.sha256(msgspec.json.encode([user, attributes], order="sorted")).digest()
        try:
            return await self._rights.get(key, lambda: self._review_access(user, attributes), _remember_s)
        except OutsideError as error:
            raise _cannot_ask("what you may do", error) from None

    async def _review_token(self, token: str, lane: _Lane) -> User | None:
        return await lane.run(lambda: user_of(self._kube, token, self._audiences, _ASK_S))

    async def _review_access(self, user: User, attributes: Mapping[str, Any]) -> bool:
        return await self._reviews.run(lambda: user_may(self._kube, user, attributes, timeout_s=_ASK_S))


def _remember_user_s(user: User | None) -> float:
    return REMEMBER_S if user is not None else REMEMBER_UNKNOWN_S


def _remember_s(answer: object) -> float:
    return REMEMBER_S if answer else REMEMBER_REFUSED_S


def _cannot_ask(what: str, error: OutsideError) -> Refused:
    return ApiServerUnavailable(f"the API server cannot be asked {what}: {error.message}")
