"""`kubectl lablet links`: who has a link; made again, or taken back."""

from collections.abc import Mapping, Sequence
from typing import Final

import click
import msgspec

from vkprovider.classroom.access import open_access
from vkprovider.classroom.links import NAMED_MAX, LinkAccount, LinkCode, LinkRound, all_links_in, make_links, take_back
from vkprovider.classroom.pods import LabletPod, pods_in
from vkprovider.cli.shared.output import SHOWN_NAME, Column, Listing, Output
from vkprovider.cli.shared.page.address import safe
from vkprovider.cli.shared.place import Place
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.messages import listed

PATH: Final = "/link"
"""The page of the portal that opens links."""
_LINK: Final = "LINK"


class LinkRow(msgspec.Struct, frozen=True):
    """A learner's link, as `-o json` shows it.

    Attributes:
        learner: Whose it is: a learner's or a guest's.
        name: Of the Pod that it leads to.
        standing: `open`, `waits` for another lablet of the learner, or `ended`.
        since: When it was made.
        link: The address; empty if it was not made now.
        shown: The name by which people know the learner.
        guest_of: Of a guest's link, the learner whose lablet it opens; "-" if that is not known.
    """

    learner: str
    name: str
    standing: str
    since: str
    link: str = ""
    shown: str = ""
    guest_of: str = ""


LISTING: Final[Listing[LinkRow]] = Listing(
    kind="LabletLink",
    row=LinkRow,
    columns=(
        Column("LEARNER", lambda row: row.learner),
        Column(SHOWN_NAME, lambda row: row.shown, rare=True),
        Column("GUEST OF", lambda row: row.guest_of, rare=True),
        Column("STATE", lambda row: row.standing),
        Column("NAME", lambda row: row.name),
        Column("SINCE", lambda row: row.since),
        Column(_LINK, lambda row: row.link, whole=True),
    ),
    name=lambda row: f"pod/{row.name}" if row.name else "",
)


def portal_of(url: str | None) -> str:
    """Return the address of the portal, without a slash at its end.

    Raises:
        UsageError: None is named.
        ClickException: It is none to which a secret may be sent.
    """
    if not url:
        raise click.UsageError("links are addresses of the portal: name it with --portal or VKPROVIDER_PORTAL_URL")
    return safe(url, "--portal").rstrip("/")


def address_of(portal: str, code: LinkCode) -> str:
    """Return a link: no browser sends what is behind `#` to anybody."""
    return f"{portal}{PATH}#{code.text}"


def tell_links(made: LinkRound) -> None:
    """Say who keeps a link, and why others have none."""
    if made.kept:
        has = "has a link" if len(made.kept) == 1 else "have links"
        click.echo(
            f"{listed(made.kept, NAMED_MAX)} {has} already; for another one: kubectl lablet links --renew -u LEARNER",
            err=True,
        )
    for fault in made.faults:
        click.echo(f"Warning: {fault}", err=True)


def standing_of_link(link: LinkAccount, pods: Mapping[str, LabletPod]) -> str:
    """Return how a link stands, in one word.

    Args:
        link: The link.
        pods: Those of the namespace, by UID.
    """
    if link.has_ended(pods):
        return "ended"
    return "open" if link.pod_uid in pods else "waits"


def links(
    *,
    renew: bool,
    revoke: bool,
    every: bool,
    learners: Sequence[str],
    portal: str | None,
    output: Output,
    place: Place,
) -> None:
    """Show the links of a class, make them again, or take them back."""
    if renew and revoke:
        raise click.UsageError("--renew makes links again, and --revoke takes them back: name one of them")
    if (renew or revoke) and every == bool(learners):
        raise click.UsageError("whose links? Name learners with -u, or add --all")
    base = portal_of(portal) if renew else ""

    async def work(kube: KubeClient, namespace: str) -> tuple[list[LinkRow], LinkRound]:
        every = await all_links_in(kube, namespace)
        pods = {pod.metadata.uid: pod for pod in await pods_in(kube, namespace).list()}
        shares = not (renew or revoke)  # `share` makes and ends those of guests, of one lablet each
        chosen = _chosen([each for each in every if shares or not each.is_guests], learners)
        theirs = [pods[each.pod_uid] for each in chosen if each.pod_uid in pods]
        made = LinkRound()
        if renew:
            made = await _made_again(kube, namespace, chosen, pods)
        elif revoke:
            await _taken_back(kube, namespace, chosen, theirs)
        return [_row(each, pods, base, made.codes) for each in chosen], made

    rows, made = place.run(work)
    if revoke:
        for row in rows:
            click.echo(f"the link of {row.learner} opens nothing any more")
        return
    LISTING.show(rows, output, nothing="No links.", but=[] if made.codes else [_LINK])
    if made.faults:
        raise click.ClickException(". Besides, ".join(made.faults))


def _chosen(links: Sequence[LinkAccount], people: Sequence[str]) -> list[LinkAccount]:
    """Return the links of some people, by name, those of learners before those of guests; without names, of all.

    Raises:
        ClickException: One has none.
    """
    having = {each.learner for each in links}
    if lacking := [name for name in people if name not in having]:
        has = "has" if len(lacking) == 1 else "have"
        raise click.ClickException(
            f"{listed(lacking, NAMED_MAX)} {has} no link; to make one: kubectl lablet assign POD LEARNER --links"
        )
    found = [each for each in links if not people or each.learner in people]
    return sorted(found, key=lambda each: (each.is_guests, each.learner, each.pod))


async def _made_again(
    kube: KubeClient, namespace: str, chosen: Sequence[LinkAccount], pods: Mapping[str, LabletPod]
) -> LinkRound:
    """Make links again, each of who has the lablet that it leads to; the others are told as a fault."""
    theirs = {each.learner: pods[each.pod_uid] for each in chosen if each.pod_uid in pods}
    theirs = {learner: pod for learner, pod in theirs.items() if pod.user == learner and not pod.over}
    made = await make_links(kube, namespace, list(theirs.values()), again=True)
    if not (left := [each.learner for each in chosen if each.learner not in theirs]):
        return made
    fault = (
        f"no link was made for {listed(left, NAMED_MAX)}: the lablet that it led to is gone, or another learner's. The "
        "code from before may open the next one: to end it, kubectl lablet links --revoke -u LEARNER, and to have "
        "another one then, kubectl lablet assign --links"
    )
    return made._replace(faults=(*made.faults, fault))


async def _taken_back(
    kube: KubeClient, namespace: str, chosen: Sequence[LinkAccount], pods: Sequence[LabletPod]
) -> None:
    await take_back(kube, namespace, chosen)
    for text in await open_access(kube, namespace, pods):  # which names the account no more
        click.echo(f"Warning: {text}", err=True)


def _row(link: LinkAccount, pods: Mapping[str, LabletPod], base: str, codes: Mapping[str, LinkCode]) -> LinkRow:
    code = codes.get(link.learner)
    made = address_of(base, code) if code is not None else ""
    pod, since = pods.get(link.pod_uid), link.metadata.creation_timestamp
    shown = pod.shown if pod is not None and pod.user == link.learner else ""
    guest_of = (pod.user if pod is not None and pod.user else "-") if link.is_guests else ""
    return LinkRow(link.learner, link.pod, standing_of_link(link, pods), since, made, shown, guest_of)
