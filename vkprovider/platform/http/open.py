"""What is open at a replica, such as streams and consoles: how much, and for how long those who opened it still may.

A place is counted by who has it. What is open of a login session ends with it. A right that is withdrawn ends what is
open; while the API server cannot be asked, it goes on: nobody sees that but the metrics. A fault of the replica itself
is told in its log as well.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec
import structlog

from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.http.answers import Refused

_log: Final = structlog.get_logger(__name__)
_REFUSALS: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


class Places:
    """Places for what is open: so many in all, and so many of one caller."""

    def __init__(self, of_all: int, of_one: int, refusal: Callable[[bool], Exception]) -> None:
        """Begin with all places free.

        Args:
            of_all: How many there are.
            of_one: How many one caller may have.
            refusal: Returns what is raised where there is none; called with whether the caller has all of theirs.
        """
        self._of_all = of_all
        self._of_one = of_one
        self._refusal = refusal
        self._taken: Counter[str] = Counter()
        self._wake: set[asyncio.Event] = set()
        self._closed = False

    def __len__(self) -> int:
        """Count the places that are taken."""
        return self._taken.total()

    @property
    def is_closed(self) -> bool:
        """Whether what is open is to end."""
        return self._closed

    def close(self) -> None:
        """Wake all that is open, and what begins later at once: the replica ends."""
        self._closed = True
        for event in self._wake:
            event.set()

    @contextmanager
    def taken(self, caller: str, *wake: asyncio.Event) -> Iterator[None]:
        """Take a place while the block runs.

        Args:
            caller: Whose it is.
            wake: Set by `close`.

        Raises:
            Exception: What `refusal` returns: there is no place.
        """
        if (own := self._taken[caller] >= self._of_one) or len(self) >= self._of_all:
            raise self._refusal(own)
        self._taken[caller] += 1
        self._wake.update(wake)
        if self._closed:
            for event in wake:
                event.set()
        try:
            yield
        finally:
            self._wake.difference_update(wake)
            self._taken[caller] -= 1
            self._taken += Counter()  # drops callers without a place


class _Session(NamedTuple):
    """A session of which something is open.

    Attributes:
        holders: For each thing that is open, the events that are set when it is to end.
        token: The newest of its user.
        ends_at: When it is over, in Unix seconds.
        timer: Ends them all at once.
    """

    holders: set[tuple[asyncio.Event, ...]]
    token: str
    ends_at: float
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
    def during(self, name: str, token: str, ends_at: float | None, *events: asyncio.Event) -> Iterator[None]:
        """Have events be set when a session ends.

        Args:
            name: Of the session.
            token: Of its user.
            ends_at: When it is over, in Unix seconds; None if there is none, such as behind an ingress.
            events: Of this block alone.
        """
        if ends_at is None:
            yield
            return
        known = self._open.get(name)
        holders: set[tuple[asyncio.Event, ...]] = known.holders if known is not None else set()
        if known is None or known.ends_at < ends_at:
            self._go_on(name, holders, token, ends_at)
        holders.add(events)
        try:
            yield
        finally:
            holders.discard(events)
            now = self._open.get(name)
            if not holders and now is not None and now.holders is holders:
                now.timer.cancel()
                del self._open[name]

    def renewed(self, name: str, token: str, ends_at: float) -> None:
        """Let what is open of a session go on with another token of its user, until that ends."""
        known = self._open.get(name)
        if known is not None and known.ends_at < ends_at:
            self._go_on(name, known.holders, token, ends_at)

    def token_of(self, name: str, token: str) -> str:
        """Return the newest token of a session; the given one if nothing is open of it."""
        known = self._open.get(name)
        return known.token if known is not None else token

    def end(self, session: str) -> None:
        """End what is open of a session."""
        ended = self._open.pop(session, None)
        if ended is None:
            return
        ended.timer.cancel()
        for events in ended.holders:
            for event in events:
                event.set()

    def _go_on(self, name: str, holders: set[tuple[asyncio.Event, ...]], token: str, ends_at: float) -> None:
        if (known := self._open.get(name)) is not None:
            known.timer.cancel()
        left_s = max(0.0, ends_at - self._wall())
        timer = asyncio.get_running_loop().call_later(left_s, self.end, name)
        self._open[name] = _Session(holders, token, ends_at, timer)


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


Ask = Callable[[], Awaitable[bool]]
"""Returns whether somebody still may; raises `Refused` or `OutsideError`, which means no if it is 401 or 403."""


class _Question(NamedTuple):
    """What is asked again and again.

    Attributes:
        holders: For each thing that is open, the events that are set when it is to end.
        task: Asks.
    """

    holders: set[tuple[asyncio.Event, ...]]
    task: asyncio.Task[None]


class Reviews:
    """Asks again, for all that is open, whether those who opened it still may; the same question once for all.

    Attributes:
        answers_total: Reviews by their answer: allowed, refused, or unknown.
    """

    def __init__(self, times: ReviewTimes) -> None:
        """Begin with nothing open."""
        self.answers_total: Counter[str] = Counter()
        self._times = times
        self._asked: dict[bytes, _Question] = {}
        self._due: dict[bytes, float] = {}

    @asynccontextmanager
    async def holding(self, user: str, key: bytes, ask: Ask, *events: asyncio.Event) -> AsyncIterator[None]:
        """Have events be set when somebody may no more, as long as the block runs.

        Args:
            user: Who it is, for the log.
            key: Tells the question from others.
            ask: Asks it.
            events: At least one, of this block alone.
        """
        question = self._asked.get(key)
        if question is None:
            holders: set[tuple[asyncio.Event, ...]] = set()
            task = asyncio.create_task(self._repeat(user, key, ask, holders), name="review")
            question = self._asked[key] = _Question(holders, task)
        question.holders.add(events)
        try:
            yield
        finally:
            question.holders.discard(events)
            if not question.holders:
                if self._asked.get(key) is question:
                    del self._asked[key]
                await end_tasks((question.task,))

    async def _repeat(self, user: str, key: bytes, ask: Ask, holders: set[tuple[asyncio.Event, ...]]) -> None:
        """Ask until the answer is no."""
        loop = asyncio.get_running_loop()
        # Who comes back before the review that was due anyway waits for that one.
        for past in [each for each, at in self._due.items() if at <= loop.time()]:
            del self._due[past]
        due = self._due.setdefault(key, loop.time() + self._times.first_s)
        while True:
            await asyncio.sleep(due - loop.time())
            answer = await answer_of(user, ask)
            self.answers_total["unknown" if answer is None else "allowed" if answer else "refused"] += 1
            if answer is False:
                self._due.pop(key, None)
                del self._asked[key]
                for events in holders:
                    for event in events:
                        event.set()
                return
            due = loop.time() + (self._times.again_s if answer is None else self._times.every_s)
            self._due[key] = due


async def answer_of(user: str, ask: Ask) -> bool | None:
    """Return whether somebody may; None if nobody knows."""
    try:
        return await ask()
    except Refused as refusal:
        return False if refusal.status_code in _REFUSALS else None
    except OutsideError:
        return None
    except Exception:  # noqa: BLE001 (a fault of this replica must not end the reviews, and leave all open for good)
        _log.exception("a review fails", user=user)
        return None
