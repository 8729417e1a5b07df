"""What HAProxy's maps should hold: a function of the Service and the EndpointSlices of a mux."""

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from vkprovider.api.objects import EndpointSlice, Metadata

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Moved = tuple[Network, Network]
"""A network, and the one of the same size whose addresses are dialled instead."""

_TCP: Final = "TCP"
_EVERYWHERE: Final = frozenset({"0.0.0.0/0", "::/0"})


class MuxServicePort(msgspec.Struct, frozen=True, gc=False):
    """A port of a mux."""

    port: int
    name: str = ""
    protocol: str = "TCP"


class MuxServiceSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a mux's spec that HAProxy is told of."""

    ports: tuple[MuxServicePort, ...] = ()
    load_balancer_source_ranges: tuple[str, ...] = ()


class MuxService(msgspec.Struct, frozen=True, gc=False):
    """The Service of a mux."""

    metadata: Metadata
    spec: MuxServiceSpec = MuxServiceSpec()


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
    """

    targets: dict[int, Backend]
    allowed: dict[int, frozenset[Backend]]
    sources: frozenset[str]


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
    for each in slices:
        numbers = [
            (ports[port.name], port.port)
            for port in each.ports or ()
            if port.port is not None and port.protocol == _TCP and port.name in ports
        ]
        for endpoint in each.endpoints or () if each.address_type != "FQDN" else ():
            address = _moved(endpoint.addresses[0], moved)
            for outside, inside in numbers:
                allowed.setdefault(outside, set()).add(Backend(address, inside))
                if endpoint.conditions.ready is not False:
                    ready.setdefault(outside, set()).add(Backend(address, inside))
    return Goal(
        {outside: min(found) for outside, found in ready.items()},
        {outside: frozenset(found) for outside, found in allowed.items()},
        _networks(service.spec.load_balancer_source_ranges),
    )


def outside_of(first: int, last: int, targets: Iterable[int]) -> list[int]:
    """Return the ports that HAProxy does not listen on."""
    return sorted(port for port in targets if not first <= port <= last)


def _networks(ranges: Sequence[str]) -> frozenset[str]:
    """Write networks alike, however they were given; no range at all admits everybody, as in Kubernetes."""
    return frozenset(str(ipaddress.ip_network(each.strip(), strict=False)) for each in ranges) or _EVERYWHERE


def _moved(address: str, moved: Sequence[Moved]) -> str:
    """Return the address that is dialled for an endpoint's."""
    found = ipaddress.ip_address(address)
    for network, other in moved:
        if found in network:
            return str(other[int(found) - int(network[0])])
    return str(found)
