"""Commands for definitions and schedules, for what is wrong, and for admins."""

import click

from vkprovider.cli.shared import candidates
from vkprovider.cli.shared.lazy import runs
from vkprovider.cli.shared.options import (
    START_WAIT,
    context_options,
    document_option,
    output_option,
    place_options,
    timeout_option,
)


@click.command(epilog="Example: kubectl lablet define branch.yaml --version 1.1.0 --try")
@click.argument("file", shell_complete=candidates.files)
@click.option("--name", metavar="NAME", help="Name of the definition (default: the file's).")
@click.option("--version", metavar="VERSION", help="Version of the content (default: 1.0.0 for a new definition).")
@click.option(
    "--shared",
    is_flag=True,
    help="Let instructors of all classes read the topology of a class's definition, and run it.",
)
@click.option(
    "--menu",
    is_flag=True,
    help="Let learners of the class start it on the portal; its topology is --shared then.",
)
@click.option("--dry-run", is_flag=True, help="Check the file, and say what would be done; nothing is written.")
@click.option("--try", "try_it", is_flag=True, help="Boot one lablet of it in the namespace, and remove it again.")
@timeout_option(START_WAIT)
@place_options
@runs("define", of="vkprovider.cli.lablet.define")
def define() -> None:
    """Make or change a LabletDefinition of FILE, a topology as CML exports it; - is standard input.

    It is checked as the provider checks it, and waited for until the provider has read it. A version never gets other
    content: lablets that run keep theirs, and new ones take the new version.

    A definition that an instructor makes belongs to the namespace of the class (label vkprovider.io/owner-namespace),
    and is changed by its instructors. Its topology is in a ConfigMap there, and only Pods of the namespace run it,
    unless it is --shared. With --menu who attends the class may start it on the portal as a lab of their own, which the
    class's instructors see.
    """


@click.command(epilog="Example: kubectl lablet doctor -n friday")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@place_options
@runs("doctor", of="vkprovider.cli.lablet.doctor")
def doctor() -> None:
    """Check the namespace of a class: one line per fault, with the object and the remedy.

    It takes an instructor's rights, and checks these, the definitions that the namespace owns or runs, the workers for
    them, whether a lablet would be accepted, Pods that wait, pools that lack some, and quotas. Nothing is changed.
    `vkprovider doctor` is the one for admins: of the provider, and of all workers.

    Exit code 0: healthy; 1: faults; 2: not everything could be checked, and no fault was found.
    """


@click.command(
    epilog="Example: kubectl lablet schedule deployment/warm --at 09:00 --ready 24 --until 17:00 --days mon,wed --tz "
    "Europe/Berlin"
)
@click.argument("what", metavar="[deployment/NAME]", required=False, shell_complete=candidates.lablets_and_pools)
@click.option("--at", metavar="TIME[,TIME]", help="When all lablets are to be Ready, such as 09:00.")
@click.option("--until", metavar="TIME[,TIME]", help="When the pool gets small again, such as 17:00.")
@click.option("--days", metavar="DAYS", help="Days of the week: mon,wed or mon-fri or daily.")
@click.option("--tz", "zone", metavar="ZONE", help="The time zone of these times, such as Europe/Berlin.")
@click.option("--ready", type=click.IntRange(1, 1000), metavar="N", help="How many free lablets the pool has then.")
@click.option(
    "--rest", type=click.IntRange(0, 1000), default=0, metavar="N", help="How many at other times (default: 0)."
)
@click.option("--boots", metavar="DURATION", help="How long a lablet boots (default: as measured).")
@click.option("--image", metavar="IMAGE", help="Image of the Jobs (default: the one that an admin named by `grant`).")
@click.option("--list", "lists", is_flag=True, help="Show the schedules of the namespace.")
@click.option(
    "--delete", "deletes", is_flag=True, help="Delete the schedule of deployment/NAME; the pool stays as it is."
)
@click.option("--dry-run", is_flag=True, help="Write nothing; with -o yaml or json, print the objects.")
@output_option
@place_options
@runs("schedule", of="vkprovider.cli.lablet.schedules")
def schedule() -> None:
    """Have the pool deployment/NAME full when a class begins, and small again when it ends, each week.

    It writes CronJobs of the namespace, which set the replicas of that Deployment, and what acts for them, which may do
    nothing else. One call is the whole schedule of a pool: another one takes its place, and the same one changes
    nothing. --at 09:00,14:00 --until 12:00,17:00 are two classes a day.

    Lablets begin to boot as long before as the slowest free lablet of the definition took, and a tenth and a minute
    more. Where none is there to tell, they begin as early as the definition lets a device boot, which is said; run the
    same command again while the pool is full. The end takes free lablets alone: one that a learner has left the pool.

    Clocks may change: 09:00 is 09:00 in summer and in winter, and what becomes of times that clocks jump over or show
    twice is said for a year ahead. The Jobs run on an ordinary node, with the image of the installation.
    """


