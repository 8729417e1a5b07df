"""Directories of programs that are made once and kept: a directory is there only when it is complete.

Two processes at once are safe: one makes it, the other waits. However one makes it, by a build or by a download, the
lock and the directory are the same.
"""

import fcntl
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

Progress = Callable[[str], None]
"""Called with one line at a time."""

TELL_S: Final = 10.0
"""How often a process that waits for another one says so."""

_LOOK_S: Final = 0.1
"""How often another process's lock is tried."""


def kept(target: Path, title: str, make: Callable[[Path], None], on_progress: Progress) -> Path:
    """Return a directory, making it first if it is not there.

    Args:
        target: The directory.
        title: What it holds, for messages: `the control plane v1.36.3`.
        make: Called with a path that it makes the directory at; what it writes beside that is removed.
        on_progress: Called every `TELL_S` while another process makes it.
    """
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target, title, on_progress):
            if not target.is_dir():
                with tempfile.TemporaryDirectory(dir=target.parent, prefix="new-") as scratch:
                    made = Path(scratch) / "programs"
                    make(made)
                    made.rename(target)
    return target


@contextmanager
def _locked(target: Path, title: str, on_progress: Progress) -> Iterator[None]:
    """Hold a file lock; it ends with the process, however that ends. While another process has it, say for how long."""
    with target.with_suffix(".lock").open("w") as lock:
        began = time.monotonic()
        told = began - TELL_S
        while not _taken(lock):
            if time.monotonic() - told >= TELL_S:
                told = time.monotonic()
                on_progress(f"another process prepares {title}; waiting for it, {elapsed(told - began)} so far")
            time.sleep(_LOOK_S)
        yield


def _taken(lock: TextIO) -> bool:
    """Take a file lock, unless another process has it; return whether it is taken."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def elapsed(seconds: float) -> str:
    """Return a time as minutes and seconds, such as `13:46`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
