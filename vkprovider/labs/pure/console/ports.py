"""Where a port of a Pod leads: an allocated port of the worker, or one in a device as the template says; screens."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from vkprovider.lablet.ports import PortSlot, PortTemplate
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.platform.errors import InputError

TELNET: Final = 23
"""The inside port that stands for a device's console."""
VNC: Final = 5900
"""The inside port that stands for its screen (RFC 6143)."""


class PortRoute(NamedTuple):
    """A port of the worker, and what is behind it."""

    port: int
    slot: PortSlot


def inside_of(slot: PortSlot) -> int | None:
    """Return the device's own port behind a slot; None if it has none."""
    match slot.kind:
        case "pat":
            return slot.tag.inside
        case "vnc":
            return VNC
        case "serial":
            return None if slot.tag.line else TELNET
        case _:
            return None


def way_to(template: PortTemplate, ports: Mapping[str, int], port: int, *, pod: str) -> PortRoute:
    """Find where a port leads.

    Args:
        template: Of the lablet's topology.
        ports: The allocated port of each slot.
        port: An allocated port, or one inside a device.
        pod: The Pod's name, for messages.

    Raises:
        InputError: `UnknownPort` or `AmbiguousPort`.
    """
    ways = [PortRoute(ports[slot.name], slot) for slot in template.slots if slot.name in ports]
    found = [way for way in ways if way.port == port] or [way for way in ways if inside_of(way.slot) == port]
    usable = [way for way in found if way.slot.protocol == "tcp" and way.slot.tag.opened]
    if len(usable) == 1:
        return usable[0]
    if usable:
        which = _described(usable)
        raise InputError(
            ConsoleReason.AMBIGUOUS_PORT, f"port {port} of pod {pod} is inside several devices; use one of {which}"
        )
    if found:
        slot = found[0].slot
        why = "is a UDP port" if slot.protocol != "tcp" else f"has a tag of kind {slot.kind}, which CML does not open"
        raise InputError(ConsoleReason.UNKNOWN_PORT, f"port {port} of pod {pod} ({slot.name}) {why}")
    others = _described([way for way in ways if way.slot.protocol == "tcp" and way.slot.tag.opened])
    has = f"it has {others}" if others else "its topology tags none"
    raise InputError(ConsoleReason.UNKNOWN_PORT, f"pod {pod} has no port {port}; {has}")


def screen_of(template: PortTemplate, ports: Mapping[str, int], device: str, *, pod: str) -> PortRoute:
    """Find where the screen of a device is.

    Args:
        template: Of the lablet's topology.
        ports: The allocated port of each slot.
        device: The label of the device.
        pod: The Pod's name, for messages.

    Raises:
        InputError: `NoScreen`.
    """
    for slot in template.slots:
        if slot.device == device and slot.kind == "vnc" and slot.name in ports:
            return PortRoute(ports[slot.name], slot)
    text = f"device {device} of pod {pod} has no screen here: its topology has no tag `vnc:PORT` for it"
    raise InputError(ConsoleReason.NO_SCREEN, text)


def _described(ways: list[PortRoute]) -> str:
    """Return `10000 (r1_serial), 10001 (r1_pat22, 22 inside)`."""
    parts = []
    for way in ways:
        inside = inside_of(way.slot)
        parts.append(f"{way.port} ({way.slot.name}{f', {inside} inside' if inside else ''})")
    return ", ".join(parts)
