"""A histogram in plain numbers: counting costs half a microsecond, everything else is computed when it is read."""

from bisect import bisect_left
from itertools import accumulate
from typing import Final

BRIEF_S: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
"""Bounds for work that usually takes milliseconds and at worst a minute."""
COARSE_S: Final = (0.1, 1.0, 10.0, 60.0)
"""Bounds for histograms of which there are thousands."""
LONG_S: Final = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
"""Bounds for the boot of a device."""


class Histogram:
    """Counts of values by size.

    Attributes:
        bounds: The greatest value of each bucket but the last, ascending.
        counts: Values in each bucket, the last for what is greater than all bounds.
        sum: Of all values.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self.counts)

    def buckets(self) -> list[tuple[str, int]]:
        """Return the cumulative counts as Prometheus expects them: `[("0.001", 3), …, ("+Inf", 9)]`."""
        names = [*(str(bound) for bound in self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))
