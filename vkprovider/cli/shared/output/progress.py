"""What is shown while a command waits.

On a terminal it is one line that is updated in place; in a pipe, and on a terminal that cannot do that, a line for each
change. Both go to standard error, so that standard output has results alone.
"""

import sys
import time
from types import TracebackType
from typing import Self

import click

from vkprovider.cli.shared.output import terminal
from vkprovider.cli.shared.output.tables import shorten
from vkprovider.platform.wording import plain

_CLEAR = "\r\x1b[K"


class Progress:
    """Shows how far things are; a context manager, which leaves a clean line behind."""

    def __init__(self) -> None:
        self._live = terminal.is_live(sys.stderr)
        self._stages: dict[str, str] = {}
        self._began = time.monotonic()
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._clear()

    @property
    def waiting(self) -> int:
        """How many things are on their way."""
        return len(self._stages)

    def stage(self, name: str, text: str) -> None:
        """Show how far a thing is."""
        text = plain(text)
        changed = self._stages.get(name) != text
        self._stages[name] = text
        if self._live:
            self._draw(f"{name} {text}".rstrip())
        elif changed:
            click.echo(f"{name} {text}".rstrip(), err=True)

    def done(self, name: str, text: str) -> None:
        """Print the result of a thing for good."""
        self._leave(name)
        click.echo(text)

    def failed(self, name: str, text: str) -> None:
        """Print the failure of a thing for good."""
        self._leave(name)
        click.echo(f"Error: {text}", err=True)

    def _leave(self, name: str) -> None:
        self._stages.pop(name, None)
        self._clear()

    def _draw(self, text: str) -> None:
        others = len(self._stages) - 1
        text += f", and {others} more" if others > 0 else ""
        seconds = f" ({time.monotonic() - self._began:.0f} s)"
        width = (terminal.columns(sys.stderr) or 80) - 1 - len(seconds)
        self._drawn = True
        click.echo(_CLEAR + shorten(" ".join(text.split()), width) + seconds, err=True, nl=False, color=True)

    def _clear(self) -> None:
        if self._drawn:
            self._drawn = False
            click.echo(_CLEAR, err=True, nl=False, color=True)
