"""The operation table of the simulated LDS, over every operation and state (R000-089)."""

import itertools
from collections.abc import Callable

import pytest

from vkpsim.lds.errors import LdsError
from vkpsim.lds.model import Event, Session
from vkpsim.lds.settings import LdsSettings
from vkpsim.lds.states import Op
from vkpsim.lds.world import World

BEGINS, NOW, ENDS = 1000.0, 1500.0, 2000.0
STATES = ("EMPTY", "PENDING", "PRELAUNCH", "RUNNING", "PAUSED", "USER_FINISHED", "ARCHIVED")
E, W, L, R, P, F, A = STATES  # columns of the table below

EMPTY, UNFINISHED, WAITS = "SessionEmpty", "PartUnfinished", "SessionNotStarted"
STARTED, OVER, GONE = "SessionStarted", "SessionFinished", "SessionArchived"
TABLE: dict[str, tuple[str, ...]] = {
    #             EMPTY  PENDING  PRELAUNCH  RUNNING  PAUSED  USER_FINISHED  ARCHIVED
    "add a part": (W, UNFINISHED, UNFINISHED, UNFINISHED, UNFINISHED, W, GONE),
    "set devices": (E, W, L, R, P, F, GONE),
    "set timeslot": (EMPTY, W, L, R, P, OVER, GONE),
    "login URL": (E, W, L, R, P, F, GONE),
    "prelaunch": (EMPTY, L, L, STARTED, STARTED, OVER, GONE),
    "launched": (EMPTY, W, W, STARTED, STARTED, OVER, GONE),
    "log in": (EMPTY, R, R, R, P, OVER, GONE),
    "pause": (EMPTY, WAITS, WAITS, P, P, OVER, GONE),
    "resume": (EMPTY, WAITS, WAITS, R, R, OVER, GONE),
    "answer": (EMPTY, WAITS, WAITS, R, P, OVER, GONE),
    "feedback": (EMPTY, WAITS, WAITS, R, P, F, GONE),
    "finish": (EMPTY, WAITS, WAITS, F, F, F, GONE),
    "timeslot ends": (E, F, F, F, F, F, A),
    "collect": STATES,
    "archive": (A,) * 7,
}
"""Operation, and for each state the one that it goes to or the code of its refusal."""

EVENTS: dict[tuple[str, str], str] = {
    ("log in", W): "session.started",
    ("log in", L): "session.started",
    ("finish", R): "session.ended user",
    ("finish", P): "session.ended user",
    ("timeslot ends", W): "session.ended timeslot",
    ("timeslot ends", L): "session.ended timeslot",
    ("timeslot ends", R): "session.ended timeslot",
    ("timeslot ends", P): "session.ended timeslot",
    ("archive", R): "session.ended archived",
    ("archive", P): "session.ended archived",
}
"""What others are told; of all other cells nothing."""


class Bench:
    """A world with one session."""

    def __init__(self, state: str = W) -> None:
        ids = itertools.count(1)
        self.told: list[Event] = []
        self.world = World(LdsSettings(), lambda: f"id-{next(ids)}", lambda: f"secret-{next(ids)}", self.told.append)
        self.session: Session = self.world.create(BEGINS, username="alice")
        if state != E:
            self.world.add_part(self.session, "form", BEGINS, ENDS)
        for operation in {
            L: ("prelaunch",),
            R: ("log in",),
            P: ("log in", "pause"),
            F: ("log in", "finish"),
            A: ("archive",),
        }.get(state, ()):
            self.do(operation)
        self.told.clear()
        assert self.session.state == state

    def do(self, operation: str) -> None:
        world, session = self.world, self.session
        table: dict[str, Callable[[], object]] = {
            "add a part": lambda: world.add_part(session, "form-2", BEGINS, ENDS),
            "set devices": lambda: world.set_devices(session, []),
            "set timeslot": lambda: world.set_timeslot(session, BEGINS, ENDS),
            "login URL": lambda: world.link(session),
            "prelaunch": lambda: world.shift(Op.PRELAUNCH, session),
            "launched": lambda: world.shift(Op.LAUNCHED, session),
            "log in": lambda: world.log_in(NOW, session),
            "pause": lambda: world.shift(Op.PAUSE, session),
            "resume": lambda: world.shift(Op.RESUME, session),
            "answer": lambda: world.answer(NOW, session, "task-1", "an answer"),
            "feedback": lambda: world.say(NOW, session, 3, None),
            "finish": lambda: world.finish(NOW, session),
            "timeslot ends": lambda: world.advance(ENDS),
            "collect": lambda: world.check(Op.COLLECT, session),
            "archive": lambda: world.archive(NOW, session),
        }
        table[operation]()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("operation", TABLE)
def test_every_operation_in_every_state(operation: str, state: str) -> None:
    bench, expected = Bench(state), TABLE[operation][STATES.index(state)]
    if expected in STATES:
        bench.do(operation)
        assert bench.session.state == expected
    else:
        with pytest.raises(LdsError) as caught:
            bench.do(operation)
        assert caught.value.code == expected
        assert bench.session.state == state
    told = [" ".join(filter(None, (event.type, event.data.get("reason")))) for event in bench.told]
    assert told == ([EVENTS[operation, state]] if (operation, state) in EVENTS else [])


def test_the_table_knows_every_operation() -> None:
    assert len(TABLE) == len(Op)


def test_a_session_begins_with_its_timeslot_and_ends_with_it() -> None:
    bench = Bench()
    for now, code in ((BEGINS - 1, "TimeslotNotBegun"), (ENDS, "TimeslotOver")):
        with pytest.raises(LdsError) as caught:
            bench.world.log_in(now, bench.session)
        assert caught.value.code == code
    bench.world.log_in(NOW, bench.session)
    bench.world.advance(ENDS - 1)
    assert bench.session.state == R
    bench.world.advance(ENDS + 5)
    assert bench.session.parts[-1].ended_unix_s == ENDS


def test_the_timeslot_of_an_earlier_part_ends_nothing() -> None:
    bench = Bench(F)
    bench.world.add_part(bench.session, "form-2", BEGINS, ENDS + 100)
    bench.world.advance(ENDS + 50)
    assert bench.session.state == W


def test_logging_in_again_is_no_event_and_an_old_link_is_none() -> None:
    bench = Bench()
    link = bench.world.link(bench.session)
    assert bench.world.link(bench.session) == link
    bench.do("log in")
    with pytest.raises(LdsError, match="used already"):
        bench.world.by_link(link)
    again = bench.world.link(bench.session)
    assert bench.world.by_link(again) is bench.session
    bench.do("log in")
    assert [event.type for event in bench.told] == ["session.started"]


def test_a_session_ends_at_the_end_that_its_timeslot_was_given_last() -> None:
    for ends in (ENDS + 100, ENDS - 100):
        bench = Bench(R)
        bench.world.set_timeslot(bench.session, BEGINS, ends)
        assert bench.world.next_end() == min(ends, ENDS)
        bench.world.advance(ends - 1)
        assert bench.session.state == R
        bench.world.advance(ends)
        assert bench.session.state == F
        bench.world.advance(ENDS + 1000)
        assert [event.type for event in bench.told] == ["session.ended"]
