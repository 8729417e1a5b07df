"""The plain words for how a lablet stands, in the order in which a summary counts them.

This module imports nothing else: help and completion offer the words.
"""

from enum import StrEnum
from typing import Final


class Standing(StrEnum):
    """How a lablet stands, for a reader who knows no Kubernetes."""

    NEEDS_HELP = "needs help"
    UNREACHABLE = "unreachable"
    REPAIRING = "repairing"
    WAITING = "waiting"
    BOOTING = "booting"
    READY = "ready"
    WORKING = "working"
    STOPPED = "stopped"
    HANDED_IN = "handed in"
    PASSED = "passed"
    NOT_PASSED = "not passed"
    FAILED = "failed"
    ENDING = "ending"
    RETURNING = "returning"
    FREE = "free"


class Tone(StrEnum):
    """How a standing is coloured, beside its words."""

    GOOD = "good"
    BUSY = "busy"
    BAD = "bad"


_BAD: Final = frozenset({Standing.NEEDS_HELP, Standing.UNREACHABLE, Standing.FAILED, Standing.NOT_PASSED})
_GOOD: Final = frozenset({Standing.READY, Standing.WORKING, Standing.FREE, Standing.PASSED})


def tone_of(standing: Standing) -> Tone:
    """Return how a standing is coloured."""
    return Tone.BAD if standing in _BAD else Tone.GOOD if standing in _GOOD else Tone.BUSY
