"""Up to five real replicas and a dozen Nodes in virtual time, with everything that may go wrong (R004-024 to R004-039).

A few stories, the same ones every time; `tests/faults/test_peace.py` tells two thousand.
"""

import os
import subprocess
import sys
from typing import Final

import pytest

from tests.unit.platform.leases.stories import (
    Kind,
    Story,
    Trouble,
    check_acts,
    check_peace,
    check_records,
    played,
    wild,
)

SEEDS: Final = (*range(24), 46, 63, 64, 68, 74, 140, 163, 242)
"""The first ones, and some of those that once left a Node without an owner."""
KINDS: Final[tuple[tuple[Kind, int], ...]] = (
    ("restart", 2),
    ("cut", 0),
    ("restart", 3),
    ("cut", 0),
    ("stop", 3),
    ("join", 0),
    ("stop", 0),
    ("cut", 1),
)
"""What once left a Node without an owner for more than a minute."""


@pytest.mark.parametrize("seed", SEEDS)
def test_never_two_owners_and_peace_in_the_end(seed: int) -> None:
    world = played(wild(seed))
    check_acts(world)
    check_records(world)
    check_peace(world)


@pytest.mark.parametrize("every_s", [6.0, 7.0])
def test_restarts_cuts_and_stops_end_in_peace(every_s: float) -> None:
    troubles = [Trouble(3 + every_s * number, kind, which, 30.0) for number, (kind, which) in enumerate(KINDS, 1)]
    world = played(Story(81943, 3, 6, tuple(troubles), lossy=0.02, late_s=2.5))
    check_acts(world)
    check_records(world)
    check_peace(world)


def test_a_story_takes_the_same_course_every_time() -> None:
    """Whatever the hashes of names, the addresses of objects and the speed of the machine are."""
    program = "from tests.unit.platform.leases.stories import *; print(played(wild(7)).digest())"
    digests = {
        subprocess.run(  # noqa: S603 (this program)
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {f"{played(wild(7)).digest()}\n"}


def test_a_write_sent_before_the_fence_that_arrives_after_the_takeover_is_refused() -> None:
    """One of two owners is cut off and stopped with writes under way; the other takes over meanwhile."""
    world = played(Story(7, 2, 6, (Trouble(20.0, "cut", 0, 30.0), Trouble(21.6, "stop", 0, 24.0))))
    check_acts(world)
    check_records(world)
    owners = {(worker, process) for _, worker, _, process in world.acts}
    assert len(owners) > 6, "nothing was taken over"
    assert world.server.refused, "no write arrived late"


def test_a_replica_that_wakes_up_after_its_membership_was_ended_acts_for_no_node_of_its_successor() -> None:
    """Its watch is late: it learns from the refusal of its renewal."""
    world = played(Story(3, 2, 6, (Trouble(20.0, "stop", 0, 30.0),), watches_late_s=3.0))
    check_acts(world)
    takers = {process for when, _, _, process in world.acts if 40 < when < 49}
    assert takers == {"host2-1-abcd"}
