"""What HAProxy's maps should hold, and the commands of its runtime socket that make them so. Pure.

`show map` and `show acl` answer lines like `0x3e01b9d0 25001 10003@192.0.2.7`, `show sess all` blocks like

    0x3dfde760: [26/Nov/2026:09:23:36.413483] id=8 proto=tcpv4 source=198.51.100.9:49661
      frontend=mux (id=2 mode=tcp), listener=? (id=2) addr=192.0.2.1:25001
      server=endpoint (id=1) addr=192.0.2.7:10003

Source: https://docs.haproxy.org/2.8/management.html#9.3
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    A port leads to one endpoint that is ready, of several to the first by address; if none is, to one that is
    terminating and still serves. Any other one gets no new connection and keeps those that it has, as with kube-proxy;
    one that is in no slice loses them.

    Args:
        service: The mux.
        slices: Its EndpointSlices.
        moved: Networks whose addresses are dialled elsewhere.
    """
    if service is None:
        return Goal({}, {}, frozenset())
    ports = {port.name: port.port for port in service.spec.ports if port.protocol == _TCP}
    ready: dict[int, set[Backend]] = {}
    leaving: dict[int, set[Backend]] = {}
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
                if endpoint.conditions.is_ready:
                    ready.setdefault(outside, set()).add(Backend(address, inside))
                elif endpoint.conditions.is_leaving:
                    leaving.setdefault(outside, set()).add(Backend(address, inside))
    ranges = service.spec.load_balancer_source_ranges
    networks = {each: _network(each.strip()) for each in ranges}
    return Goal(
        {outside: min(found) for outside, found in {**leaving, **ready}.items()},
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


PORTS: Final = "ports.map"
SOURCES: Final = "sources.acl"
GATE: Final = "gate.map"
"""The files that haproxy.cfg names; they are empty, and name what is changed through the socket."""
_FILLED: Final = "filled"
SHOW_PORTS: Final = f"show map {PORTS}"
SHOW_SOURCES: Final = f"show acl {SOURCES}"
SHOW_GATE: Final = f"show map {GATE}"
SHOW_CONNECTIONS: Final = "show sess all"
_BEGIN: Final = re.compile(r"(0x[0-9a-f]+): ")
_PORT: Final = re.compile(r"  frontend=mux .*listener=.* addr=\S*:(\d+)")
_TARGET: Final = re.compile(r"  server=endpoint .*addr=(\S+):(\d+)")


class Carried(NamedTuple):
    """A connection through HAProxy, which calls it a session.

    Attributes:
        id: HAProxy's own.
        port: The outside port.
        target: Where it leads; None while HAProxy has not chosen.
    """

    id: str
    port: int
    target: Backend | None = None


def changes(found_ports: str, found_sources: str, wanted: Goal) -> list[str]:
    """Return the commands that turn what HAProxy holds into what is wanted.

    New networks come before old ones go, so that a client in both is admitted throughout; old ports go first.

    Args:
        found_ports: The answer to `SHOW_PORTS`.
        found_sources: The answer to `SHOW_SOURCES`.
        wanted: What HAProxy should do.
    """
    ports = {str(port): f"{target.port}@{target.address}" for port, target in wanted.targets.items()}
    found = _pairs(found_ports)
    sources = set(_pairs(found_sources))
    return [
        *(f"add acl {SOURCES} {network}" for network in sorted(wanted.sources - sources)),
        *(f"del acl {SOURCES} {network}" for network in sorted(sources - wanted.sources)),
        *(f"del map {PORTS} {port}" for port in found if port not in ports),
        *(f"set map {PORTS} {port} {to}" for port, to in ports.items() if found.get(port, to) != to),
        *(f"add map {PORTS} {port} {to}" for port, to in ports.items() if port not in found),
    ]


def open_gate(found: str) -> list[str]:
    """Return the command by which HAProxy accepts connections, unless it does; `found` answers `SHOW_GATE`."""
    return [] if is_open(found) else [f"add map {GATE} {_FILLED} 1"]


def is_open(found: str) -> bool:
    """Return whether HAProxy was filled since it started; `found` answers `SHOW_GATE`."""
    return _FILLED in _pairs(found)


def takes_away(commands: Iterable[str]) -> bool:
    """Return whether commands end or move what a port led to."""
    return any(command.startswith((f"del map {PORTS}", f"set map {PORTS}")) for command in commands)


def is_of_connection(line: str) -> bool:
    """Return whether a line of the answer to `SHOW_CONNECTIONS` says what `connections` reads; four of five do not."""
    return line.startswith(("0x", "  frontend=mux ", "  server=endpoint "))


def connections(lines: Iterable[str]) -> Iterator[Carried]:
    """Yield the connections of the mux in the lines that answer `SHOW_CONNECTIONS`."""
    id_, port, target = "", 0, None
    for line in lines:
        if begun := _BEGIN.match(line):
            if port:
                yield Carried(id_, port, target)
            id_, port, target = begun[1], 0, None
        elif found := _PORT.match(line):
            port = int(found[1])
        elif found := _TARGET.match(line):
            target = Backend(found[1], int(found[2]))
    if port:
        yield Carried(id_, port, target)


def ended(found: Iterable[Carried], allowed: Mapping[int, frozenset[Backend]]) -> list[str]:
    """Return the commands that end the connections whose lablet has ended: no slice has their port and target."""
    return [
        f"shutdown session {each.id}"
        for each in found
        if each.port not in allowed or (each.target is not None and each.target not in allowed[each.port])
    ]


def _pairs(answer: str) -> dict[str, str]:
    """Return keys and values of a map, keys alone of an access list."""
    rows = (line.split() for line in answer.splitlines() if line.startswith("0x"))
    return {row[1]: row[2] if len(row) > 2 else "" for row in rows}  # noqa: PLR2004 (pointer, key, value)
