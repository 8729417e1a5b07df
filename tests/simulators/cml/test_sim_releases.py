"""The scenarios of Cisco's client, where each release that is played is judged by the client of that very release.

Clients differ in how strictly they read: that of 2.8 takes the keys of a node as arguments, those of 2.9 update their
objects with them. So an answer that the newest client reads may break the one that a site has.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.support.judges import run_judge

SCENARIOS: Final = [
    *(str(path) for path in sorted(Path(__file__).parent.glob("test_sim_virl2_*.py"))),
    "tests/component/cml/test_virl2_rewritten.py",
]
LENIENT: Final = ("-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")
"""A client leaves its sockets to the garbage collector."""


@pytest.mark.parametrize(
    ("judge", "simulated"),
    [
        ("virl2-client-2.8.0", "2.8.1+build.14"),
        ("virl2-client-2.9.1", "2.9.1+build.7"),
        (None, "2.10.0+build.13"),
    ],
)
def test_the_client_of_a_release_judges_that_release(judge: str | None, simulated: str) -> None:
    scenarios = ("-m", "pytest", "-q", "-p", "no:xdist", *LENIENT, *SCENARIOS)
    run_judge(judge, *scenarios, environment={"SIMULATED_CML": simulated})
