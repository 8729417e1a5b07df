"""How many requests may await the API server's answer. Pure: times come from the caller.

The rule is TCP's: slow start (one more for each answer, which doubles a window in the time of one), and after the first
congestion additive increase and multiplicative decrease. The sign of congestion is a refusal (429) or no answer, as
TCP's is a lost packet. A slow answer only ends the growth: where all clients of a busy server wait, one that gives way
to its slowness gives its share to the others, and its lablets wait for them.
"""

from dataclasses import dataclass, field
from typing import Final

MIN: Final = 8
START: Final = 24
QUICK_S: Final = 0.5
"""Answers below it let the window grow; beyond, the server only queues what is sent."""
_SHRINK: Final = 2 / 3


@dataclass(slots=True)
class Window:
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
