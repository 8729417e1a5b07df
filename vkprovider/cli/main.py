"""The command `vkprovider`: subcommands are imported only when they run, so that `--help` is quick."""

from importlib.metadata import entry_points
from typing import Final

import click

from vkprovider import __version__
from vkprovider.cli.shared.lazy import LazyGroup

COMMANDS: Final = {
    "run": ("vkprovider.cli.programs:run", "Run the controller, one replica."),
    "agent": ("vkprovider.cli.programs:agent", "Run the agent beside a CML worker that the cluster cannot dial."),
    "mux": ("vkprovider.cli.programs:mux", "Serve muxes: Services whose load balancer others share."),
    "portal": ("vkprovider.cli.programs:portal", "Serve user labs: a lab on request, by REST."),
    "relay": ("vkprovider.cli.programs:relay", "Keep an HAProxy as a mux wants it."),
    "prepull": ("vkprovider.cli.prepull:prepull", "Have ordinary Nodes pull images before somebody waits for them."),
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


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    whole=commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="vkprovider")
def main() -> None:
    """Cisco Modeling Labs workers as Kubernetes nodes, labs as pods."""
