"""`kubectl lablet login`: the complete login URL of a learner's session, which no Pod shows."""

import click
import msgspec

from vkprovider.cli.shared.page.asking import Page, PageRefused, open_page
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import UID, find, named
from vkprovider.platform.kube.client import KubeClient


class _Answer(msgspec.Struct, frozen=True):
    url: str


def login(what: str | None, *, learner: str | None, page: PageOptions, place: Place) -> None:
    """Print the URL where the learner of POD logs in. It authenticates as the learner."""
    wanted = named(what, learner)

    async def work(kube: KubeClient, namespace: str) -> str:
        is_uid = wanted.kinds == "either" and UID.fullmatch(wanted.name)
        uid = wanted.name if is_uid else (await find(kube, namespace, wanted)).metadata.uid
        async with open_page(kube, namespace, place, page) as asked:
            return await login_url(asked, uid)

    click.echo(place.run(work))


async def login_url(page: Page, pod_uid: str) -> str:
    """Return the complete login URL of a lablet's session.

    Raises:
        PageRefused: There is no session to log in to, or the user may not.
    """
    found = (await page.get(f"/labs/{pod_uid}/login", _Answer)).url
    if not found:
        raise PageRefused("no URL in the answer")
    return found
