"""Programs of others that judge the CML simulator, each with packages of its own: `tests/simulators/cml/judges.txt`."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

_FOLDER: Final = Path(sys.prefix) / "judges"
_HOME: Final = Path(__file__).parents[2]


def run_judge(name: str | None, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
    """Run Python with the packages of a judge before those of the tests; return its output, or fail with it.

    Args:
        name: The judge; None is one that stands among the packages of the tests.
        arguments: Of Python.
        environment: Further variables.
    """
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    packages = {} if name is None else {"PYTHONPATH": str(_packages(name))}
    done = subprocess.run(  # noqa: S603 (this Python)
        [sys.executable, *arguments],
        cwd=_HOME,
        env={**inherited, **packages, **(environment or {})},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=110,
    )
    print(done.stdout)  # noqa: T201 (pytest shows it if the test fails)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def _packages(name: str) -> Path:
    """Return the folder of a judge; without it the test is skipped, but in CI it fails."""
    packages = _FOLDER / name
    if not packages.is_dir():
        why = f"{name} is not installed; get it: make judges, as `make test` does"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return packages
