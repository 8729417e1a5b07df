"""Commands for learners: their time, and their labs' stop, start and reset."""

from typing import Final

import click

from vkprovider.cli.shared import candidates
from vkprovider.cli.shared.lazy import runs
from vkprovider.cli.shared.options import (
    chosen_options,
    learners_option,
    output_option,
    place_options,
    portal_option,
    start_options,
    timeout_option,
    wait_options,
)
from vkprovider.cli.shared.page.options import page_options

ACTS: Final = ("start", "stop", "restart", "wipe")
"""Those of `DeviceAct`, which costs more to import than a help text may."""


@click.command(epilog="Example: kubectl lablet assign deployment/warm alice --until 16:00")
@click.argument("what", metavar="POD|deployment/NAME", shell_complete=candidates.lablets_and_pools)
@click.argument("user", metavar="[USER]", required=False)
@click.option("--name", "shown", metavar="NAME", help='How people know USER, such as "Müller, Anna".')
@click.option(
    "--from-file",
    metavar="FILE",
    shell_complete=candidates.files,
    help="One lablet of the pool to each learner of this list, - for standard input: names in lines, or the first "
    "column of a CSV file.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask about names that differ in case only.")
@click.option("--refill", is_flag=True, help="With --from-file: the pool makes new lablets instead of getting smaller.")
@click.option("--dry-run", is_flag=True, help="With --from-file: say who would get a lablet, and give none.")
@output_option
@click.option("--until", metavar="TIME|DURATION", help="End of the timeslot; a duration counts from its start.")
@click.option("--from", "since", metavar="TIME|DURATION", help="Start of the timeslot (default: now).")
@click.option("--links", is_flag=True, help="Give each learner a link, which opens the lablet without an account.")
@portal_option
@page_options
@place_options
@runs("assign", of="vkprovider.cli.lablet.timeslots")
def assign() -> None:
    """Assign a warm lablet to USER: POD, or a free one of a Deployment; or one to each learner of a file.

    The Pod leaves its pool: its label vkprovider.io/pool is removed, so that neither a scale-down nor a rollout of a
    Deployment that selects by that label can end it, and the pool makes a new warm one. When the learner's time is over
    the lab is wiped and the Pod returns to the pool. Times are 16:00, the next one on this machine's clock,
    2026-01-31T12:00:00Z, 90m or +2h.

    The learner, whose name is that of a user of the cluster without the prefix that an admin has named (`kubectl lablet
    grant --username-prefix`), may read that Pod and open its consoles, until the lablet is another one's: a Role and a
    RoleBinding `vkprovider-assigned:POD` say so. The same command may be run again: a learner
    who has that lablet, or one of the Deployment's, keeps it.

    With --from-file a learner who has a lablet of the pool's definition keeps it, so that the same command may be run
    again; for each of the others the pool gets smaller by one. The hand-out says who has which lablet, and where that
    learner begins; -o csv is for a spreadsheet. Where there is a Lab Delivery System that is the login URL, complete if
    you may log in (`kubectl lablet login`): hand it to nobody but the learner.

    With --links each learner gets an address of the portal, too, for a class whose people have no account: who has it
    works in that lablet, until the learner's time is over, and does nothing else. It is printed once, for nobody can
    read it again; a learner who has one keeps it (`kubectl lablet links --renew`). An admin has allowed it for the
    namespace: `kubectl lablet grant --links`.
    """


@click.command(epilog="Example: kubectl lablet links --renew -u alice --portal https://labs.example.com")
@click.option("--renew", is_flag=True, help="Make links again: those that learners have open nothing any more.")
@click.option("--revoke", is_flag=True, help="Take links back.")
@click.option("--all", "every", is_flag=True, help="Of all learners who have one.")
@learners_option("Of this learner; may be repeated.")
@portal_option
@output_option
@place_options
@runs("links", of="vkprovider.cli.lablet.links")
def links() -> None:
    """Show which learners have links, which lead to their lablets without an account; renew them or take them back.

    What a link is opened with is printed when it is made (`kubectl lablet assign --links`), and cannot be read again.
    With --renew a learner gets another link, which is printed, and with --revoke none; both need -u or --all. What is
    open of the link before ends within a minute. A link ends by itself with the learner's time.

    Links of guests are listed, too, each with the learner whose lablet it opens; `kubectl lablet share` makes them, and
    --end there takes them back.
    """


@click.command(epilog="Example: kubectl lablet share alice bob --type")
@click.argument("lablet", metavar="POD|LEARNER", shell_complete=candidates.lablets)
@click.argument("guest", metavar="GUEST")
@click.option("--type", "types", is_flag=True, help="The guest works at the consoles, too, instead of watching.")
@click.option("--end", is_flag=True, help="Let the guest in no more.")
@click.option("--link", is_flag=True, help="Give the guest a link, which opens that lablet without an account.")
@portal_option
@place_options
@runs("share", of="vkprovider.cli.lablet.sharing")
def share() -> None:
    """Let GUEST into the lablet of a learner, to watch the consoles, or with --type to work at them.

    The guest sees that lablet on the portal as its learner does, and neither hands it in nor resets it; that ends with
    the learner's time. The same command with or without --type changes what the guest does. A lablet has three guests
    at most. GUEST is a name as `assign` takes it. With --link it may be anybody's, who gets an address of the portal;
    it is printed once, and the same command makes another one in its place.

    That a guest only watches is kept by the portal: a guest with a token of the cluster could type by kubectl.
    """


