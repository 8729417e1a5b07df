"""A lab on request, as `vkprovider demo --portal` shows it (`make demo PORTAL=1`)."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from vkpsandbox.processes.strays import marked

pytestmark = pytest.mark.timeout(400)

COMMAND = (sys.executable, "-P", "-u", "-m", "vkprovider", "demo", "--portal", "--workers=2")


def test_a_learner_asks_for_a_lab_and_gives_it_back(home: Path) -> None:
    result = subprocess.run(COMMAND, capture_output=True, text=True, check=False, timeout=350)  # noqa: S603 (ourselves)
    assert result.returncode == 0, result.stdout + result.stderr
    said = result.stdout
    assert re.search(r"auth can-i create pods --all-namespaces\n   no$", said, re.MULTILINE)
    assert re.search(r"^   a second time: 409 \S", said, re.MULTILINE)
    story = said.partition("4. Watch it start")[2].partition("5. Work on a device")[0]
    percents = [int(found) for found in re.findall(r"^ +(\d+) % ", story, re.MULTILINE)]
    assert percents == sorted(percents)
    assert percents[-1] == 100
    assert re.search(r"^   r1>show version\n   Cisco IOS", said, re.MULTILINE), "the device answers by its name"
    assert re.search(r'"ends": "ends (\d{4}-\d\d-\d\d )?\d\d:\d\d UTC, in ', said)
    assert said.rstrip().endswith("The sandbox demo is gone; KEEP=1 (or --keep) leaves it running.")
    assert marked(home / "vkprovider" / "sandboxes" / "demo") == []
