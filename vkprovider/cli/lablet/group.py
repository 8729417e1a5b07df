"""The command `kubectl lablet`, and the table of its subcommands."""

from typing import Any, Final

import click

from vkprovider import __version__
from vkprovider.cli.shared.lazy import LazyGroup

_HERE: Final = "vkprovider.cli.lablet"
COMMANDS: Final = {
    "list": (f"{_HERE}.commands.looking:list_lablets", "List lablets; --watch follows them."),
    "ports": (f"{_HERE}.commands.looking:ports", "Show where the devices of a lablet are reached."),
    "configs": (f"{_HERE}.commands.looking:configs", "Show the configurations that a lablet has left."),
    "console": (f"{_HERE}.commands.using:console", "Connect this terminal with the console of a device."),
    "logs": (f"{_HERE}.commands.using:logs", "Print the story of a lablet, or a device's console log."),
    "forward": (f"{_HERE}.commands.using:forward", "Forward a port of this machine to one of a lablet."),
    "screen": (f"{_HERE}.commands.using:screen", "Lead a VNC viewer to the screen of a device."),
    "capture": (f"{_HERE}.commands.using:capture", "Write the packets of a link to a pipe or a file."),
    "login": (f"{_HERE}.commands.using:login", "Print the URL where the learner of a lablet logs in."),
    "portal": (f"{_HERE}.commands.using:portal", "Print an address that logs a browser in at the portal."),
    "assign": (f"{_HERE}.commands.learners:assign", "Assign a warm lablet to a learner."),
    "links": (f"{_HERE}.commands.learners:links", "Show, renew or take back the links of learners without account."),
    "share": (f"{_HERE}.commands.learners:share", "Let a second person into a learner's lablet."),
    "extend": (f"{_HERE}.commands.learners:extend", "Give learners more time."),
    "release": (f"{_HERE}.commands.learners:release", "End learners' sessions, so that their lablets are free."),
    "collect": (f"{_HERE}.commands.learners:collect", "End the learners' time: collect and grade the work."),
    "hand-in": (f"{_HERE}.commands.learners:hand_in", "Hand in the work of a learner, as the learner."),
    "message": (f"{_HERE}.commands.learners:message", "Tell learners something."),
    "stop": (f"{_HERE}.commands.learners:stop", "Stop labs and keep their disks."),
    "start": (f"{_HERE}.commands.learners:start", "Start labs again after `stop`."),
    "device": (f"{_HERE}.commands.learners:device", "Start, stop, restart or wipe one device of a lab."),
    "reset": (f"{_HERE}.commands.learners:reset", "Wipe labs and start them again."),
    "schedule": (f"{_HERE}.commands.administering:schedule", "Have a pool full when a class begins."),
    "define": (f"{_HERE}.commands.administering:define", "Make a LabletDefinition of a topology, checked and tried."),
    "doctor": (f"{_HERE}.commands.administering:doctor", "Check the namespace of a class, one line per fault."),
    "refresh": (f"{_HERE}.commands.administering:refresh_definition", "Read the content of a LabletDefinition again."),
    "grant": (f"{_HERE}.commands.administering:grant", "Make a user an instructor of a namespace."),
    "approve": (f"{_HERE}.commands.administering:approve", "Let lablets begin on a worker that an agent has brought."),
    "__complete": (f"{_HERE}.completion:answer", ""),
    "__scale": (f"{_HERE}.commands.administering:scale", ""),
    "completion": (f"{_HERE}.completion:completion", "Print what makes a shell complete `kubectl lablet`."),
}
"""Subcommand: (module:attribute of the click command, one line of help); without help it is not shown."""

PROGRAM: Final = "kubectl-lablet"
"""The name by which kubectl finds the plugin on PATH."""
COMPLETE_VARIABLE: Final = "_KUBECTL_LABLET_COMPLETE"
"""The environment variable by which click's scripts ask for candidates."""


class Plugin(LazyGroup):
    """The command, under the name that users type."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run it; see `click.Command.main`."""
        options = {"prog_name": "kubectl lablet", "complete_var": COMPLETE_VARIABLE, **options}
        return super().main(*args, **options)


@click.group(
    name="kubectl lablet",
    cls=Plugin,
    table=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="kubectl lablet")
def main() -> None:
    """Show and operate lablets: labs of Cisco Modeling Labs that run as pods."""
