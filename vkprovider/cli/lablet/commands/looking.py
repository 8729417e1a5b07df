"""Read-only commands: list, ports, configs."""

import click

from vkprovider.cli.shared import candidates
from vkprovider.cli.shared.lazy import runs
from vkprovider.cli.shared.options import (
    document_option,
    learner_option,
    learners_option,
    output_option,
    place_options,
    scope_options,
    selector_option,
)
from vkprovider.cli.shared.page.options import page_options
from vkprovider.lablet.standings import Standing


@click.command("list", epilog="Example: kubectl lablet list -l class=monday --state 'needs help'")
@output_option
@click.option("-w", "--watch", is_flag=True, help="After the list, print a row for each change, until Ctrl-C.")
@click.option(
    "--state",
    "states",
    type=click.Choice([str(standing) for standing in Standing]),
    multiple=True,
    metavar="STATE",
    help="Only those that stand so, such as free; may be repeated.",
)
@learners_option("Only those of this learner; may be repeated.")
@click.option(
    "--sort",
    type=click.Choice(["learner", "state", "since", "left", "name"]),
    default="learner",
    show_default=True,
    help="By what the rows are sorted.",
)
@click.option(
    "--past",
    is_flag=True,
    help="Instead: what learners left within a week, with their grades, also of Pods that are gone or another's now.",
)
@click.option(
    "--for",
    "system",
    type=click.Choice(["moodle", "canvas"]),
    help="With --past: the grades as a CSV file that the gradebook of Moodle or Canvas imports.",
)
@click.option(
    "--points",
    type=click.FloatRange(min=0, min_open=True),
    default=100.0,
    show_default=True,
    metavar="N",
    help="With --for: the points that are possible.",
)
@click.option(
    "--column", metavar="TITLE", default="", help="With --for: what the column is called (default: the definition)."
)
@page_options
@scope_options
@runs("list_lablets", of="vkprovider.cli.lablet.lists")
def list_lablets() -> None:
    """List lablets, the learner first: how each stands, since when, the time left, the booted devices.

    STATE is one of: needs help, unreachable, repairing, waiting, booting, ready, working, stopped, handed in, passed,
    not passed, failed, ending, returning, free. Times are those of this machine's time zone. -o wide adds definition,
    version, worker, lab, age, the end of the timeslot, the worker's address, the digest of the content, and the link
    to the lab in CML. -o csv is for a spreadsheet, with the fields of -o json.

    --past lists learner, passed, score and when the work was collected, newest first with --sort since. It asks the
    provider's page, and takes the right to `get` `lablets/archive` in the namespace, as in the ClusterRole
    vkprovider-archive. -l selects by the labels that the Pods had. --for moodle or canvas prints the last grade of each
    learner for the gradebook there: a score is scaled to --points, a verdict without one is all points or none.
    """


@click.command(epilog="Example: kubectl lablet ports mylab-0 -o wide")
@click.argument("pod", metavar="[POD]", required=False, shell_complete=candidates.lablets)
@learner_option
@output_option
@place_options
@runs("ports", of="vkprovider.cli.lablet.addresses")
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
@selector_option("The learners of all lablets whose Pods had labels that this selects; with --dir or --zip.")
@click.option("--all", "every", is_flag=True, help="All learners of the namespace, also of Pods that are gone.")
@click.option("--device", metavar="NAME", help="Only the device with this label.")
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    shell_complete=candidates.folders,
    help="Write a file per device into DIR (default: print); with -l or --all, a folder per learner.",
)
@click.option(
    "--zip",
    "archive",
    metavar="FILE",
    shell_complete=candidates.files,
    help="With -l or --all: write all of it into one zip file.",
)
@document_option
@click.option(
    "--provider-namespace",
    shell_complete=candidates.namespaces,
    default="",
    metavar="NAMESPACE",
    help="Namespace of the provider: read its ConfigMaps, instead of asking the page; it takes an admin's right.",
)
@page_options
@place_options
@runs("configs", of="vkprovider.cli.lablet.configs")
def configs() -> None:
    """Show the configurations that the devices of POD had when they were last stopped or collected.

    They are kept for a week after that. Of several Pods with one name, the newest with an archive counts, and what a
    learner left goes before what was read of a lab that nobody had. A UID selects one Pod, UID-TIME an earlier learner
    of it, and --learner a learner, whichever Pod it was. -l and --all write what each learner left last.

    It is read from the provider's page, and takes the right to `get` `lablets/archive` in the namespace, as in the
    ClusterRoles vkprovider-instructor and vkprovider-archive.
    """
