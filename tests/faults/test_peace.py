"""Two thousand random stories of replicas that are killed, restarted, stopped and cut off, in virtual time.

There are never two owners. When all is well, every Node has an owner that acts within 20 s, and the shares are even
within 40 s. Each story is told twice, by processes with other hashes of names, and takes the same course.
R004-024 to R004-039.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import msgspec
import pytest

from tests.unit.platform.leases.stories import check_acts, check_peace, check_records, peace, played, wild

STORIES: Final = int(os.environ.get("PEACE_STORIES", "2000"))
AT_ONCE: Final = 50
"""Stories of one process."""
PROCESSES: Final = max(2, (os.cpu_count() or 2) // 2)
_PROGRAM: Final = "import sys; from tests.faults.test_peace import tell; tell(*map(int, sys.argv[1:]))"


class Told(NamedTuple):
    """What came of a story.

    Attributes:
        fault: What was wrong; empty if nothing was.
    """

    seed: int
    owned_s: float
    even_s: float
    digest: str
    fault: str


def tell(first: int, count: int) -> None:
    """Play some stories, and print what came of each."""
    for seed in range(first, first + count):
        world, fault = played(wild(seed)), ""
        try:
            check_acts(world)
            check_records(world)
            check_peace(world)
        except AssertionError as error:
            fault = str(error)
        told = Told(seed, *peace(world), world.digest(), fault)
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")


def _told(first: int, hashes: str) -> list[Told]:
    """Return what came of some stories, told by a process of its own."""
    count = min(AT_ONCE, STORIES - first)
    command = [sys.executable, "-c", _PROGRAM, str(first), str(count)]
    environment = {**os.environ, "PYTHONHASHSEED": hashes}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, timeout=1200)  # noqa: S603 (this program)
    return [msgspec.json.decode(line, type=Told) for line in done.stdout.splitlines()]


@pytest.mark.timeout(5400)
def test_two_thousand_stories_end_in_peace_and_take_the_same_course_twice() -> None:
    firsts = range(0, STORIES, AT_ONCE)
    with ThreadPoolExecutor(PROCESSES) as pool:
        once, twice = (
            [told for part in pool.map(_told, firsts, [hashes] * len(firsts)) for told in part] for hashes in ("1", "2")
        )
    owned, even = sorted(told.owned_s for told in once), sorted(told.even_s for told in once)
    sys.stdout.write(
        f"{len(once)} stories; owned after {owned[-1]:.1f} s at most, {owned[len(owned) * 99 // 100]:.1f} s in 99 of "
        f"100; even after {even[-1]:.1f} s at most, {even[len(even) * 99 // 100]:.1f} s in 99 of 100\n"
    )
    assert [told for told in once if told.fault] == []
    assert twice == once