@click.command(epilog="Example: kubectl lablet extend --all --by 15m")
@click.option("--by", metavar="DURATION", help="Add that much to the end that each timeslot has.")
@click.option("--until", metavar="TIME|DURATION", help="The new end; a duration counts from now.")
@click.option("--all", "every", is_flag=True, help="All lablets of the namespace that a learner has.")
@chosen_options
@runs("extend", of="vkprovider.cli.lablet.timeslots")
def extend() -> None:
    """Give the learner of each POD more time: move the end of the timeslot.

    It counts at once. Where a Lab Delivery System has a session for the learner, it gets the new end, too; an Event of
    the Pod says so (TimeslotChanged), or why it keeps the end that it has (TimeslotNotChanged). --until also gives an
    end to a time that is open. -l and --all pass over lablets without a learner. Times are 16:00, the next one on this
    machine's clock, 2026-01-31T12:00:00Z, 90m or +2h.
    """


@click.command(epilog="Example: kubectl lablet release mylab-0")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Whether to wait for the end.")
@timeout_option("10m")
@chosen_options
@runs("release", of="vkprovider.cli.lablet.timeslots")
def release() -> None:
    """End the session of each POD's learner: collect and grade the work, archive the session, wipe the lab.

    -l passes over lablets without a learner. A pool's lablet goes back to its pool, warm.
    Any other lablet ends, and its Pod is deleted, so that its controller makes a new one; the Pod of a Job stays,
    because the Job counts it. With --no-wait an ended Pod stays, too.
    `kubectl lablet configs` shows what was collected.
    """


@click.command(epilog="Example: kubectl lablet collect mylab-0 --wait")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@wait_options
@page_options
@chosen_options
@runs("collect", of="vkprovider.cli.lablet.acts")
def collect() -> None:
    """End the learner's time with each POD now, after a question: collect the work, have it graded, end the lablet.

    The lablet ends as Succeeded or Failed, as the grader decides; without a grader it succeeds. A pool's lablet is
    wiped and returns to the pool instead. Of the lablets that -l selects, the free ones of pools are left alone.
    `kubectl lablet configs POD` shows what was collected. With --wait the command fails if a lablet does, and with -l
    it ends with the grades: learner, passed, score. Those of lablets that go back to a pool are read from the
    provider's page, as `kubectl lablet list --past` shows them.
    """


@click.command("hand-in", epilog="Example: kubectl lablet hand-in mylab-0")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@wait_options
@chosen_options
@runs("hand_in", of="vkprovider.cli.lablet.acts")
def hand_in() -> None:
    """Hand in the work of each POD, after a question: the learner's time with it ends now.

    It is `collect` as a learner may ask for it: who may open the consoles of a lablet, and not change its Pod, has the
    provider do it, by `kubectl exec POD -c lab -- hand-in`. A learner without a right to list Pods names the POD.
    """


@click.command(epilog='Example: kubectl lablet message --all -m "We go on at 14:00."')
@click.option("-m", "--message", "text", metavar="TEXT", help="What to say; empty: nothing any more.")
@click.option("--all", "every", is_flag=True, help="All lablets of the namespace that a learner has.")
@chosen_options
@runs("message", of="vkprovider.cli.lablet.acts")
def message() -> None:
    """Tell the learner of each POD something: on the page of the lab, and in each console that is open.

    It has up to 500 characters, stays until the next one, and ends with the learner's time. -l and --all pass over
    lablets without a learner.
    """


@click.command(epilog="Example: kubectl lablet stop mylab-0 --wait")
@wait_options
@chosen_options
@runs("stop", of="vkprovider.cli.lablet.acts")
def stop() -> None:
    """Stop the lab of each POD and keep its disks, for 24 hours at most.

    What runs in the devices is lost, as when a machine is switched off; their configurations are saved first. A lab
    that is not Ready yet is stopped once it is.
    """


@click.command(epilog="Example: kubectl lablet start mylab-0 --wait")
@start_options
@chosen_options
@runs("start", of="vkprovider.cli.lablet.acts")
def start() -> None:
    """Start the lab of each POD again after `stop`; its disks are as they were."""


@click.command(epilog="Example: kubectl lablet device restart r1 mylab-0")
@click.argument("act", type=click.Choice(ACTS))
@click.argument("device", metavar="DEVICE")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@chosen_options
@runs("device", of="vkprovider.cli.lablet.acts")
def device() -> None:
    """Start, stop, restart or wipe one device of the lab of each POD, while the others run on.

    All but `start` ask, for what is not saved on the device is lost; a device that is wiped begins with the
    configuration that CML has stored (`reset` begins with that of the lab), and is started again if it was on. A device
    that is stopped this way stays off until it is started, and the lablet is Ready without it. Who may open the
    consoles of a lablet may do this: the provider does it, by `kubectl exec POD -c lab -- device restart r1`.
    """


@click.command(epilog="Example: kubectl lablet reset mylab-0")
@click.option("--saved", is_flag=True, help="Begin each lab from what its learner left last, as the provider keeps it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@start_options
@page_options
@chosen_options
@runs("reset", of="vkprovider.cli.lablet.acts")
def reset() -> None:
    """Wipe the lab of each POD and start it again: all work in it is lost.

    The configurations are saved first, as far as the devices still answer. The learner, the session and the ports
    stay. This is also the way out of NeedsAttention. Who may open the consoles of a lablet, and not change its Pod, as
    its learner, has the provider do it, by `kubectl exec POD -c lab -- reset`.

    With --saved a class goes on where it stopped: each lab is imported again with the configurations that its learner
    left last of this definition, in whichever Pod, device by device where the labels agree. Disks begin as delivered.
    A learner of whom nothing is kept is named, and that lab is left as it is. It takes the right to change the Pod
    and to read what learners left; what each lab begins from is in its annotation `vkprovider.io/begin-from`, and a
    reset without --saved goes back to that.
    """
