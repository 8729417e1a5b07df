"""How long nodes take to boot, and how long CML waits for that."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class BootTimes:
    """A range of seconds, drawn by seed, with exceptions by node definition.

    Attributes:
        speed: How many seconds of a boot, or of CML's time-out for it, pass in one.
    """

    low_s: float = 1.0
    high_s: float = 1.0
    seed: int = 0
    by_definition: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    speed: float = 1.0

    def draw(self, definition: str, launch: int) -> float:
        """Return the boot time of the `launch`-th launch; the same seed gives the same times in every run."""
        low, high = self.by_definition.get(definition, (self.low_s, self.high_s))
        drawn = low if low == high else random.Random(f"{self.seed}/{launch}").uniform(low, high)
        return drawn / self.speed

    def timeout(self, definition_s: float, cpu_limit: int) -> float:
        """Return how long CML waits; a device that gets a part of its CPU gets so much more time.

        Args:
            definition_s: `boot.timeout` of the node definition.
            cpu_limit: In percent.
        """
        return definition_s * 100 / cpu_limit / self.speed


def parse_range(text: str) -> tuple[float, float]:
    """Read `5` or `5-20` as a range of seconds.

    Raises:
        ValueError: It is neither, or the range is empty or negative.
    """
    low_text, dash, high_text = text.partition("-")
    try:
        low = float(low_text)
        high = float(high_text) if dash else low
    except ValueError:
        low = high = -1.0
    if not 0 <= low <= high:
        raise ValueError(f"{text!r} is not a range of seconds such as 5 or 5-20")
    return low, high
