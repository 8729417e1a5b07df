"""`kubectl lablet share`: a second person in the lablet of a learner, to watch or to type."""

import click

from vkprovider.classroom.sharing import SharedLablet, SharingError, unshare
from vkprovider.classroom.sharing import share as let_in
from vkprovider.cli.lablet.links import address_of, portal_of, tell_links
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import find, named
from vkprovider.lablet.guests import GuestMode
from vkprovider.platform.kube.client import KubeClient

_DOES = {GuestMode.WATCH: "watches", GuestMode.TYPE: "works"}


def share(*, lablet: str, guest: str, types: bool, end: bool, link: bool, portal: str | None, place: Place) -> None:
    """Let GUEST into the lablet of a learner, or in no more."""
    if end and (types or link):
        raise click.UsageError("--end lets the guest in no more; it goes with neither --type nor --link")
    base = portal_of(portal) if link else ""
    mode = GuestMode.TYPE if types else GuestMode.WATCH

    async def work(kube: KubeClient, namespace: str) -> SharedLablet:
        name = (await find(kube, namespace, named(lablet, None))).metadata.name
        try:
            if end:
                return await unshare(kube, namespace, name, guest)
            return await let_in(kube, namespace, name, guest, mode, link=link)
        except SharingError as error:
            raise click.ClickException(str(error)) from None

    done = place.run(work)
    for text in done.closed:
        click.echo(f"Warning: {text}", err=True)
    name = done.pod.metadata.name
    if end:
        click.echo(f"pod/{name}: {guest} is no guest of {done.pod.user} any more")
        return
    click.echo(f"pod/{name}: {guest} {_DOES[mode]} in the lab of {done.pod.user}")
    for code in done.links.codes.values():
        click.echo(address_of(base, code))
    tell_links(done.links)
