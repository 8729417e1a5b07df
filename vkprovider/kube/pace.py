"""How fast, and how long until the next try: a token bucket and a back-off."""

import random
import time
from collections.abc import Callable


class TokenBucket:
    """Allow `rate_per_s` actions a second on average and `burst` at once.

    A token is reserved when asked for, so callers are served in the order in which they asked, and nobody has to queue
    them: each sleeps for the time it was told. Who will not use its token must give it back, else those who gave up
    use up the rate.
    """

    def __init__(self, rate_per_s: float, burst: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._tokens = burst
        self._now = now
        self._counted_at_s = now()

    def reserve(self) -> float:
        """Take one token and tell after how many seconds it may be used; 0 means at once."""
        now_s = self._now()
        self._tokens = min(self._burst, self._tokens + (now_s - self._counted_at_s) * self._rate_per_s) - 1
        self._counted_at_s = now_s
        return 0.0 if self._tokens >= 0 else -self._tokens / self._rate_per_s

    def give_back(self) -> None:
        """Return a token that will not be used."""
        self._tokens += 1


def backoff(
    attempt: int, first_s: float, cap_s: float, rand: Callable[[], float] = random.random, *, floor: float = 0.0
) -> float:
    """Give the seconds to wait after the `attempt`-th failure in a row (1, 2, …), with full jitter.

    The bound doubles from `first_s` to `cap_s`; the wait is drawn evenly between `floor` times the bound and the bound.
    Full jitter spreads the clients of a server that came back better than any other choice
    (AWS Architecture Blog, "Exponential Backoff And Jitter").
    """
    bound_s = min(cap_s, first_s * 2.0 ** min(attempt - 1, 32))
    return bound_s * (floor + (1.0 - floor) * rand())
