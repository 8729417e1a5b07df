"""A token bucket: how fast a client may send."""

import time
from collections.abc import Callable


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

    def cancel(self) -> None:
        """Return a reserved token that will not be used."""
        self._tokens += 1
