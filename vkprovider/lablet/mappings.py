"""A lablet's ports between the template and the worker: which are requested, and how allocated ones are shown."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from vkprovider.lablet.tags import PORT_MAX, parse_tag
from vkprovider.lablet.template import PortTemplate
from vkprovider.platform.ports.allocator import PortRange, Wanted

_LOGGED_INTO: Final = frozenset({"serial", "vnc"})
"""Kinds that CML's port service serves without the device: PATty listens as soon as the device runs."""


class PortInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One port of a lablet, as in its Pod's annotation.

    Attributes:
        protocol: The service behind it: serial, vnc, pat, http, https, ssh, telnet or tcp.
        original_port: The placeholder in the topology.
        allocated_port: The worker's port.
        internal_port: The device's own, of a `pat:` tag.
        transport: tcp or udp; empty in an annotation that an older version wrote.
        opened: False if CML does not open the port: the tag's kind is not one of serial, vnc and pat.
    """

    device_label: str
    protocol: str
    original_port: int
    allocated_port: int
    internal_port: int | None = None
    transport: str = ""
    opened: bool = True


@lru_cache(maxsize=256)
def wanted_of(template: PortTemplate) -> tuple[Wanted, ...]:
    """List the ports that a lablet of a topology needs."""
    return tuple(Wanted(slot.name, slot.protocol.upper()) for slot in template.slots)


def mappings_of(template: PortTemplate, ports: Mapping[str, int]) -> dict[str, PortInfo]:
    """Return the port of each allocated slot, by the slot's name, `{label}_{access}`."""
    return {
        slot.name: PortInfo(
            device_label=slot.device,
            protocol=slot.kind,
            original_port=slot.tag.outside,
            allocated_port=ports[slot.name],
            internal_port=slot.tag.inside,
            transport=slot.protocol,
            opened=slot.tag.opened,
        )
        for slot in template.slots
        if slot.name in ports
    }


def ports_in(template: PortTemplate, tags: Mapping[str, Iterable[str]]) -> dict[str, int] | None:
    """Return the outside port of every slot as the tags of a lab's devices have it: `rewrite` read backwards.

    Args:
        template: Of the topology that the lab was imported from.
        tags: The tags of its devices as CML has them, by label.

    Returns:
        None if the tags are not those of the template with other outside ports.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for label, texts in tags.items():
        for text in dict.fromkeys(texts):
            if (tag := parse_tag(text)) is not None:
                found.setdefault((label, tag.access), []).append(tag.outside)
    ports: dict[str, int] = {}
    for slot in template.slots:
        outside = found.get((slot.device, slot.tag.access))
        if not outside:
            return None
        ports[slot.name] = outside.pop(0)
    if any(found.values()) or not all(1 <= port <= PORT_MAX for port in ports.values()):
        return None
    return ports


def named_by(tags: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, int]]:
    """Yield the outside ports that a lab's tags name, as (protocol, port).

    Args:
        tags: The tags of its devices as CML has them, by label.

    >>> list(named_by({"r1": ["core", "serial:5041"], "h0": ["pat:udp:5044:53"]}))
    [('UDP', 5044), ('TCP', 5041)]
    """
    for label in sorted(tags):
        for text in dict.fromkeys(tags[label]):
            tag = parse_tag(text)
            if tag is not None and 1 <= tag.outside <= PORT_MAX:
                yield tag.protocol.upper(), tag.outside


@lru_cache(maxsize=4096)
def _rendered(template: PortTemplate, ports: tuple[tuple[str, int], ...]) -> str:
    return msgspec.json.encode(mappings_of(template, dict(ports))).decode()


def rendered(template: PortTemplate, ports: Mapping[str, int]) -> str:
    """Return the mappings as JSON; "" if there are none."""
    return _rendered(template, tuple(ports.items())) if ports else ""


def consoles_of(template: PortTemplate, ports: Mapping[str, int]) -> list[int]:
    """List the ports on which CML listens as soon as the devices run."""
    return [ports[slot.name] for slot in template.slots if slot.kind in _LOGGED_INTO and slot.name in ports]


def describe_closed_ports(ports: Iterable[int], range_: PortRange) -> str:
    """Return the message for a lablet none of whose console ports opens, with the remedy."""
    numbers = sorted(ports)
    which = f"port {numbers[0]} does not open" if len(numbers) == 1 else f"none of {len(numbers)} console ports opens"
    return (
        f"{which} on the worker: PATty is off or its range is not {range_.start}-{range_.end}: set OPTS in "
        "/etc/default/patty.env on the worker, or spec.portRange of the CMLWorker"
    )
