"""One address for many lablets, as `vkprovider demo --mux` shows it (`make demo MUX=1`)."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.relay import haproxy_or_skip
from vkpsandbox import Sandbox
from vkpsandbox.demo.mux import HOST, NODES, REPLICAS
from vkpsandbox.processes.strays import marked

pytestmark = pytest.mark.timeout(400)

COMMAND = (sys.executable, "-P", "-u", "-m", "vkprovider", "demo", "--mux")


@pytest.fixture
def far(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose path is longer than that of a socket may be."""
    far = home / ("long" * 25)
    monkeypatch.setenv("XDG_STATE_HOME", str(far))
    yield far
    for directory in (far / "vkprovider" / "sandboxes").glob("*"):
        Sandbox.remove(directory=directory)


def test_thirty_lablets_behind_one_address(far: Path) -> None:
    haproxy_or_skip()
    result = subprocess.run(COMMAND, capture_output=True, text=True, check=False, timeout=350)  # noqa: S603 (ourselves)
    assert result.returncode == 0, result.stdout + result.stderr
    said = result.stdout
    table = re.findall(rf"^   (lab-\d+) +(vnode\.\S+) +(\S+) +({re.escape(HOST)}:\d+) +(\S+)$", said, re.MULTILINE)
    assert [row[0] for row in table] == [f"lab-{number}" for number in range(REPLICAS)]
    assert {row[4] for row in table} == {"live"}
    assert len({row[1] for row in table}) == NODES
    assert len({row[3] for row in table}) == REPLICAS, "each has a number of its own"
    first, last = (row[3].rpartition(":")[2] for row in (table[0], table[-1]))
    assert re.search(rf"^   \$ telnet {HOST} {first}\n   lab-0[>#]$", said, re.MULTILINE), "its device answers"
    assert re.search(r"^   \$ kill -9 \d+\n   the session goes on: lab-0[>#]$", said, re.MULTILINE)
    assert re.search(r"all numbers are as before, and the session goes on: lab-0[>#]$", said, re.MULTILINE)
    assert re.search(rf"^   \$ telnet {HOST} {last}\n   refused, ", said, re.MULTILINE)
    assert said.rstrip().endswith("The sandbox demo is gone; KEEP=1 (or --keep) leaves it running.")
    assert marked(far / "vkprovider" / "sandboxes" / "demo") == []
