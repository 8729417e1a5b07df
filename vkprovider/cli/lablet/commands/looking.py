"""Commands that look: list, ports, configs."""

import click

from vkprovider.cli.shared import candidates
from vkprovider.cli.shared.lazy import runs
from vkprovider.cli.shared.options import document_option, learner_option, output_option, place_options, scope_options


@click.command("list", epilog="Example: kubectl lablet list -l class=monday --watch")
@output_option
@click.option("-w", "--watch", is_flag=True, help="After the list, print a row for each change, until Ctrl-C.")
@scope_options
@runs("list_lablets", of="vkprovider.cli.lablet.listing")
def list_lablets() -> None:
    """List lablets: definition, version, state, worker, lab and user of each.

    -o wide adds the end of the timeslot, the worker's address, the digest of the content, the reason of what is not
    Ready, and the link to the lab in CML.
    """


@click.command(epilog="Example: kubectl lablet ports mylab-0 -o wide")
@click.argument("pod", metavar="[POD]", required=False, shell_complete=candidates.lablets)
@learner_option
@output_option
@place_options
@runs("ports", of="vkprovider.cli.lablet.ports")
def ports() -> None:
    """Show where the devices of POD are reached: address and port for each way in."""


@click.command(epilog="Example: kubectl lablet configs mylab-0 --dir ./work")
@click.argument("what", metavar="[POD|UID]", required=False, shell_complete=candidates.lablets)
@click.option(
    "-u",
    "--learner",
    metavar="LEARNER",
    shell_complete=candidates.learners,
    help="What this learner left last, in any lablet of the namespace or in POD.",
)
@click.option("--device", metavar="NAME", help="Only the device with this label.")
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    shell_complete=candidates.folders,
    help="Write a file per device into DIR (default: print).",
)
@document_option
@click.option(
    "--provider-namespace",
    shell_complete=candidates.namespaces,
    default="vkprovider-system",
    show_default=True,
    metavar="NAMESPACE",
    help="Namespace of the provider; needs the right to read ConfigMaps there.",
)
@place_options
@runs("configs", of="vkprovider.cli.lablet.configs")
def configs() -> None:
    """Show the configurations that the devices of POD had when they were last stopped or collected.

    They are kept for a week after that. Of several Pods with one name, the newest with an archive counts, and what a
    learner left goes before what was read of a lab that nobody had. A UID selects one Pod, UID-TIME an earlier learner
    of it, and --learner a learner, whichever Pod it was.
    """
