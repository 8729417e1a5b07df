"""Which state of a session allows what: one row per operation, one column per state."""

from enum import Enum, StrEnum
from typing import Final

from vkpsim.lds.errors import E


class State(StrEnum):
    """The states of a session and of its parts."""

    EMPTY = "EMPTY"
    """It has no part."""
    PENDING = "PENDING"
    """It waits for its user."""
    PRELAUNCH = "PRELAUNCH"
    """Its lab is being launched by the LDS; never so with lablets."""
    RUNNING = "RUNNING"
    """Its user has logged in."""
    PAUSED = "PAUSED"
    """Its clock stands still; never so with lablets."""
    USER_FINISHED = "USER_FINISHED"
    """Its user or its timeslot has ended it."""
    ARCHIVED = "ARCHIVED"
    """It is over for good."""


class Op(Enum):
    """Operations on a session."""

    ADD_PART = "add a part"
    SET_DEVICES = "set its devices"
    SET_TIMESLOT = "set its timeslot"
    LOGIN_URL = "ask for its login URL"
    PRELAUNCH = "begin the launch of a lab"
    LAUNCHED = "end the launch of a lab"
    LOG_IN = "log in"
    PAUSE = "pause"
    RESUME = "resume"
    ANSWER = "answer a task"
    GIVE_FEEDBACK = "give feedback"
    FINISH = "finish"
    EXPIRE = "reach the end of the timeslot"
    COLLECT = "collect responses or feedback"
    ARCHIVE = "archive"


class Stay(Enum):
    """A success that leaves the state as it is."""

    DO = "carried out"
    NOTHING = "nothing to do"


Row = State | Stay | E
"""The next state, or unchanged, or a refusal."""

DO, NOTHING = Stay.DO, Stay.NOTHING
_PENDING, _PRELAUNCH, _RUNNING, _PAUSED = State.PENDING, State.PRELAUNCH, State.RUNNING, State.PAUSED
_FINISHED, _ARCHIVED = State.USER_FINISHED, State.ARCHIVED
_EMPTY, _GONE, _OVER = E.EMPTY, E.ARCHIVED, E.FINISHED
_WAITS, _BUSY, _HALF = E.NOT_STARTED, E.STARTED, E.UNFINISHED


def _row(
    empty: Row, pending: Row, prelaunch: Row, running: Row, paused: Row, finished: Row, archived: Row
) -> list[Row]:
    return [empty, pending, prelaunch, running, paused, finished, archived]


_TABLE: Final[dict[Op, list[Row]]] = {
    #                       EMPTY     PENDING    PRELAUNCH  RUNNING    PAUSED     FINISHED   ARCHIVED
    Op.ADD_PART: _row(_PENDING, _HALF, _HALF, _HALF, _HALF, _PENDING, _GONE),
    Op.SET_DEVICES: _row(DO, DO, DO, DO, DO, DO, _GONE),
    Op.SET_TIMESLOT: _row(_EMPTY, DO, DO, DO, DO, _OVER, _GONE),
    Op.LOGIN_URL: _row(DO, DO, DO, DO, DO, DO, _GONE),
    Op.PRELAUNCH: _row(_EMPTY, _PRELAUNCH, NOTHING, _BUSY, _BUSY, _OVER, _GONE),
    Op.LAUNCHED: _row(_EMPTY, NOTHING, _PENDING, _BUSY, _BUSY, _OVER, _GONE),
    Op.LOG_IN: _row(_EMPTY, _RUNNING, _RUNNING, DO, DO, _OVER, _GONE),
    Op.PAUSE: _row(_EMPTY, _WAITS, _WAITS, _PAUSED, NOTHING, _OVER, _GONE),
    Op.RESUME: _row(_EMPTY, _WAITS, _WAITS, NOTHING, _RUNNING, _OVER, _GONE),
    Op.ANSWER: _row(_EMPTY, _WAITS, _WAITS, DO, DO, _OVER, _GONE),
    Op.GIVE_FEEDBACK: _row(_EMPTY, _WAITS, _WAITS, DO, DO, DO, _GONE),
    Op.FINISH: _row(_EMPTY, _WAITS, _WAITS, _FINISHED, _FINISHED, NOTHING, _GONE),
    Op.EXPIRE: _row(NOTHING, _FINISHED, _FINISHED, _FINISHED, _FINISHED, NOTHING, NOTHING),
    Op.COLLECT: _row(DO, DO, DO, DO, DO, DO, DO),
    Op.ARCHIVE: _row(_ARCHIVED, _ARCHIVED, _ARCHIVED, _ARCHIVED, _ARCHIVED, _ARCHIVED, NOTHING),
}

RULES: Final[dict[Op, dict[State, Row]]] = {op: dict(zip(State, row, strict=True)) for op, row in _TABLE.items()}
"""Operation, state: outcome."""
