"""Whether a visitor still may: asked once a minute; and what is open of a session that has ended."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Final, NamedTuple

import msgspec

from vkprovider.platform.errors import Forbidden, Unauthorized
from vkprovider.platform.http.open import Reviews, ReviewTimes, answer_of
from vkprovider.platform.kube.access import may
from vkprovider.platform.rights import Right
from vkprovider.portal.api.callers import PortalCallers
from vkprovider.portal.web.visitors import AsVisitor, Visitor


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


_ASK_S: Final = 5.0
_TIMES: Final = ReviewTimes()
AskVisitor = Callable[[Visitor, Right], Awaitable[bool]]
"""Returns whether a visitor still has a right; raises `Refused` or `OutsideError` if that is unknown."""


class VisitorReviews:
    """Asks again for the rights of visitors.

    Attributes:
        answers_total: Reviews by their answer: allowed, refused, or unknown.
        sessions: Ends what is open of a session with it.
    """

    def __init__(self, ask: AskVisitor, times: ReviewTimes = _TIMES, wall: Callable[[], float] = time.time) -> None:
        """Begin with nothing open; `wall` returns Unix seconds."""
        self._reviews = Reviews(times)
        self._ask = ask
        self.answers_total = self._reviews.answers_total
        self.sessions = OpenLogins(wall)

    @asynccontextmanager
    async def holding(
        self, visitor: Visitor, right: Right, wake: asyncio.Event | None = None
    ) -> AsyncIterator[asyncio.Event]:
        """Yield an event that is set, and with it `wake`, when a visitor has a right no more, or their session ends."""
        over = asyncio.Event()
        events = (over, wake) if wake is not None else (over,)
        user, ask = visitor.known.of_cluster.username, partial(self._ask, visitor, right)
        async with self._reviews.holding(user, _key(visitor, right), ask, *events):
            with self.sessions.during(visitor, *events):
                yield over

    async def may(self, visitor: Visitor, right: Right) -> bool | None:
        """Return whether a visitor has a right now; None if nobody knows."""
        return await answer_of(visitor.known.of_cluster.username, partial(self._ask, visitor, right))


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
            try:
                async with self._as_visitor.client(visitor.token) as kube:
                    return await may(kube, right.attributes(), timeout_s=_ASK_S)
            except Unauthorized:
                return False
            except Forbidden:
                pass  # some clusters let nobody ask about themselves
        known = await self._callers.of_session(visitor.token) if visitor.token else visitor.known
        return await self._callers.may(known, right)


def _key(visitor: Visitor, right: Right) -> bytes:
    asked = msgspec.json.encode([visitor.known.of_cluster.username, visitor.token, right.attributes()])
    return hashlib.sha256(asked).digest()
