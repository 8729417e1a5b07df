"""A wall clock that is wrong, for one process: libfaketime between it and the system."""

import importlib.util
import sys
from pathlib import Path

import pytest


def wrong_by(seconds: int) -> dict[str, str]:
    """Give the environment of a process whose wall clock is wrong; its monotonic clocks stay right.

    A test that has no libfaketime to do so is skipped, with the command that brings it.
    """
    found = importlib.util.find_spec("libfaketime")  # importing it would change this very process
    origin = Path(found.origin).parent if found and found.origin else Path()
    library = origin / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
    if not library.is_file():
        pytest.skip(f"needs libfaketime: {sys.executable} -m pip install libfaketime")
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
