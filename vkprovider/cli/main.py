"""The command `vkprovider`: subcommands are imported only when they run, so that `--help` is quick."""

import importlib
from typing import Final

import click

from vkprovider import __version__

COMMANDS: Final = {
    "run": ("vkprovider.cli.run:run", "Run the controller, one replica."),
    "sandbox": ("vkprovider.cli.sandbox:sandbox", "A real Kubernetes control plane with simulated CML workers."),
    "demo": ("vkprovider.cli.demo:demo", "Show a Deployment of lablets on a sandbox, from start to finish."),
    "sim": ("vkprovider.cli.sim:sim", "Run a simulator alone."),
    "crds": ("vkprovider.cli.crds:crds", "Print the custom resource definitions."),
    "doctor": ("vkprovider.cli.doctor:doctor", "Check a cluster and its workers, one line per fault."),
}
"""Subcommand: (module:attribute of the click command, one line of help)."""


class LazyGroup(click.Group):
    """A group whose subcommands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Name the subcommands in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's signature)
        """Import one subcommand, or None if there is no such name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)  # noqa: S101 (the table above is ours)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (as click calls it)
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="vkprovider")
def main() -> None:
    """Cisco Modeling Labs workers as Kubernetes nodes, labs as pods."""
