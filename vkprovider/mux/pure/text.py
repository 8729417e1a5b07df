"""What people read on a mux and on its channels: annotations that repeat what was decided, and decide nothing."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from vkprovider.mux.pure.decide import Mapped, Plan
from vkprovider.mux.pure.endpoints import Backends, ready_addresses
from vkprovider.mux.pure.facts import MuxRef, Owner, ServicePort

TOPOLOGY_CHARS_MAX: Final = 64 * 1024
"""Where the topology ends: all annotations of an object have 256 KiB together."""
_PENDING: Final = "pending"
_PORTS_TOLD: Final = 12
"""Ports that an Event names."""


def format_ports_annotation(mapped: Iterable[Mapped]) -> str:
    """Return the annotation `ports` of a channel: `http:8080->20000, grpc:9090->20001`."""
    return ", ".join(f"{each.row.port_name}:{each.row.channel_port}->{each.row.mux_port}" for each in mapped)


def format_channels_annotation(plan: Plan) -> str:
    """Return the annotation `channels` of a mux: a JSON list of `namespace/name`."""
    return json.dumps([str(owner) for owner in plan.mapped], separators=(",", ":"))


def format_summary_annotation(
    plan: Plan, backends: Mapping[Owner, Sequence[Backends]], addresses: Sequence[str]
) -> str:
    """Return the annotation `summary` of a mux: `2 channel(s) | 3 port(s) | 4 pod(s) | DNS: 203.0.113.10`.

    Args:
        plan: What was decided.
        backends: The backends of its channels.
        addresses: Names and addresses of the load balancer; none while it has none.
    """
    ports = sum(len(mapped) for mapped in plan.mapped.values())
    pods = sum(ready_addresses(its) for its in backends.values())
    return f"{len(plan.mapped)} channel(s) | {ports} port(s) | {pods} pod(s) | DNS: {_dns(addresses)}"


def format_topology_annotation(
    ref: MuxRef, plan: Plan, backends: Mapping[Owner, Sequence[Backends]], addresses: Sequence[str]
) -> str:
    """Return the annotation `topology` of a mux: a line for itself, and one for each channel and each of its ports.

    A topology that is too long names the channels that it leaves out by their number.
    """
    text = f"{ref} | DNS: {_dns(addresses)}\n"
    for shown, (owner, mapped) in enumerate(plan.mapped.items()):
        pods = ready_addresses(backends.get(owner, ()))
        lines = f"  {owner} | DNS: {owner.service}.{owner.namespace}.svc | {pods} pod(s)\n"
        if owner.learner is not None:
            lines = f"  {owner} | lablet\n"
        for each in mapped:
            row = each.row
            lines += f"    {row.port_name}:{row.channel_port}->{row.mux_port}/{row.protocol}\n"
        if len(text) + len(lines) > TOPOLOGY_CHARS_MAX:
            return text + f"  and {len(plan.mapped) - shown} more channel(s)\n"
        text += lines
    return text


def _dns(addresses: Sequence[str]) -> str:
    return ", ".join(addresses) or _PENDING


def format_port_changes(before: Iterable[ServicePort], after: Iterable[ServicePort]) -> str:
    """Return the ports that came, went, or have another channel, as an Event names them.

    >>> format_port_changes([ServicePort("", 101)], [ServicePort("placeholder", 101)])
    'renamed 101/TCP'
    """
    was, now = ({(port.port, port.protocol): port for port in ports} for ports in (before, after))
    words = {
        "added": sorted(now.keys() - was.keys()),
        "removed": sorted(was.keys() - now.keys()),
        "renamed": sorted(key for key in now.keys() & was.keys() if now[key] != was[key]),
    }
    return "; ".join(f"{word} {_listed(ports)}" for word, ports in words.items() if ports)


def _listed(ports: Sequence[tuple[int, str]]) -> str:
    text = ", ".join(f"{number}/{protocol}" for number, protocol in ports[:_PORTS_TOLD])
    return text if len(ports) <= _PORTS_TOLD else f"{text} and {len(ports) - _PORTS_TOLD} more"
