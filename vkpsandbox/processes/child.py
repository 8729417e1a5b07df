"""One process that the supervisor owns."""

import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from vkprovider.platform.backoff import delay_s
from vkpsandbox.processes.process import ProcessSpec, ProcessStatus, Restart, environment

PR_SET_PDEATHSIG: Final = 1
"""prctl(2): the signal a process gets when its parent dies, by whatever cause."""


_BACKOFF_S: Final = (0.25, 5.0)
"""The first and the longest wait before a process is started again."""
_STEADY_S: Final = 30.0
"""A process that ran this long starts again after the first back-off."""


class Child:
    """A process: whether it should run, and its history.

    It runs in a session of its own, so that signals reach its children as well, and dies with the supervisor.

    Attributes:
        env: Variables to set besides those of its spec, from the last request to start it.
        failures: How often in a row it did not start, or ended before it had run steadily.
    """

    def __init__(self, spec: ProcessSpec, directory: Path, log: Path) -> None:
        self.spec = spec
        self.wanted = False
        self.env: Mapping[str, str] = {}
        self.restarts = 0
        self.exit_code: int | None = None
        self.failures = 0
        self._directory = directory
        self._log = log
        self._popen: subprocess.Popen[bytes] | None = None
        self._started = 0.0

    @property
    def running(self) -> bool:
        """Whether it runs, as far as `reap` has seen."""
        return self._popen is not None

    def start(self) -> None:
        """Start it.

        Raises:
            OSError: If the program is missing or cannot be executed.
        """
        self.wanted = True
        self._started = time.monotonic()
        environ = environment(os.environ, {**self.spec.env, **self.env}, self._directory)
        self.failures += 1  # unless it starts
        with self._log.open("ab") as log:
            self._popen = subprocess.Popen(  # noqa: S603 (the sandbox's own command lines)
                self.spec.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._directory,
                env=environ,
                start_new_session=True,
                preexec_fn=die_with_parent(),  # noqa: PLW1509 (the supervisor has one thread)
            )
        self.failures -= 1

    def restart_in_s(self) -> float:
        """Return the seconds to wait before it is started again."""
        return delay_s(self.failures, first_s=_BACKOFF_S[0], cap_s=_BACKOFF_S[1], dice=random.random(), floor=0.8)

    def reap(self) -> bool:
        """Return whether it has ended since the last call; if so, record its exit code and count it."""
        if self._popen is None:
            return False
        code = self._popen.poll()
        if code is None:
            return False
        self.exit_code = code
        self._kill_group(self._popen.pid)
        self._popen = None
        steady = time.monotonic() - self._started >= _STEADY_S
        self.failures = 1 if steady else self.failures + 1
        return True

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it and its children; nothing happens if it does not run."""
        if self._popen is not None:
            try:
                os.killpg(self._popen.pid, number)
            except ProcessLookupError:
                return

    def holds_after(self, number: signal.Signals, deadly: frozenset[signal.Signals]) -> bool:
        """Return whether a requested signal also means that it should stay down."""
        return number in deadly and self.spec.restart is Restart.UNLESS_KILLED

    def status(self) -> ProcessStatus:
        """Return its status."""
        state = "running" if self.running else "waiting" if self.wanted else "stopped"
        return ProcessStatus(
            name=self.spec.name,
            pid=self._popen.pid if self._popen else None,
            url=self.spec.url,
            log=str(self._log),
            restarts=self.restarts,
            state=state,
            exit_code=self.exit_code,
        )

    @staticmethod
    def _kill_group(group: int) -> None:
        """Kill what an ended process left behind in its group."""
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return


def die_with_parent() -> Callable[[], None] | None:
    """Return the function that a child runs first, so that it gets SIGKILL when this process dies (Linux only)."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def ask() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before prctl was called
            os._exit(1)

    return ask
