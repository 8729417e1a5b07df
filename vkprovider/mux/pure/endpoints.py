"""The backends of a mux: those of channels and lablets, those that have ended, and addresses that are none.

Addresses of the cluster's own are refused: otherwise, who may write EndpointSlices in a namespace could have a mux lead
into the cluster's own machines otherwise, or by a Service's address to what its own namespace cannot reach.

Backends end even where nothing can be decided: a mux that cannot decide, because its store is damaged, for one, leaves
its ports as they are. It must not go on to lead to a backend that is gone: the next learner of a seat may have the same
port of the same worker.
"""

import ipaddress
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from vkprovider.lablet.exposure import Exposure
from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.decide import Mapped, Plan
from vkprovider.mux.pure.facts import Channel, MuxRef, Owner, ServicePort, annotation_key, get_mux_from_lb_class
from vkprovider.mux.pure.state import DISCARD
from vkprovider.platform.objects import Endpoint, EndpointPort, EndpointSlice
from vkprovider.platform.ports.allocator import UDP
from vkprovider.platform.ports.rows import AUTO

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_RESERVED: Final = ipaddress.IPv4Network("240.0.0.0/4")
"""For no purpose, but for the address of a broadcast."""
_EMBEDDING: Final = tuple(
    ipaddress.IPv6Network(each)
    for each in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "2002::/16")
)
"""IPv4-compatible and translated addresses, NAT64 (RFC 6052, RFC 8215), Teredo and 6to4."""
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
"""The third quarter of an IPv6 address whose last quarter is an IPv4 address (RFC 5214)."""


class Reserved(NamedTuple):
    """Addresses that belong to others.

    Attributes:
        workers: Those of CML workers, on which all learners have their ports.
        api_servers: Those of the API server.
        services: Those of Services, which lead wherever these do.
        others: What a setting names, such as the addresses at which clouds tell machines their credentials.
    """

    workers: Container[str] = frozenset()
    api_servers: Container[str] = frozenset()
    services: Container[str] = frozenset()
    others: tuple[Network, ...] = ()


def suspicion(address: str, reserved: Reserved) -> str:
    """Return what an address is, if a Pod must vouch for it; "" if it may be a backend.

    >>> suspicion("127.0.0.1", Reserved())
    'a loopback address'
    """
    text, what = _read(address)
    if what:
        return what
    if text in reserved.api_servers:
        return "an address of the API server"
    if text in reserved.workers:
        return "the address of a CML worker"
    if text in reserved.services:
        return "the address of a Service"
    if reserved.others and any(ipaddress.ip_address(text) in each for each in reserved.others):
        return "an address that VKPROVIDER_MUX_REFUSED_ADDRESSES names"
    return ""


@lru_cache(maxsize=16_384)
def _read(address: str) -> tuple[str, str]:
    """Return an address in one spelling, and what it is, if it is no backend: every pass over a mux asks for all."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address, "no IP address"
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    what = ""
    if parsed.is_loopback:
        what = "a loopback address"
    elif parsed.is_link_local:
        what = "a link-local address"
    elif parsed.is_unspecified or parsed.is_multicast or parsed in _RESERVED:
        what = "no address of one machine"
    elif isinstance(parsed, ipaddress.IPv6Address) and _embeds(parsed):
        what = "an IPv6 address that stands for an IPv4 address"
    return str(parsed), what


def _embeds(address: ipaddress.IPv6Address) -> bool:
    is_isatap = int(address) >> 32 & 0xFFFFFFFF in _ISATAP
    return is_isatap or any(address in each for each in _EMBEDDING)


def canonical(address: str) -> str:
    """Return an address in the spelling in which `suspicion` compares it; another text stays as it is."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address


class Backends(NamedTuple):
    """Addresses that have the same ports, as a subset of Endpoints or an EndpointSlice has them.

    Attributes:
        ports: The ports at each address.
        ready: Addresses that take connections.
        not_ready: Addresses that exist, and take none.
        leaving: Addresses that are terminating and still take connections: they get some where none is ready.
    """

    ports: tuple[ServicePort, ...]
    ready: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.ready, *self.not_ready, *self.leaving)

    @property
    def serves(self) -> bool:
        """Whether one takes connections."""
        return bool(self.ready or self.leaving)


def collect_channel_endpoints(mapped: Iterable[Mapped], found: Iterable[Backends]) -> tuple[Backends, ...]:
    """Return the backends of a channel with the names of the mux; number and protocol are those of the backend.

    A port that is not mapped is left out, and so are backends without a port or an address.
    """
    port_names = {each.row.port_name: each.name for each in mapped}
    collected = []
    for backends in found:
        ports = tuple(port._replace(name=port_names[port.name]) for port in backends.ports if port.name in port_names)
        if ports and backends.addresses:
            collected.append(backends._replace(ports=ports))
    return tuple(collected)


