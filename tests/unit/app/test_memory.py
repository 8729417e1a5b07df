"""What a burst took goes back to the system."""

import subprocess
import sys

import pytest

BURST = """
from pathlib import Path
from vkprovider.app import memory

def resident_kb():
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1])

memory.keep_large_buffers_apart()
first = bytes(4 * 2**20)
del first  # from here on glibc would think buffers of this size common
before = resident_kb()
burst, young = [], []
for _ in range(20):
    burst.append(b"x" * 2**20)
    young.append(b"y" * 4000)
during = resident_kb()
del burst
print(during - before, resident_kb() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_buffers_go_back_though_younger_small_ones_live() -> None:
    done = subprocess.run([sys.executable, "-c", BURST], capture_output=True, text=True, check=True, timeout=60)  # noqa: S603 (ours)
    during_kb, after_kb = map(int, done.stdout.split())
    assert during_kb > 20_000
    assert after_kb < 2_000
