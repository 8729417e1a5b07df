"""Wall clocks that are wrong: libfaketime between a process and the system.

`python -m tests.support.clocks COMMAND` runs a command at 23:50 on the last day of a month, by this machine's zone.
"""

import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

_LIBRARIES: Final = "lib*/**/faketime/libfaketime.so.1"


def wrong_by(seconds: int) -> dict[str, str]:
    """Give the environment of a process whose wall clock is wrong; its monotonic clocks stay right.

    A test that has no libfaketime to do so is skipped, with the command that brings it, but fails where CI is set.
    """
    library = _library()
    if library is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs libfaketime: apt-get install faketime")
    return _environment(library, seconds)


def late(now: datetime) -> datetime:
    """Return 23:50 on the last day of the month before a time: certificates that begin then are valid everywhere now.

    Programs in Go, such as an API server, ask the system itself for the time, and go on with the right one.
    """
    return now.replace(day=1, hour=23, minute=50, second=0, microsecond=0) - timedelta(days=1)


def _library() -> Path | None:
    return next(Path("/usr").glob(_LIBRARIES), None)


def _environment(library: Path, seconds: int) -> dict[str, str]:
    return {"LD_PRELOAD": str(library), "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def main(command: list[str]) -> None:
    """Become a command whose clock is that late."""
    library = _library()
    if not command or library is None:
        sys.exit("usage: python -m tests.support.clocks COMMAND; it needs libfaketime: apt-get install faketime")
    now = datetime.now().astimezone()
    os.execvpe(command[0], command, {**os.environ, **_environment(library, int((late(now) - now).total_seconds()))})  # noqa: S606 (the developer's own command)


if __name__ == "__main__":
    main(sys.argv[1:])
