"""Groups whose subcommands are imported only when they run, so that `--help` and completion are quick."""

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

Table = Mapping[str, tuple[str, str]]
"""Subcommand: (module:attribute of the click command, one line of help); without help it is not shown."""


def runs(function: str, *, of: str) -> Callable[[Callable[[], None]], Callable[..., Any]]:
    """Make a command's description run a function of a module, which is imported then, with the command's options."""

    def decorate(described: Callable[[], None]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            return getattr(importlib.import_module(of), function)(*args, **options)

        functools.update_wrapper(run, described)
        return run

    return decorate


class LazyGroup(click.Group):
    """A group whose subcommands are imported on use."""

    def __init__(self, *args: Any, table: Table, whole: Callable[[], Table] | None = None, **options: Any) -> None:
        """Make a group.

        Args:
            *args: For click.
            table: Its own subcommands.
            whole: Returns these and those of others, in the order in which help lists them; it is called only for a
                name that is not an own one, and for lists.
            **options: For click.
        """
        super().__init__(*args, **options)
        self._own = table
        self._table = whole or (lambda: table)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Return the names of the subcommands."""
        return [name for name, (_, text) in self._table().items() if text]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        """Import one subcommand, or None if there is no such name."""
        entry = self._own.get(cmd_name) or self._table().get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry[0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101 (every entry of a table names a click command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (as click calls it)
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table().items() if text])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the subcommands without importing them, and the group's own options."""
        found = [(name, text) for name, (_, text) in self._table().items() if text and name.startswith(incomplete)]
        return [CompletionItem(name, help=text) for name, text in found] + click.Command.shell_complete(
            self, ctx, incomplete
        )