@click.command("__scale", hidden=True)
@click.argument("pool")
@click.argument("replicas", type=click.IntRange(0, 1000))
@place_options
@runs("scale", of="vkprovider.cli.lablet.schedules")
def scale() -> None:
    """Set the replicas of Deployment POOL: what a Job of a schedule does, with no other right."""


@click.command("refresh", epilog="Example: kubectl lablet refresh netlab")
@click.argument("name", shell_complete=candidates.definitions)
@click.option("--force", is_flag=True, help="Adopt the content even if its version is the current one.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Whether to wait for the outcome.")
@timeout_option("2m")
@document_option
@context_options
@runs("refresh_definition", of="vkprovider.cli.lablet.refresh")
def refresh_definition() -> None:
    """Read the content of LabletDefinition NAME again, from its object store or ConfigMap.

    New pods use the new content; running lablets keep theirs.
    """


@click.command(epilog="Example: kubectl lablet grant teacher -n friday")
@click.argument("user")
@click.option("--group", is_flag=True, help="USER is a group.")
@click.option(
    "--page-url",
    metavar="URL",
    default="",
    help="Address of the provider's page (default: what the CMLWorkers show, by VKPROVIDER_PAGE_URL).",
)
@click.option(
    "--username-prefix",
    metavar="PREFIX",
    default=None,
    help="What the usernames of learners begin with in the cluster, such as oidc:, what "
    "VKPROVIDER_PORTAL_USERNAME_PREFIX says to the portal (default: as before; at first none).",
)
@click.option(
    "--links/--no-links",
    default=None,
    help="Whether learners may get links, by which one needs no account (default: as before; at first not).",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; with -o yaml or json, without asking the cluster.")
@document_option
@click.option(
    "--provider-namespace",
    shell_complete=candidates.namespaces,
    default="vkprovider-system",
    show_default=True,
    metavar="NAMESPACE",
    help="Namespace of the provider.",
)
@place_options
@runs("grant", of="vkprovider.cli.lablet.granting")
def grant() -> None:
    """Make USER an instructor of the namespace that -n names, which takes an administrator of the cluster.

    USER is a name as `kubectl auth whoami` shows it; a ServiceAccount is system:serviceaccount:NAMESPACE:NAME. The
    ClusterRole vkprovider-instructor is bound in the namespace, and vkprovider-instructor-definitions in the cluster;
    Pods of the namespace may be lablets, and the provider may read its ConfigMaps, where the topologies are. What is
    there already stays as it is. When the first of these bindings is deleted, USER is no longer an instructor of that
    namespace.

    Instructors send their tokens to the address of the provider's page that is printed, and written on the RoleBinding
    vkprovider-instructor: look at it. Another one is written when this runs again.

    With --links the namespace gets the label vkprovider.io/links=allowed: its instructors may give each learner an
    address of the portal that opens the learner's lablet for all who have it (`kubectl lablet assign --links`).
    """


@click.command(epilog="Example: kubectl lablet approve cml-7")
@click.argument("worker", shell_complete=candidates.workers)
@context_options
@runs("approve", of="vkprovider.cli.lablet.granting")
def approve() -> None:
    """Approve CMLWorker WORKER, which was made for an agent: its Node is uncordoned, and lablets may begin there."""
