"""The plain words for how a lablet stands, in the order in which a summary counts them.

This module imports nothing else: help and completion offer the words.
"""

from enum import StrEnum


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
