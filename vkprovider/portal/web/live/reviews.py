"""Whether somebody still may: asked once a minute; and what is open of a session that has ended.

A right that is withdrawn ends what is open within a minute. While the API server cannot be asked, what is open goes on:
nobody sees that but the metrics. A fault of the replica itself is told in its log as well.
"""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from vkprovider.platform.errors import Forbidden, OutsideError, Unauthorized
from vkprovider.platform.http.access import Right
from vkprovider.platform.http.answers import Refused
from vkprovider.platform.kube.resources import Resource, kind
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.web.visitor import Visitor
from vkprovider.portal.web.visitors import AsVisitor

_log: Final = structlog.get_logger(__name__)


class _Session(NamedTuple):
    """A session of which something is open.

    Attributes:
        holders: For each thing that is open, the events that are set when it is to end.
        timer: Ends them all at once.
    """

    holders: set[tuple[asyncio.Event, ...]]
    timer: asyncio.TimerHandle


class OpenLogins:
    """The sessions of which something is open at this replica."""

    def __init__(self, wall: Callable[[], float]) -> None:
        """Begin with nothing open; `wall` returns Unix seconds."""
        self._wall = wall
        self._open: dict[str, _Session] = {}

    def __len__(self) -> int:
        """Count them."""
        return len(self._open)

    @contextmanager
    def during(self, visitor: Visitor, *events: asyncio.Event) -> Iterator[None]:
        """Have events be set when the session of a visitor ends; one that an ingress names has none."""
        if visitor.ends_at is None:
            yield
            return
        session = self._open.get(visitor.session) or self._begin(visitor.session, visitor.ends_at)
        session.holders.add(events)
        try:
            yield
        finally:
            session.holders.discard(events)
            if not session.holders:
                session.timer.cancel()
                if self._open.get(visitor.session) is session:
                    del self._open[visitor.session]

    def end(self, session: str) -> None:
        """End what is open of a session."""
        ended = self._open.pop(session, None)
        if ended is None:
            return
        ended.timer.cancel()
        for events in ended.holders:
            for event in events:
                event.set()

    def _begin(self, session: str, ends_at: float) -> _Session:
        left_s = max(0.0, ends_at - self._wall())
        timer = asyncio.get_running_loop().call_later(left_s, self.end, session)
        self._open[session] = begun = _Session(set(), timer)
        return begun


_REFUSALS: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_ASK_S: Final = 5.0


class ReviewTimes(msgspec.Struct, frozen=True):
    """The times of reviews, in seconds.

    Attributes:
        first_s: The pause before the first one: what let somebody in may be an answer that was kept for ten seconds.
        every_s: The pause between two; a review and what it ends take less than what is left of a minute.
        again_s: The pause after one that nobody could answer.
    """

    first_s: float = 45.0
    every_s: float = 57.0
    again_s: float = 15.0


_TIMES: Final = ReviewTimes()
Ask = Callable[[Visitor, Right], Awaitable[bool]]


class _Holder(NamedTuple):
    """Something open, by the events that are set when it is to end."""

    over: asyncio.Event
    wake: asyncio.Event | None


class _Watched(NamedTuple):
    """A right of a caller that something open needs.

    Attributes:
        holders: What is open.
        task: Asks.
    """

    holders: set[_Holder]
    task: asyncio.Task[None]


