"""`kubectl lablet portal`: an address that logs a browser in at the portal, with the token of the kubeconfig."""

import webbrowser
from typing import Final

import aiohttp
import click
import msgspec

from tunnels.outgoing.sessions import open_session
from vkprovider.cli.shared.page.address import PageUnknown, safe
from vkprovider.cli.shared.page.asking import Page, own_authorization, trust
from vkprovider.cli.shared.place import Place
from vkprovider.platform.kube.client import KubeClient

_FORWARD: Final = (
    "an admin reaches the portal by `kubectl -n vkprovider-system port-forward svc/vkprovider-portal 8083` with "
    "--url https://localhost:8083"
)
_OTHER_TOKEN: Final = "; the portal knows users by tokens of the cluster"  # noqa: S105 (a sentence)


class _Code(msgspec.Struct, frozen=True):
    code: str
    seconds: int


def portal(*, url: str | None, cacert: str | None, opens: bool, place: Place) -> None:
    """Print the address of a one-time code."""
    if not url:
        raise PageUnknown(f"name the portal with --url or VKPROVIDER_PORTAL_URL; {_FORWARD}")
    base = safe(url)

    async def work(_: KubeClient, __: str) -> _Code:
        authorization = await own_authorization(place)
        if not authorization:
            raise PageUnknown(
                "the kubeconfig has no token, only a client certificate, and the portal knows users by tokens: name "
                f"another --context; or paste a token at {base}/login, such as `kubectl create token NAME` makes"
            )
        tls = trust(base, cacert or "", given=True)
        async with open_session(aiohttp.TCPConnector()) as session:
            asked = Page(base, authorization, tls, session, _hint=_OTHER_TOKEN, _forward=_FORWARD)
            return await asked.post("/login/code", _Code)

    made = place.run(work)
    address = f"{base}/login/{made.code}"
    click.echo(address)
    click.echo(f"It logs one browser in as you, once, within {made.seconds} s.", err=True)
    if opens and not webbrowser.open(address):
        raise click.ClickException("no browser was found on this machine; open the address yourself")
