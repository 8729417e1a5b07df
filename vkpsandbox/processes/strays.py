"""End the processes of a sandbox, also those that outlived its supervisor: a mark in their environment finds them."""

import os
import signal
import time
from pathlib import Path
from typing import Final

from vkpsandbox.errors import SandboxError
from vkpsandbox.paths import Layout
from vkpsandbox.processes.control import request, supervised
from vkpsandbox.processes.process import MARK

PATIENCE_S: Final = 10.0

SHUTDOWN_S: Final = 30.0
"""How long the supervisor may take to end everything before it is killed."""

POLL_S: Final = 0.02


def marked(directory: Path) -> list[int]:
    """Return the processes of a sandbox, without this one and those that started it; zombies have ended."""
    wanted = f"{MARK}={directory}".encode()
    spared = _ancestors()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) not in spared:
                found.append(int(entry.name))
        except OSError:  # it has ended, or belongs to another user
            continue
    return sorted(found)


def end_all(layout: Layout) -> None:
    """End all processes of a sandbox: through the supervisor if there is one, then whatever is left.

    Raises:
        SandboxError: If one survives SIGKILL.
    """
    if supervised(layout):
        try:
            request(layout, "shutdown")
        except SandboxError:
            pass  # it is about to end, or never listened: the remaining processes end below
        else:
            deadline = time.monotonic() + SHUTDOWN_S
            while supervised(layout) and time.monotonic() < deadline:
                time.sleep(POLL_S)
    end_marked(layout.directory)


def end_marked(directory: Path) -> int:
    """End every process of a sandbox and return how many there were.

    Raises:
        SandboxError: If one survives SIGKILL.
    """
    ended: set[int] = set()
    deadline = time.monotonic() + PATIENCE_S
    while remaining := marked(directory):
        if time.monotonic() > deadline:
            raise SandboxError(f"processes {remaining} of {directory} survive SIGKILL: see `ps -p {remaining[0]} -l`")
        for pid in remaining:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        ended.update(remaining)
        time.sleep(POLL_S)
    return len(ended)


def _ancestors() -> set[int]:
    """Return this process and those above it."""
    found = {os.getpid()}
    pid = os.getppid()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            break
        pid = int(stat.rpartition(")")[2].split()[1])
    return found
