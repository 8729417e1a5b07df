"""UDP ports of a mux that nobody serves, and stay in its Service so that kube-proxy ends the flows that are open.

kube-proxy ends an open UDP flow only while the port of the Service has a serving endpoint, and the flow leads to
another one (`CleanStaleEntries` in its pkg/proxy/conntrack/cleanup.go). If the port were taken away, the sender would
go on to reach the port of the worker, also when the device of the next learner has it. It therefore stays, under its
name, with `DISCARD` as its only backend. It forwards to nobody: no machine has that address. The relay sees TCP ports
alone.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from vkprovider.mux.pure.facts import Owner, PortKey, ServicePort
from vkprovider.mux.pure.state import MuxState, Resting, owner_of
from vkprovider.platform.ports.allocator import UDP

DRAIN_S: Final = 30.0
"""The time for which a freed UDP port stays. A kube-proxy needs seconds to see the change; the port of the worker rests
for 60 s before another learner gets it."""
DISCARD: Final[Mapping[str, str]] = {"IPv4": "192.0.2.254", "IPv6": "100::1"}
"""Addresses that no machine has, and that the API server takes for endpoints: of TEST-NET-1 (RFC 5737) and of the
discard prefix (RFC 6666)."""


UNSURE_S: Final = 5.0
"""How soon is looked again whether the time is certain."""


class Drain(NamedTuple):
    """A port of a mux that nobody serves.

    Attributes:
        owner: The channel that has it, or had it last.
        port: The port in the Service of the mux.
        until: When it leaves the Service, in Unix seconds; None while its channel keeps the number.
    """

    owner: Owner
    port: ServicePort
    until: float | None


def find_drains(
    state: MuxState,
    served: Sequence[ServicePort],
    now: float,
    limit: int | None,
    kept: Container[PortKey] = (),
) -> tuple[Drain, ...]:
    """Return the UDP ports that stay in the Service of a mux though no channel has them there.

    Those are numbers that were freed lately, and those of channels that are refused.

    Args:
        state: What is stored.
        served: The ports of channels in the Service, which come first.
        now: In Unix seconds.
        limit: The most ports of the Service.
        kept: Those that it has, and that leave it for no age, because the time is not certain.
    """
    taken = {port.name for port in served}
    keys = {(port.protocol, port.port) for port in served}
    found: list[Drain] = []
    for owner, port_name, number, until in _unserved(state, now, kept):
        if (UDP, number) in keys or (limit is not None and len(served) + len(found) >= limit):
            continue
        names = (owner.mux_port_name(port_name), owner.mux_port_name(f"{port_name}/{number}"))
        name = next((name for name in names if name not in taken), None)  # its channel may have another number already
        if name is not None:
            taken.add(name)
            found.append(Drain(owner, ServicePort(name, number, UDP), until))
    return tuple(found)


def drains_until(rest: Resting) -> float:
    """Return when a freed number leaves the Service; TCP ports leave it at once."""
    return rest.freed_at + DRAIN_S if rest.protocol == UDP else float("-inf")


def _unserved(state: MuxState, now: float, kept: Container[PortKey]) -> Iterable[tuple[Owner, str, int, float | None]]:
    for rest in reversed(state.resting):
        until = drains_until(rest)
        if rest.protocol == UDP and rest.key in kept:
            until = max(until, now + UNSURE_S)
        if now < until:
            yield rest.owner, rest.port_name, rest.port, until
    for row in state.claims:
        if row.protocol == UDP:
            yield owner_of(row), row.port_name, row.mux_port, None
