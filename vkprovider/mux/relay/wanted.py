"""What HAProxy's maps should hold: a function of the Service and the EndpointSlices of a mux."""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from vkprovider.platform.objects import EndpointSlice, Metadata, ServiceSpec

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Moved = tuple[Network, Network]
"""A network, and the one of the same size whose addresses are dialled instead."""

_TCP: Final = "TCP"
_EVERYWHERE: Final = frozenset({"0.0.0.0/0", "::/0"})


class MuxService(msgspec.Struct, frozen=True, gc=False):
    """The Service of a mux."""

    metadata: Metadata
    spec: ServiceSpec = ServiceSpec()


class Backend(NamedTuple):
    """Where connections of an outside port go."""

    address: str
    port: int


class Goal(NamedTuple):
    """What HAProxy should do.

    Attributes:
        targets: Outside port: where a new connection goes.
        allowed: Outside port: where an established connection may lead.
        sources: Networks of the clients that may connect.
        unread: Addresses and networks that cannot be read, such as those with leading zeros, which older API servers
            accept. Nothing leads there, and nobody is admitted by them.
    """

    targets: dict[int, Backend]
    allowed: dict[int, frozenset[Backend]]
    sources: frozenset[str]
    unread: tuple[str, ...] = ()


def wanted(service: MuxService | None, slices: Iterable[EndpointSlice], moved: Sequence[Moved] = ()) -> Goal:
    """Return what HAProxy should do for a mux; without its Service nobody may connect.

    A port leads to one endpoint that is ready, of several to the first by address. One that is not ready gets no new
    connection and keeps those that it has, as with kube-proxy; one that is in no slice loses them.

    Args:
        service: The mux.
        slices: Its EndpointSlices.
        moved: Networks whose addresses are dialled elsewhere.
    """
    if service is None:
        return Goal({}, {}, frozenset())
    ports = {port.name: port.port for port in service.spec.ports if port.protocol == _TCP}
    ready: dict[int, set[Backend]] = {}
    allowed: dict[int, set[Backend]] = {}
    unread: set[str] = set()
    for each in slices:
        numbers = [
            (ports[port.name], port.port)
            for port in each.ports or ()
            if port.port is not None and port.protocol == _TCP and port.name in ports
        ]
        for endpoint in each.endpoints or () if each.address_type != "FQDN" else ():
            given = endpoint.addresses[0]
            if (address := _dialled(given, moved)) is None:
                unread.add(given)
                continue
            for outside, inside in numbers:
                allowed.setdefault(outside, set()).add(Backend(address, inside))
                if endpoint.conditions.ready is not False:
                    ready.setdefault(outside, set()).add(Backend(address, inside))
    ranges = service.spec.load_balancer_source_ranges
    networks = {each: _network(each.strip()) for each in ranges}
    return Goal(
        {outside: min(found) for outside, found in ready.items()},
        {outside: frozenset(found) for outside, found in allowed.items()},
        frozenset(network for network in networks.values() if network is not None) if ranges else _EVERYWHERE,
        tuple(sorted(unread | {each for each, network in networks.items() if network is None})),
    )


def outside_of(first: int, last: int, targets: Iterable[int]) -> list[int]:
    """Return the ports that HAProxy does not listen on."""
    return sorted(port for port in targets if not first <= port <= last)


def _network(text: str) -> str | None:
    """Return a network as it is always written; None if it cannot be read, or names an interface."""
    if "%" in text:
        return None
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return None


def _dialled(address: str, moved: Sequence[Moved]) -> str | None:
    """Return the address that is dialled for an endpoint's; None if that cannot be read, or names an interface."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return None
    if "%" in address:
        return None
    for network, other in moved:
        if found in network:
            return str(other[int(found) - int(network[0])])
    return str(found)
