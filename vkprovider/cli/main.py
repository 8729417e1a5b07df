"""The command `vkprovider`: subcommands are imported only when they run, so that `--help` is quick."""

import importlib
from importlib.metadata import entry_points
from typing import Final

import click

from vkprovider import __version__

COMMANDS: Final = {
    "run": ("vkprovider.cli.run:run", "Run the controller, one replica."),
    "agent": ("vkprovider.cli.agent:agent", "Run the agent beside a CML worker that the cluster cannot dial."),
    "crds": ("vkprovider.cli.crds:crds", "Print the custom resource definitions."),
    "doctor": ("vkprovider.cli.doctor:doctor", "Check a cluster and its workers, one line per fault."),
}
"""Subcommand: (module:attribute of the click command, one line of help)."""

GROUP: Final = "vkprovider.commands"
"""The entry-point group in which other distributions, such as the sandbox, offer tables like `COMMANDS`."""


def commands() -> dict[str, tuple[str, str]]:
    """Return the own subcommands, then those of installed distributions; a name is never replaced."""
    found = dict(COMMANDS)
    for entry in entry_points(group=GROUP):
        for name, command in entry.load().items():
            found.setdefault(name, command)
    return found


class LazyGroup(click.Group):
    """A group whose subcommands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Return the names of the subcommands, the own ones first."""
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        """Import one subcommand, or None if there is no such name."""
        command_entry = COMMANDS.get(cmd_name) or commands().get(cmd_name)
        if command_entry is None:
            return None
        module, _, attribute = command_entry[0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101 (every entry of a table names a click command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (as click calls it)
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in commands().items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="vkprovider")
def main() -> None:
    """Cisco Modeling Labs workers as Kubernetes nodes, labs as pods."""
