"""Everything as Pods of an ordinary Node, installed by kubectl: Ready by its own probes, and nothing is left."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import ordinary as support
from tests.support.ordinary import install, ordinary
from vkpsandbox.node import room
from vkpsandbox.paths import Layout

pytestmark = pytest.mark.skipif(bool(why := support.missing()), reason=why)


def left_of(layout: Layout) -> list[str]:
    """Name what a Node left on this machine: interfaces, cgroups, mounts, processes."""
    found = [
        str(file.parent)
        for file in Path("/sys/class/net").glob("vkp*/ifalias")
        if str(layout.directory) in file.read_text()
    ]
    found += [str(each) for each in Path("/sys/fs/cgroup").glob(f"*/{room.cgroup_of(layout)}")]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(layout.directory) in line]
    processes = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout  # noqa: S607 (of PATH)
    return found + [line for line in processes.splitlines() if str(layout.directory) in line]


@pytest.mark.timeout(900)
def test_everything_is_ready_by_its_own_probes_and_nothing_is_left(tmp_path: Path) -> None:
    with ordinary("node", tmp_path, [support.archive(tmp_path)]) as made:
        layout = made.sandbox.layout
        install(made)
        made.connect()
        made.wait_node()
        assert os.access(layout.node, os.R_OK)
    assert left_of(layout) == []
    assert not layout.directory.exists()
