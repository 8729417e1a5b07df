"""The states of a lablet and which may follow which, in one table.

A state is what is *reported*; what happens next is decided from facts (`lablet.decide`), never from the state that was
reported last. A change that is not in the table is refused and counted, because it shows a fault in a decision.

Two words of the platform are never reported: PENDING is a Pod without a worker (`kubectl lablet list -o json` shows
it), and ARCHIVED would last no time, because the session is archived before the lab goes.
"""

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The states of a lablet, in the words of the platform."""

    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    INSTANTIATING = "INSTANTIATING"
    READY = "READY"
    RUNNING = "RUNNING"
    COLLECTING = "COLLECTING"
    GRADING = "GRADING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    ARCHIVED = "ARCHIVED"
    TERMINATED = "TERMINATED"
    FAILED = "FAILED"


_S = State
ALLOWED: Final[dict[State, frozenset[State]]] = {
    _S.PENDING: frozenset({_S.SCHEDULED, _S.INSTANTIATING, _S.STOPPING, _S.TERMINATED, _S.FAILED}),
    _S.SCHEDULED: frozenset({_S.INSTANTIATING, _S.READY, _S.STOPPING, _S.TERMINATED, _S.FAILED}),
    _S.INSTANTIATING: frozenset({_S.READY, _S.RUNNING, _S.COLLECTING, _S.STOPPING, _S.STOPPED, _S.FAILED}),
    _S.READY: frozenset({_S.RUNNING, _S.INSTANTIATING, _S.COLLECTING, _S.STOPPING, _S.STOPPED, _S.FAILED}),
    _S.RUNNING: frozenset({_S.READY, _S.INSTANTIATING, _S.COLLECTING, _S.STOPPING, _S.STOPPED, _S.FAILED}),
    _S.COLLECTING: frozenset({_S.GRADING, _S.INSTANTIATING, _S.STOPPING, _S.FAILED}),
    _S.GRADING: frozenset({_S.READY, _S.INSTANTIATING, _S.STOPPING, _S.FAILED}),
    _S.STOPPING: frozenset({_S.STOPPED, _S.ARCHIVED, _S.TERMINATED, _S.FAILED}),
    _S.STOPPED: frozenset({_S.INSTANTIATING, _S.READY, _S.RUNNING, _S.COLLECTING, _S.STOPPING, _S.FAILED}),
    _S.ARCHIVED: frozenset({_S.TERMINATED, _S.FAILED}),
    _S.TERMINATED: frozenset(),
    _S.FAILED: frozenset(),
}
"""State: the states that may follow it.

READY goes back to INSTANTIATING when a lab is recovered, COLLECTING and GRADING when a pool gets its lablet back.
"""


def allowed(old: State | None, new: State) -> bool:
    """Return whether `new` may follow `old`; a lablet seen for the first time may be in any state."""
    return old is None or old is new or new in ALLOWED[old]
