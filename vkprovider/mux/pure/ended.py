"""Backends that no channel lends any more, found without a decision.

A mux that cannot decide, because its store is damaged, for one, leaves its ports as they are. It must not go on to lead
to a backend that is gone: the next learner of a seat may have the same port of the same worker.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from vkprovider.mux.pure.draining import DISCARD
from vkprovider.mux.pure.endpoints import Backends
from vkprovider.mux.pure.facts import Owner
from vkprovider.platform.objects import Endpoint, EndpointPort, EndpointSlice
from vkprovider.platform.ports.allocator import UDP

Target = tuple[str, str, int, str]
"""The name of a port in the mux, and protocol, number and address of a backend to which it leads."""


def lent_targets(found: Mapping[Owner, Iterable[Backends]]) -> frozenset[Target]:
    """Return every backend that channels lend. The names of ports tell learners apart, as in `Owner.mux_port_name`."""
    return frozenset(
        (owner.mux_port_name(port.name), port.protocol, port.port, address)
        for owner, its in found.items()
        for backends in its
        for port in backends.ports
        for address in (*backends.ready, *backends.not_ready)
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
        "endpoints": [{"addresses": each.addresses, "conditions": {"ready": each.conditions.ready}} for each in kept],
        "ports": [{"name": port.name, "port": port.port, "protocol": port.protocol} for port in ports],
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
