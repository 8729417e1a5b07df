"""A program at a terminal of its own, as a person sits at it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Pty:
    """A process whose standard streams are a terminal; as a context manager it is ended.

    Attributes:
        shown: What it has shown, without what `shows` was satisfied with, and without escape sequences unless
            `keeps_escapes`.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        columns: int = 80,
        keeps_escapes: bool = False,
    ) -> None:
        self._own, its = pty.openpty()
        self.resize(columns, 24)
        self._keeps_escapes = keeps_escapes
        self.process = subprocess.Popen(  # noqa: S603 (a test's own command)
            command, stdin=its, stdout=its, stderr=its, env=env, start_new_session=True
        )
        os.close(its)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._own)

    def type(self, text: str) -> None:
        """Type."""
        os.write(self._own, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window; the kernel signals it."""
        fcntl.ioctl(self._own, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def shows(self, text: str, within_s: float = 60.0) -> None:
        """Wait until it shows something."""
        self.until(f"({re.escape(text)})", within_s)

    def until(self, pattern: str, within_s: float = 60.0) -> str:
        """Wait until it shows something that has a form; return the first group of the pattern."""
        end_s = time.monotonic() + within_s
        while (found := re.search(pattern, self.shown)) is None:
            left_s = end_s - time.monotonic()
            assert left_s > 0, f"{pattern!r} is not shown; shown is {self.shown!r}"
            assert self._read(left_s), f"{pattern!r} is not shown, and it has ended; shown is {self.shown!r}"
        self.shown = self.shown[found.end() :]
        return found[1]

    def ends(self, within_s: float = 60.0) -> int:
        """Wait until it ends; return its exit code."""
        end_s = time.monotonic() + within_s
        while self._read(max(0.0, end_s - time.monotonic())):
            pass
        return self.process.wait(max(1.0, end_s - time.monotonic()))

    def _read(self, within_s: float) -> bool:
        """Read what is there; return False if the process has ended."""
        ready, _, _ = select.select([self._own], [], [], within_s)
        if not ready:
            return True
        try:
            data = os.read(self._own, 65536)
        except OSError:  # EIO: nobody has the other end any more
            return False
        text = data.decode(errors="replace")
        self.shown += text if self._keeps_escapes else _ESCAPES.sub("", text)
        return bool(data)
