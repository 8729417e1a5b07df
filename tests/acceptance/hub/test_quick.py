"""The quick tests of `hub/tests` with a real JupyterHub, in its own venv; `make hub` runs all of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
VENV = Path(sys.prefix) / "hub"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", ["test_stream", "test_rules", "test_spawner"])
def test_of_the_hub(name: str) -> None:
    if not (VENV / ".wanted").exists():
        why = "JupyterHub is not installed in .venv/hub; get it: make hub, or `make test`, which does so first"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(  # noqa: S603 (the Python of that venv)
        [VENV / "bin" / "python", "-m", "pytest", f"hub/tests/{name}.py", "-q", "-x", "--show-capture=no"],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=390,
    )
    assert done.returncode == 0, done.stdout[-6000:]
