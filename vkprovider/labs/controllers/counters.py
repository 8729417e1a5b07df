"""What is counted about the lablets of a replica: steps, changes of state, writes, and how long labs take to boot."""

from dataclasses import dataclass, field

from vkprovider.labs.controllers.timeline import Timeline
from vkprovider.platform.histogram import LONG_S, Histogram


@dataclass(slots=True)
class Counters:
    """Counts for /metrics, in plain numbers, so that counting costs nothing.

    Attributes:
        timeline: Notes when each Pod reaches each stage.
    """

    steps: dict[str, int] = field(default_factory=dict)
    step_failures: dict[str, int] = field(default_factory=dict)
    transitions: dict[tuple[str, str], int] = field(default_factory=dict)
    transitions_refused: int = 0
    status_writes: int = 0
    claim_writes: int = 0
    lab_starts_s: dict[str, Histogram] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=Timeline)

    def lab_started(self, worker: str, took_s: float) -> None:
        """Count how long a worker took from the request to start a lab until all of it had booted."""
        histogram = self.lab_starts_s[worker] = self.lab_starts_s.get(worker) or Histogram(LONG_S)
        histogram.observe(took_s)