def collect_mux_endpoints(plan: Plan, found: Mapping[Owner, Iterable[Backends]]) -> dict[Owner, tuple[Backends, ...]]:
    """Return the backends of a mux by channel. A channel that the plan refuses has none, whatever was found."""
    collected = {owner: collect_channel_endpoints(its, found.get(owner, ())) for owner, its in plan.mapped.items()}
    return {owner: backends for owner, backends in collected.items() if backends}


def ready_addresses(backends: Iterable[Backends]) -> int:
    """Count the addresses that take connections, each once."""
    return len({address for each in backends for address in each.ready})


Target = tuple[str, str, int, str]
"""The name of a port in the mux, and protocol, number and address of a backend to which it leads."""


def lent_targets(found: Mapping[Owner, Iterable[Backends]]) -> frozenset[Target]:
    """Return every backend that channels lend. The names of ports tell learners apart, as in `Owner.mux_port_name`."""
    return frozenset(
        (owner.mux_port_name(port.name), port.protocol, port.port, address)
        for owner, its in found.items()
        for backends in its
        for port in backends.ports
        for address in backends.addresses
    )


def slice_without_ended(found: EndpointSlice, lent: Container[Target]) -> dict[str, Any] | None:
    """Return the endpoints and ports of a slice of a mux without those that ended; None if none has.

    The last endpoint of a UDP port leaves `DISCARD` in its place, which ends open flows. Without ports it is to be
    deleted.
    """
    endpoints, ports = list(found.endpoints or ()), list(found.ports or ())
    kept = [endpoint for endpoint in endpoints if _is_lent(endpoint, ports, lent)]
    if len(kept) == len(endpoints):
        return None
    if not kept:
        ports = [port for port in ports if port.protocol == UDP]
        kept = [Endpoint([DISCARD[found.address_type]])]
    return {
        "endpoints": [written_endpoint(each) for each in kept],
        "ports": [{"name": port.name, "port": port.port, "protocol": port.protocol} for port in ports],
    }


def written_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    """Return an endpoint as slices of a mux have it: its addresses, and which conditions it has."""
    conditions = msgspec.to_builtins(endpoint.conditions)
    return {
        "addresses": endpoint.addresses,
        "conditions": {name: value for name, value in conditions.items() if value is not None},
    }


def subsets_without_ended(subsets: Sequence[Mapping[str, Any]], lent: Container[Target]) -> list[dict[str, Any]]:
    """Return the subsets of the Endpoints of a mux without addresses that ended."""
    kept = []
    for subset in subsets:
        ports = [
            EndpointPort(port.get("name", ""), port.get("protocol", "TCP"), port["port"]) for port in subset["ports"]
        ]
        fields = {
            field: [address for address in subset.get(field) or () if _is_lent(Endpoint([address["ip"]]), ports, lent)]
            for field in ("addresses", "notReadyAddresses")
        }
        if any(fields.values()):
            kept.append({**{field: its for field, its in fields.items() if its}, "ports": subset["ports"]})
    return kept


def _is_lent(endpoint: Endpoint, ports: Iterable[EndpointPort], lent: Container[Target]) -> bool:
    return all(
        address in DISCARD.values()
        or all((port.name, port.protocol, port.port or 0, address) in lent for port in ports)
        for address in endpoint.addresses
    )


def mux_of(exposure: Exposure, prefix: str, default_namespace: str) -> MuxRef:
    """Return the mux that a lablet's definition names.

    Raises:
        InputError: `InvalidLoadBalancerClass`.
    """
    return get_mux_from_lb_class(f"{prefix}/{exposure.mux}", prefix, default_namespace)


def owner_of(exposure: Exposure) -> Owner:
    """Return the identity of a lablet as a channel."""
    return Owner(exposure.namespace, exposure.pod, exposure.learner)


def channel_of(exposure: Exposure, prefix: str) -> Channel:
    """Return a lablet as a channel, each of whose ports asks for any outside port."""
    asked = ",".join(f"{port.name}:{AUTO}" for port in exposure.ports)
    return Channel(
        owner_of(exposure),
        _ports(exposure),
        {annotation_key(prefix, muxnames.MUX_EXTERNAL_PORTS): asked},
    )


def backends_of(exposure: Exposure) -> Backends:
    """Return the backends of a lablet: its worker, under the names of its own ports."""
    return Backends(_ports(exposure), ready=(exposure.address,))


def _ports(exposure: Exposure) -> tuple[ServicePort, ...]:
    return tuple(ServicePort(port.name, port.port, port.protocol) for port in exposure.ports)
