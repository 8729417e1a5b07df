"""The suites of `hub/tests` with a real JupyterHub, in its own venv; `make hub` runs them alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VENV = Path(sys.prefix) / "hub"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "hub" / "tests").glob("test_*.py")))
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
        timeout=590,
    )
    assert done.returncode == 0, done.stdout[-6000:]
