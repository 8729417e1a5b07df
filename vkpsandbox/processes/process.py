"""Processes of a sandbox: what to run (`ProcessSpec`) and its status (`ProcessStatus`)."""

import os
import signal
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

MARK: Final = "VKPROVIDER_SANDBOX"
"""Environment variable, the sandbox's directory, of every process of a sandbox: strays are found by it."""

OWNER_VARIABLE: Final = "VKPROVIDER_SANDBOX_OWNER"
"""Environment variable of the supervisor: the process id that the sandbox must not outlive, if set."""

DEADLY: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT})
"""Signals that are sent to end a process."""


class Restart(StrEnum):
    """What happens when a process ends without having been stopped."""

    ALWAYS = "always"
    """It is started again, whatever ended it."""
    UNLESS_KILLED = "unless-killed"
    """It is started again, except after a deadly signal sent through the control socket."""


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What to run.

    Attributes:
        name: Unique in the sandbox.
        argv: Program and arguments.
        env: Variables to set (a string) or to unset (None), on top of the supervisor's.
        url: Where it listens, for people.
        restart: What happens when it ends by itself.
        grace_s: How long it may take to end, at the end of the sandbox; 0 kills it at once.
    """

    name: str
    argv: list[str]
    env: dict[str, str | None] = {}
    url: str = ""
    restart: Restart = Restart.ALWAYS
    grace_s: float = 0


class ProcessStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a process.

    Attributes:
        name: Its name.
        pid: Its process id, None while it does not run.
        url: Where it listens.
        log: Its log.
        restarts: How often the supervisor started it again by itself.
        state: `running`, `stopped` (on request), `waiting` (to be started again), `lost` (the supervisor is gone).
        exit_code: Of its last end; negative is a signal; None if it never ended.
    """

    name: str
    pid: int | None
    url: str
    log: str
    restarts: int
    state: str
    exit_code: int | None = None


def environment(base: Mapping[str, str], changes: Mapping[str, str | None], directory: Path) -> dict[str, str]:
    """Return the environment of a process: the base, changed, and marked as the sandbox's."""
    merged = {**base, **changes, MARK: str(directory)}
    return {key: value for key, value in merged.items() if value is not None}


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file, readable by its owner only; a reader sees the old content or the new."""
    new = path.with_name(path.name + ".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    new.replace(path)
