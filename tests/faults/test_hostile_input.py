"""The hostile corpus over every parser of text from outside, in a process with limits on memory and CPU time.

Each run draws other inputs; VKPROVIDER_TEST_SEED repeats one.
"""

import os
import random
import subprocess
import sys
from typing import Final

import msgspec
import pytest

from tests.support.hostile import MEMORY_BYTES, PARSERS, Outcome

INPUTS: Final = 10_000
SEED: Final = int(os.environ.get("VKPROVIDER_TEST_SEED") or random.randrange(10**9))


@pytest.mark.parametrize("parser", PARSERS)
def test_hostile_input_is_refused(parser: str) -> None:
    command = (sys.executable, "-m", "tests.support.hostile", parser, str(SEED), str(INPUTS))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1100)  # noqa: S603 (our own)
    assert done.returncode == 0, f"seed {SEED}: {done.stderr[-2000:]}"
    found = msgspec.json.decode(done.stdout, type=Outcome)
    print(  # noqa: T201 (the figures)
        f"{parser}: {found.accepted} accepted, {found.refused} refused, slowest {found.slowest_s} s, "
        f"within {MEMORY_BYTES // 2**20} MiB, seed {SEED}"
    )
    assert found.faults == [], f"seed {SEED}"
    assert found.accepted + found.refused == INPUTS
