"""What is counted about the lablets of a replica, and when each Pod reached each stage of its way.

The timeline is off unless a setting names its file; the benchmarks do. A line is `<seconds since 1970> <Pod UID>
<stage>`. A stage may be reached more than once; the reader of the file chooses. Besides those below, the name of a step
is the stage at its end.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from vkprovider.platform.histogram import LONG_S, Histogram
from vkprovider.platform.kube.client import Guard

SEEN: Final = "seen"
TURN_BEGUN: Final = "turn begun"
CLAIM_STORED: Final = "claim stored"
READY_DECIDED: Final = "ready decided"
STATUS_SENT: Final = "status sent"
STATUS_ANSWERED: Final = "status answered"
DELETION_SEEN: Final = "deletion seen"
DELETE_SENT: Final = "delete sent"
REMOVAL_SEEN: Final = "removal seen"

_BUFFER_BYTES: Final = 2**20


class Timeline:
    """Notes stages, if there is a file for them."""

    def __init__(self, path: str | None = None) -> None:
        """Open the file to append to; None notes nothing."""
        self._file: TextIO | None = Path(path).open("a", buffering=_BUFFER_BYTES) if path else None  # noqa: SIM115 (open as long as the process)

    def note(self, uid: str, stage: str) -> None:
        """Note that a Pod has reached a stage now."""
        if self._file is not None:
            self._file.write(f"{time.time():.6f} {uid} {stage}\n")

    def sending(self, uid: str, stage: str, guard: Guard) -> Guard:
        """Return a guard that also notes a stage: it is called at the moment of sending, after every wait."""
        if self._file is None:
            return guard

        def noting() -> None:
            guard()
            self.note(uid, stage)

        return noting

    def close(self) -> None:
        """Write what is noted."""
        if self._file is not None:
            self._file.close()


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
