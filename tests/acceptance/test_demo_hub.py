"""A JupyterHub in front, as `vkprovider demo --hub` shows it (`make demo HUB=1`)."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vkpsandbox.processes.strays import marked

pytestmark = pytest.mark.timeout(400)

COMMAND = (sys.executable, "-P", "-u", "-m", "vkprovider", "demo", "--hub", "--workers=2")
NEEDED = {
    "JupyterHub in .venv/hub (make hub)": (Path(sys.prefix) / "hub" / ".wanted").exists(),
    "chromedriver": shutil.which("chromedriver") is not None,
}


def test_a_learner_and_an_instructor_have_browsers(home: Path) -> None:
    if lacking := [name for name, there in NEEDED.items() if not there]:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"there is no {' and no '.join(lacking)}")
    result = subprocess.run(COMMAND, capture_output=True, text=True, check=False, timeout=350)  # noqa: S603 (ourselves)
    assert result.returncode == 0, result.stdout + result.stderr
    said = result.stdout
    story = said.partition("4. Watch it start")[2].partition("5. Work on a device")[0]
    assert re.search(r"^   The lab is imported$", story, re.MULTILINE)
    console = said.partition("5. Work on a device")[2].partition("6. Look at the class")[0]
    assert re.search(r"^   r1>\s*show version\n", console, re.MULTILINE)
    ends = re.search(r"^   it ended (\S+), and ends (\S+)$", said, re.MULTILINE)
    assert ends
    assert ends[1] < ends[2]
    assert said.rstrip().endswith("The sandbox demo is gone; KEEP=1 (or --keep) leaves it running.")
    assert marked(home / "vkprovider" / "sandboxes" / "demo") == []
