"""Recordings of what people type at a terminal, on a sandbox that is up: each command is run, its lines are kept."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from tools.recording import Recording, keep
from vkpsandbox.demo.terminal import DemoError, Terminal

_READ_S: Final = 1.5
"""The pause before the next command is typed."""
_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.05
_LEAVE: Final = "\x1d"
"""Ctrl-], which leaves a console."""


class Session:
    """What is typed at one terminal, and what is printed there."""

    def __init__(self, which: Recording, terminal: Terminal) -> None:
        """Begin with nothing; `which` is written by `end`."""
        self._which = which
        self._terminal = terminal
        self._began = time.monotonic()
        self._said: list[tuple[float, str]] = []

    def run(self, command: str) -> str:
        """Type a command, and wait for its end; return what it printed.

        Raises:
            DemoError: It fails.
        """
        self._type(command)
        said = self._terminal.run(command)
        self._print(said)
        return said

    def at_a_console(self, command: str, prompt: str, keys: Sequence[tuple[str, str]]) -> None:
        """Type a command that opens a console, type there, and leave it.

        Args:
            command: What opens it.
            prompt: What the device shows when it waits for a command.
            keys: What is typed, each with what the device prints then.

        Raises:
            DemoError: It does not come.
        """
        self._type(command)
        with self._terminal.watching(command) as screen:
            shown = 0

            def until(words: str) -> None:
                nonlocal shown
                wait(lambda: words in screen.text[shown:], f"{words!r} after {screen.text!r}")
                whole, _, _ = screen.text.rpartition("\n")
                self._print(whole[shown:])
                shown = len(whole)

            screen.type("\r")
            until(prompt)
            for typed, answer in keys:
                screen.type(f"{typed}\r")
                until(answer)
            screen.type(_LEAVE)
            time.sleep(_READ_S)
            self._print(screen.text[shown:])

    def end(self) -> None:
        """Write the recording."""
        keep(self._which, self._said)
        print(f"wrote {self._which.cast}")

    def _type(self, command: str) -> None:
        if self._said:
            time.sleep(_READ_S)
        self._said.append((self._now(), f"$ {command}"))

    def _print(self, text: str) -> None:
        lines = text.replace("\r", "").splitlines()
        self._said += [(self._now(), line.rstrip()) for line in lines if line.strip()]

    def _now(self) -> float:
        return time.monotonic() - self._began if self._said else 0.0


def wait(done: Callable[[], bool], what: str) -> None:
    """Wait until something is done.

    Raises:
        DemoError: It is not.
    """
    until = time.monotonic() + _PATIENCE_S
    while not done():
        if time.monotonic() > until:
            raise DemoError(f"no {what}")
        time.sleep(_POLL_S)
