"""Whose a port of a mux is: what the cluster shows where the store knows nothing, and which requests contradict it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure.facts import Channel, Mux, Owner, PortKey, ServicePort
from vkprovider.mux.pure.refs import annotation_key
from vkprovider.mux.pure.requests import Request

_MAPPED = re.compile(r"\s*([^:,\s]+):([0-9]{1,5})->([0-9]{1,5})\s*")
_AMBIGUOUS: Final = None


def collect_existing_port_owners(
    mux: Mux, channels: Iterable[Channel], prefix: str
) -> dict[PortKey, tuple[Owner, ServicePort]]:
    """Return the ports whose owner the cluster shows without a doubt.

    The Service of the mux has the hash of an owner as the name of each port; the annotation `ports` of a channel says
    the same in words, but whoever may write the channel may write it, so that the Service comes first.
    """
    hashed: dict[str, tuple[Owner, ServicePort] | None] = {}
    told: dict[PortKey, tuple[Owner, ServicePort] | None] = {}
    for channel in channels:
        ports = {port.name: port for port in channel.ports}
        for port in channel.ports:
            name = channel.owner.mux_port_name(port.name)
            hashed[name] = _AMBIGUOUS if name in hashed else (channel.owner, port)
        entries = channel.annotations.get(annotation_key(prefix, muxnames.MUX_PORTS), "").split(",")
        for match in map(_MAPPED.fullmatch, entries):
            mapped = ports.get(match[1]) if match else None
            if match and mapped:
                key = (mapped.protocol, int(match[3]))
                told[key] = _AMBIGUOUS if key in told else (channel.owner, mapped)
    found: dict[PortKey, tuple[Owner, ServicePort]] = {}
    for port in mux.ports:
        owned = hashed.get(port.name)
        if owned is not None and owned[1].protocol == port.protocol:
            found[port.protocol, port.port] = owned
    shown = set(found.values())
    return found | {key: owned for key, owned in told.items() if owned and key not in found and owned not in shown}


def find_mux_port_conflicts(
    owner: Owner, requests: Sequence[Request], owners: Mapping[PortKey, Owner]
) -> list[tuple[PortKey, Owner]]:
    """Return the ports that a channel asks for by number and cannot have, with the owner of each.

    A port that it asks for twice is one of them: its own.
    """
    conflicts = []
    asked: set[PortKey] = set()
    for request in requests:
        if request.number is not None:
            key = (request.port.protocol, request.number)
            holder = owner if key in asked else owners.get(key)
            if holder is not None and (holder != owner or key in asked):
                conflicts.append((key, holder))
            asked.add(key)
    return conflicts
