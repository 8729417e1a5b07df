"""The backends of a mux: those of its channels, under the names that the ports have in the mux."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from vkprovider.mux.pure.decide import Mapped, Plan
from vkprovider.mux.pure.facts import Owner, ServicePort


class Backends(NamedTuple):
    """Addresses that have the same ports, as a subset of Endpoints or an EndpointSlice has them.

    Attributes:
        ports: The ports at each address.
        ready: Addresses that take connections.
        not_ready: Addresses that exist, and take none.
    """

    ports: tuple[ServicePort, ...]
    ready: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()


def collect_channel_endpoints(mapped: Iterable[Mapped], found: Iterable[Backends]) -> tuple[Backends, ...]:
    """Return the backends of a channel with the names of the mux; number and protocol are those of the backend.

    A port that is not mapped is left out, and so are backends without a port or an address.
    """
    port_names = {each.row.port_name: each.name for each in mapped}
    collected = []
    for backends in found:
        ports = tuple(port._replace(name=port_names[port.name]) for port in backends.ports if port.name in port_names)
        if ports and (backends.ready or backends.not_ready):
            collected.append(backends._replace(ports=ports))
    return tuple(collected)


def collect_mux_endpoints(plan: Plan, found: Mapping[Owner, Iterable[Backends]]) -> dict[Owner, tuple[Backends, ...]]:
    """Return the backends of a mux by channel. A channel that the plan refuses has none, whatever was found."""
    collected = {owner: collect_channel_endpoints(its, found.get(owner, ())) for owner, its in plan.mapped.items()}
    return {owner: backends for owner, backends in collected.items() if backends}


def ready_addresses(backends: Iterable[Backends]) -> int:
    """Count the addresses that take connections, each once."""
    return len({address for each in backends for address in each.ready})
