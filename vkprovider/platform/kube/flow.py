"""In which order requests go to the API server, how many at once, and how fast.

How many requests may be in flight follows TCP's rule: slow start (one more for each answer, which doubles a window in
the time of one), and after the first congestion additive increase and multiplicative decrease. The sign of congestion
is a refusal (429) or no answer, as TCP's is a lost packet. A slow answer only ends the growth: where all clients of a
busy server wait, one that gives way to its slowness gives its share to the others, and its lablets wait for them.

Requests wait here rather than in the server's own queues, because here the order is ours: what finishes a lablet goes
before what begins the next one, and news last. So a burst is delivered one lablet after the other, instead of all of
them late. `window` decides how many are in flight.
"""

import asyncio
import enum
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from vkprovider.platform.errors import Throttled, Unavailable

MIN: Final = 8
START: Final = 24
QUICK_S: Final = 0.5
"""Answers below it let the window grow; beyond, the server only queues what is sent."""
_SHRINK: Final = 2 / 3


@dataclass(slots=True)
class InFlightWindow:
    """The number of requests that may be in flight.

    Attributes:
        most: Its upper bound.
        size: The number now; its fraction counts answers towards the next increase.
        slow_from: From here on it grows slowly; what it shrank to last.
        shrunk_at: When it shrank last, on the caller's clock; what was sent before says nothing new.
        closed_until: Until when the server asked for silence (Retry-After).
    """

    most: int
    size: float = field(init=False)
    slow_from: float = float("inf")
    shrunk_at: float = float("-inf")
    closed_until: float = float("-inf")

    def __post_init__(self) -> None:
        """Begin with `START`."""
        self.size = float(min(START, self.most))

    def admits(self, in_flight: int) -> bool:
        """Return whether one more request may be sent."""
        return in_flight < int(self.size)

    def answered(self, took_s: float, *, full: bool) -> None:
        """Note an answer, of whatever status but 429.

        Args:
            took_s: Seconds from its request.
            full: Whether the window was used up; one that is not used says nothing about what it could be.
        """
        if full and took_s < QUICK_S:
            step = 1.0 if self.size < self.slow_from else 1 / self.size
            self.size = min(float(self.most), self.size + step)

    def refused(self, sent_at: float, now: float, after_s: float = 0.0) -> None:
        """Note a 429, or that no answer came: send less, and nothing for `after_s`."""
        if sent_at >= self.shrunk_at:
            self.size = self.slow_from = max(float(min(MIN, self.most)), self.size * _SHRINK)
            self.shrunk_at = now
        self.closed_until = max(self.closed_until, now + after_s)