class Reviews:
    """Asks again for the rights of callers.

    Attributes:
        answers_total: Reviews by their answer: allowed, refused, or unknown.
        sessions: Ends what is open of a session with it.
    """

    def __init__(self, ask: Ask, times: ReviewTimes = _TIMES, wall: Callable[[], float] = time.time) -> None:
        """Begin with nothing open.

        Args:
            ask: Returns whether a visitor still has a right; raises `Refused` or `OutsideError` if that is unknown.
            times: The pauses.
            wall: Returns Unix seconds.
        """
        self.answers_total: Counter[str] = Counter()
        self.sessions = OpenLogins(wall)
        self._ask = ask
        self._times = times
        self._watched: dict[bytes, _Watched] = {}
        self._due: dict[bytes, float] = {}

    @asynccontextmanager
    async def holding(
        self, visitor: Visitor, right: Right, wake: asyncio.Event | None = None
    ) -> AsyncIterator[asyncio.Event]:
        """Yield an event that is set, and with it `wake`, when a visitor has a right no more, or their session ends."""
        key, holder = _key(visitor, right), _Holder(asyncio.Event(), wake)
        watched = self._watched.get(key)
        if watched is None:
            holders: set[_Holder] = set()
            task = asyncio.create_task(self._watch(key, visitor, right, holders), name="review")
            watched = self._watched[key] = _Watched(holders, task)
        watched.holders.add(holder)
        try:
            with self.sessions.during(visitor, *filter(None, holder)):
                yield holder.over
        finally:
            watched.holders.discard(holder)
            if not watched.holders:
                if self._watched.get(key) is watched:
                    del self._watched[key]
                watched.task.cancel()
                await asyncio.gather(watched.task, return_exceptions=True)

    async def _watch(self, key: bytes, visitor: Visitor, right: Right, holders: set[_Holder]) -> None:
        """Ask until the right is withdrawn."""
        loop = asyncio.get_running_loop()
        # Who comes back within the minute waits for the review that was due anyway.
        for past in [each for each, at in self._due.items() if at <= loop.time()]:
            del self._due[past]
        due = self._due.setdefault(key, loop.time() + self._times.first_s)
        while True:
            await asyncio.sleep(due - loop.time())
            answer = await self.may(visitor, right)
            self.answers_total["unknown" if answer is None else "allowed" if answer else "refused"] += 1
            if answer is False:
                self._due.pop(key, None)
                del self._watched[key]
                for holder in holders:
                    for event in filter(None, holder):
                        event.set()
                return
            due = loop.time() + (self._times.again_s if answer is None else self._times.every_s)
            self._due[key] = due

    async def may(self, visitor: Visitor, right: Right) -> bool | None:
        """Return whether a visitor has a right now; None if nobody knows."""
        try:
            return await self._ask(visitor, right)
        except Refused as refusal:
            return False if refusal.status_code in _REFUSALS else None
        except OutsideError:
            return None
        except Exception:  # noqa: BLE001 (a fault of this replica must not end the reviews, and leave all open for good)
            _log.exception("a review fails", user=visitor.known.of_cluster.username)
            return None


class _Answer(msgspec.Struct, frozen=True):
    allowed: bool = False


class _SelfReview(msgspec.Struct, frozen=True):
    status: _Answer = _Answer()


_SELF_REVIEWS: Final = kind("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews", _SelfReview)


class Asking:
    """Asks the API server whether a visitor has a right: with the visitor's token, by one request for both."""

    def __init__(self, as_visitor: AsVisitor, callers: PortalCallers, *, own_tokens: bool) -> None:
        """Create it.

        Args:
            as_visitor: Asks in a visitor's name.
            callers: Asks about a visitor.
            own_tokens: Whether the API server takes the tokens of visitors; not if they are meant for the portal alone.
        """
        self._as_visitor = as_visitor
        self._callers = callers
        self._own_tokens = own_tokens

    async def ask(self, visitor: Visitor, right: Right) -> bool:
        """Return whether a visitor still has a right.

        Raises:
            Refused: 401: the token is not known any more; 503: the API server cannot be asked.
            OutsideError: It cannot be asked.
        """
        if visitor.token and self._own_tokens:
            body: dict[str, Any] = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": right.attributes(),
            }
            try:
                async with self._as_visitor.client(visitor.token) as kube:
                    return (await Resource(kube, _SELF_REVIEWS).create(body, timeout_s=_ASK_S)).status.allowed
            except Unauthorized:
                return False
            except Forbidden:
                pass  # some clusters let nobody ask about themselves
        known = await self._callers.of_session(visitor.token) if visitor.token else visitor.known
        return await self._callers.may(known, right)


def _key(visitor: Visitor, right: Right) -> bytes:
    asked = msgspec.json.encode([visitor.known.of_cluster.username, visitor.token, right.attributes()])
    return hashlib.sha256(asked).digest()
