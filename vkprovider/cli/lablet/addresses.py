"""`kubectl lablet login`, `portal` and `ports`: addresses of a lablet and of its pages."""

import webbrowser
from collections.abc import Sequence
from typing import Final

import aiohttp
import click
import msgspec

from tunnels.outgoing import open_session
from vkprovider.classroom.providerpage import PageClient
from vkprovider.cli.shared.output import Column, Listing, Output
from vkprovider.cli.shared.page.address import PageUnknown, safe
from vkprovider.cli.shared.page.asking import PageRefused, ProviderPage, open_page, own_authorization, trust
from vkprovider.cli.shared.page.options import PageOptions
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import UID, containers_of, find, named, ports_of
from vkprovider.lablet.devices import Port
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


async def login_url(page: ProviderPage, pod_uid: str) -> str:
    """Return the complete login URL of a lablet's session.

    Raises:
        PageRefused: There is no session to log in to, or the user may not.
    """
    found = (await page.get(f"/labs/{pod_uid}/login", _Answer)).url
    if not found:
        raise PageRefused("no URL in the answer")
    return found


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
            asked = ProviderPage(PageClient(base, authorization, tls, session), _hint=_OTHER_TOKEN, _forward=_FORWARD)
            return await asked.post("/login/code", _Code)

    made = place.run(work)
    address = f"{base}/login/{made.code}"
    click.echo(address)
    click.echo(f"It logs one browser in as you, once, within {made.seconds} s.", err=True)
    if opens and not webbrowser.open(address):
        raise click.ClickException("no browser was found on this machine; open the address yourself")


_CLOSED: Final = "not opened by CML"
_VIA: Final = "VIA"
"""The heading of a mux's address and port; no column where nothing is lent to one."""
LISTING: Final[Listing[Port]] = Listing(
    kind="LabletPort",
    row=Port,
    columns=(
        Column("DEVICE", lambda port: port.device),
        Column("ACCESS", lambda port: port.access, whole=True),
        Column("PROTOCOL", lambda port: port.transport.upper()),
        Column("ADDRESS", lambda port: port.address if port.opened else _CLOSED),
        Column("PORT", lambda port: str(port.port)),
        Column(_VIA, lambda port: port.via),
        Column("CONTAINER", lambda port: port.container),
        Column("NAME", lambda port: port.name, wide=True),
        Column("IN TOPOLOGY", lambda port: str(port.original_port), wide=True),
        Column("INSIDE", lambda port: str(port.internal_port or ""), wide=True),
    ),
    name=lambda port: port.name,
)


def ports(pod: str | None, *, learner: str | None, output: Output, place: Place) -> None:
    """Show where the devices of POD are reached: address and port for each way in."""
    wanted = named(pod, learner)

    async def work(kube: KubeClient, namespace: str) -> tuple[str, list[Port]]:
        found = await find(kube, namespace, wanted)
        return found.metadata.name, ports_of(found, await containers_of(kube, found))

    name, rows = place.run(work)
    show(rows, output, pod=name)


def show(rows: Sequence[Port], output: Output, *, pod: str) -> None:
    """Print the ports of a Pod."""
    nothing = (
        f"pod/{pod} has no ports: its topology tags none, or none are allocated yet; see: kubectl describe pod {pod}"
    )
    LISTING.show(rows, output, nothing=nothing, but=[] if any(row.via for row in rows) else [_VIA])
