"""`kubectl lablet assign --from-file`: each learner of a list gets a lablet of a pool, which gets smaller by it."""

from collections.abc import Mapping, Sequence
from typing import Final

import click
import msgspec

from vkprovider.classroom.deployments import GivingError
from vkprovider.classroom.giving import Given, give_all, preview
from vkprovider.classroom.handout import lablet_link, ways_in
from vkprovider.classroom.ledger import shortage
from vkprovider.classroom.pods import Assignment, LabletPod
from vkprovider.classroom.roster import Learner, RosterError, read_roster
from vkprovider.cli.lablet.addresses import login_url
from vkprovider.cli.lablet.links import address_of, tell_links
from vkprovider.cli.lablet.sources import read_bytes
from vkprovider.cli.lablet.timeslots import check_names, tell_doors, wish_of
from vkprovider.cli.shared import clock
from vkprovider.cli.shared.output import SHOWN_NAME, Column, Listing, Output
from vkprovider.cli.shared.page.asking import PageRefused, open_page
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import ports_of
from vkprovider.cli.shared.times import local
from vkprovider.lablet import names
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import OutsideError
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import count

_LOGINS_AT_ONCE: Final = 8


class HandOut(msgspec.Struct, frozen=True):
    """A learner's lablet, as `-o json` shows it; what is unknown is empty.

    Attributes:
        learner: Who has it.
        name: Of its Pod; empty for a learner who got none.
        until: The end of the timeslot that the Pod names.
        access: Where the learner begins: the login URL, complete if the user may log in as the learner; else the ports,
            else the command for a console.
        link: Opens the lablet without an account, if it was made now; else leads to its page, if the address of the
            portal is known.
        shown: The name by which people know the learner.
    """

    learner: str
    name: str
    until: str
    access: str
    link: str = ""
    shown: str = ""


_LINK: Final = "LINK"
"""The heading of links; no column where none are made."""
LISTING: Final[Listing[HandOut]] = Listing(
    kind="LabletHandOut",
    row=HandOut,
    columns=(
        Column("LEARNER", lambda row: row.learner),
        Column(SHOWN_NAME, lambda row: row.shown, rare=True),
        Column("UNTIL", lambda row: local(row.until, clock.now())),
        Column("ACCESS", lambda row: row.access, whole=True),
        Column("NAME", lambda row: row.name),
        Column(_LINK, lambda row: row.link, whole=True),
    ),
    name=lambda row: f"pod/{row.name}" if row.name else "",
)


def assign_all(
    deployment: str,
    source: str,
    *,
    until: str | None,
    since: str | None,
    refill: bool,
    yes: bool,
    dry_run: bool,
    links: bool,
    portal: str,
    output: Output,
    page: PageOptions,
    place: Place,
) -> None:
    """Give each learner of a list a lablet of a pool, unless the learner has one, and print the hand-out.

    With the address of a portal the hand-out has a link to each lablet there.
    """
    learners = _learners_of(source)

    async def wishes_in(kube: KubeClient) -> list[Assignment]:
        now = await clock.asked(kube)
        return [wish_of(learner, since, until, now) for learner in learners]

    async def look(kube: KubeClient, namespace: str) -> None:
        await _look(kube, namespace, deployment, await wishes_in(kube), refill=refill)

    if dry_run:
        place.run(look)
        return

    async def work(kube: KubeClient, namespace: str) -> tuple[Given, list[str], dict[str, str]]:
        wishes = await wishes_in(kube)
        await check_names(kube, namespace, [each.user for each in learners], yes=yes)
        try:
            given = await give_all(kube, namespace, deployment, wishes, refill=refill, links=links)
        except GivingError as error:
            raise click.ClickException(str(error)) from None
        await tell_doors(kube, namespace, given.done.given, given.closed)
        left = [*shortage(given.done, given.pool, namespace, refill=refill), *given.faults]
        return given, left, await _logins(kube, namespace, place, page, given.done.given)

    given, left, logins = place.run(work)
    made = {learner: address_of(portal, code) for learner, code in given.links.codes.items()}
    rows = [
        _hand_out(each, given.done.given.get(each.user), logins.get(each.user, ""), portal, made.get(each.user, ""))
        for each in learners
    ]
    LISTING.show(rows, output, nothing="", but=[] if portal else [_LINK])
    tell_links(given.links)
    if left:
        raise click.ClickException(". Besides, ".join(left))


def _learners_of(source: str) -> tuple[Learner, ...]:
    """Return the learners of a file, and say how it was read.

    Raises:
        ClickException: It cannot be read.
    """
    try:
        roster = read_roster(read_bytes(source), source)
    except RosterError as error:
        raise click.ClickException(str(error)) from None
    for note in roster.notes:
        click.echo(f"{source}: {note}", err=True)
    return roster.learners


async def _look(
    kube: KubeClient, namespace: str, deployment: str, wishes: Sequence[Assignment], *, refill: bool
) -> None:
    """Say what would become of a list.

    Raises:
        ClickException: There is no such pool.
    """
    try:
        found = await preview(kube, namespace, deployment, wishes, refill=refill)
    except GivingError as error:
        raise click.ClickException(str(error)) from None
    for line in (*found.lines(namespace), "nothing was given (dry run)"):
        click.echo(line)


async def _logins(
    kube: KubeClient, namespace: str, place: Place, page: PageOptions, given: Mapping[str, LabletPod]
) -> dict[str, str]:
    """Return the complete login URLs of learners with a session, as far as the user may have them; say why not."""
    found: dict[str, str] = {}
    with_session = {
        learner: pod
        for learner, pod in given.items()
        if pod.metadata.annotations.get(names.ANNOTATION_SESSION_LOGIN_URL)
    }
    if not with_session:
        return found
    refusals: list[str] = []
    try:
        async with open_page(kube, namespace, place, page) as asked:

            async def ask(learner: str) -> None:
                try:
                    found[learner] = await login_url(asked, with_session[learner].metadata.uid)
                except PageRefused as refusal:
                    refusals.append(refusal.message)

            await at_most(_LOGINS_AT_ONCE, ask, with_session)
    except (click.ClickException, OutsideError) as error:  # the hand-out, with codes of links, is not printed yet
        refusals.append(error.message)
    if refusals:
        lacking = count(len(with_session) - len(found), "login URL")
        click.echo(f"{lacking} without the secret part, as the Pods show them: {refusals[0]}", err=True)
    return found


def _hand_out(learner: Learner, pod: LabletPod | None, login: str, portal: str, made: str) -> HandOut:
    if pod is None:
        return HandOut(learner.user, "", "", "", shown=learner.shown)
    notes = pod.metadata.annotations
    ports = ways_in(ports_of(pod, {}))
    login = login or notes.get(names.ANNOTATION_SESSION_LOGIN_URL, "")
    access = login or "; ".join(ports) or f"kubectl lablet console {pod.metadata.name} DEVICE"
    link = made or lablet_link(portal, pod.metadata.namespace, pod.metadata.name)
    until, shown = notes.get(names.ANNOTATION_TIMESLOT_END, ""), pod.shown or learner.shown
    return HandOut(learner.user, pod.metadata.name, until, access, link, shown)
