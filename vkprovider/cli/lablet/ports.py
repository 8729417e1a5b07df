"""`kubectl lablet ports`: the addresses and ports of a lablet's devices."""

from collections.abc import Sequence
from typing import Final

from vkprovider.cli.shared.devices import containers_of, ports_of
from vkprovider.cli.shared.output.formats import Column, Listing, Output
from vkprovider.cli.shared.place import Place
from vkprovider.cli.shared.pods import find, named
from vkprovider.lablet.devices import Port
from vkprovider.platform.kube.client import KubeClient

_CLOSED: Final = "not opened by CML"
_VIA: Final = "VIA"
"""The heading of a mux's address and port; no column where nothing is lent to one."""
LISTING: Final[Listing[Port]] = Listing(
    kind="LabletPort",
    row=Port,
    columns=(
        Column("DEVICE", lambda port: port.device),
        Column("ACCESS", lambda port: port.access),
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
