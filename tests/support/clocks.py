"""A wall clock that is wrong, for one process: libfaketime between it and the system."""

import os
from pathlib import Path
from typing import Final

import pytest

_LIBRARIES: Final = "lib*/**/faketime/libfaketime.so.1"


def wrong_by(seconds: int) -> dict[str, str]:
    """Give the environment of a process whose wall clock is wrong; its monotonic clocks stay right.

    A test that has no libfaketime to do so is skipped, with the command that brings it, but fails where CI is set.
    """
    library = next(Path("/usr").glob(_LIBRARIES), None)
    if library is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs libfaketime: apt-get install faketime")
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