class TokenBucket:
    """Allow `rate_per_s` actions a second on average and `burst` at once.

    A token is reserved when it is requested, so callers are served in order without a queue: each sleeps for the time
    that `reserve` returns. A caller that gives up returns its token, or else abandoned requests would use up the rate.
    """

    def __init__(self, rate_per_s: float, burst: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._tokens = burst
        self._now = now
        self._counted_at_s = now()

    def reserve(self) -> float:
        """Reserve one token; return the seconds until it may be used, 0 for at once."""
        now_s = self._now()
        self._tokens = min(self._burst, self._tokens + (now_s - self._counted_at_s) * self._rate_per_s) - 1
        self._counted_at_s = now_s
        return 0.0 if self._tokens >= 0 else -self._tokens / self._rate_per_s

    def take(self) -> bool:
        """Take a token if there is one, without a wait; return whether there was."""
        if self.reserve() <= 0:
            return True
        self.cancel()
        return False

    def cancel(self) -> None:
        """Return a reserved token that will not be used."""
        self._tokens += 1


K = TypeVar("K", bound=Hashable)
_KEYS_MAX: Final = 2000


class TokenBuckets(Generic[K]):
    """A bucket of tokens for each key, such as a caller; of too many, that of who was silent longest is dropped."""

    def __init__(self, rate_per_s: float, burst: float, *, now: Callable[[], float] = time.monotonic) -> None:
        """Begin with full buckets; see `TokenBucket`."""
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._now = now
        self._of: OrderedDict[K, TokenBucket] = OrderedDict()

    def take(self, key: K) -> bool:
        """Take a token of a key; return whether there was one."""
        bucket = self._of.setdefault(key, TokenBucket(self._rate_per_s, self._burst, now=self._now))
        self._of.move_to_end(key)
        if len(self._of) > _KEYS_MAX:
            self._of.popitem(last=False)
        return bucket.take()

    def has(self, key: K) -> bool:
        """Return whether there is a token of a key."""
        bucket = self._of.get(key)
        if bucket is None:
            return True
        has = bucket.reserve() <= 0
        bucket.cancel()
        return has


_FAIR_EVERY: Final = 8
"""One of so many requests is that which has waited longest, whatever its lane: none starves."""
_AVERAGED: Final = 16
"""The moving average is of about so many requests."""
_LOST_S: Final = 5.0
"""A request cancelled after so long has met its deadline; its caller did not give it up."""


class Lane(enum.IntEnum):
    """What a request is for, by urgency."""

    AT_ONCE = 0
    """Leases, and claims, of which many lablets wait for one: they never wait and do not count. There are few."""
    RESULT = 1
    """What a user or a controller acts on: a Pod turns Ready, fails or ends; a deletion is confirmed."""
    WORK = 2
    """What moves workers and definitions on; and mere progress."""
    NEWS = 3
    """Events, and counts in statuses."""


class Flow:
    """Admits requests by lane.

    Use it as `async with flow.turn(lane): send()`.

    Attributes:
        in_flight: Requests that await an answer, without those sent at once.
        took_s: How long the API server takes to answer, as a moving average.
        now: A monotonic clock.
    """

    def __init__(self, most: int, *, now: Callable[[], float] = time.monotonic) -> None:
        """Admit `most` requests at once, or fewer after the API server refused one or did not answer."""
        self.in_flight = 0
        self.took_s = 0.0
        self.now = now
        self._window = InFlightWindow(most)
        self._waiting: dict[Lane, deque[tuple[float, asyncio.Future[None]]]] = {
            lane: deque() for lane in (Lane.RESULT, Lane.WORK, Lane.NEWS)
        }
        self._picked = 0
        self._reopening: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """Whether requests wait here; what can be left out should be."""
        return any(self._waiting.values())

    @property
    def waiting(self) -> dict[str, int]:
        """The number of requests that wait here, by the name of their lane."""
        return {
            lane.name.lower(): sum(not admitted.done() for _, admitted in requests)
            for lane, requests in self._waiting.items()
        }

    @property
    def limit(self) -> int:
        """How many requests may await an answer now."""
        return int(self._window.size)

    def turn(self, lane: Lane) -> "Turn":
        """Return a context in which a request is sent; entering it may wait."""
        return Turn(self, lane)

    async def enter(self, lane: Lane) -> None:
        """Wait until a request of a lane may be sent."""
        if not self._closed and self._window.admits(self.in_flight) and not self.busy:
            self.in_flight += 1
            return
        admitted = asyncio.get_running_loop().create_future()
        self._waiting[lane].append((self.now(), admitted))
        self._admit()
        try:
            await admitted
        except asyncio.CancelledError:
            if not admitted.cancelled():
                self.in_flight -= 1  # admitted in the same step of the loop
                self._admit()
            raise

    def leave(self, lane: Lane, entered_at: float, error: BaseException | None) -> None:
        """Note the end of a request that was sent at `entered_at`."""
        now = self.now()
        full = not self._window.admits(self.in_flight)
        self.in_flight -= 1
        self.took_s += (now - entered_at - self.took_s) / _AVERAGED
        match error:
            case Throttled() if lane is Lane.NEWS:
                pass  # the API server may limit Events, of one namespace; that says nothing of what others wait for
            case Throttled():
                self._window.refused(entered_at, now, error.after_s)
            case Unavailable():
                self._window.refused(entered_at, now)
            case asyncio.CancelledError() if now - entered_at >= _LOST_S:
                self._window.refused(entered_at, now)
            case _:
                self._window.answered(now - entered_at, full=full)
        self._admit()

    @property
    def _closed(self) -> bool:
        return self._window.closed_until > self.now()

    def _admit(self) -> None:
        """Admit who waits, as far as the window allows."""
        if self._closed:
            self._reopen()
            return
        while self._window.admits(self.in_flight) and (admitted := self._next()) is not None:
            self.in_flight += 1
            admitted.set_result(None)

    def _next(self) -> asyncio.Future[None] | None:
        """Pop the next request: of the first lane, or, every so often, the one that has waited longest."""
        for lane in self._waiting.values():
            while lane and lane[0][1].done():  # cancelled while it waited
                lane.popleft()
        lanes = [lane for lane in self._waiting.values() if lane]
        if not lanes:
            return None
        self._picked += 1
        lane = lanes[0] if self._picked % _FAIR_EVERY else min(lanes, key=lambda each: each[0][0])
        return lane.popleft()[1]

    def _reopen(self) -> None:
        if self._reopening is None:
            wait_s = max(0.0, self._window.closed_until - self.now())
            self._reopening = asyncio.get_running_loop().call_later(wait_s, self._reopened)

    def _reopened(self) -> None:
        self._reopening = None
        self._admit()


class Turn:
    """One request's turn; see `Flow.turn`."""

    __slots__ = ("_entered_at", "_flow", "_lane")

    def __init__(self, flow: Flow, lane: Lane) -> None:
        self._flow = flow
        self._lane = lane
        self._entered_at = 0.0

    async def __aenter__(self) -> None:
        if self._lane is not Lane.AT_ONCE:
            await self._flow.enter(self._lane)
            self._entered_at = self._flow.now()

    async def __aexit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if self._lane is not Lane.AT_ONCE:
            self._flow.leave(self._lane, self._entered_at, error)
