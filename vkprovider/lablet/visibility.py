"""Which devices learners see, and how they reach them.

A device is shown if a learner can use it. It is shown with its primary access: the best one for a learner among the
ports that CML opens. Tags such as `http:` and `ssh:` get a port, but CML does not listen there, so they are no access:
a device's web page or SSH server is reached through `pat:OUTSIDE:443`, `:80` or `:22`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from vkprovider.lablet.tags import parse_tag
from vkprovider.lablet.template import PortSlot

HIDDEN_TAG: Final = "hidden"
INFRASTRUCTURE_NODE_TYPES: Final = frozenset({"external_connector", "unmanaged_switch"})
"""Node definitions that are part of the wiring, without a login."""

_PREFERENCE: Final = (
    ("vnc", "vnc"),
    ("pat443", "https"),
    ("pat80", "http"),
    ("pat22", "ssh"),
    ("pat23", "telnet"),
    ("serial", "telnet"),
)
"""(access of a port, the protocol that a client uses there), best first. Other accesses serve no client."""
_RANKS: Final = {access: rank for rank, (access, _) in enumerate(_PREFERENCE)}


@dataclass(frozen=True, slots=True)
class DeviceAccess:
    """A way to a device.

    Attributes:
        slot: The name of its port.
        protocol: The protocol of its client: vnc, https, http, ssh or telnet.
    """

    slot: str
    protocol: str


def why_hidden(definition: str, tags: Sequence[str]) -> str | None:
    """Return why a device is not shown to learners; None if it is. The first rule that applies is the reason."""
    if HIDDEN_TAG in tags:
        return "it is tagged `hidden`"
    if not any(parse_tag(tag) for tag in tags):
        return "it has no port tag"
    if definition in INFRASTRUCTURE_NODE_TYPES:
        return f"a device of {definition!r} is infrastructure"
    return None


def accesses(slots: Iterable[PortSlot]) -> tuple[DeviceAccess, ...]:
    """List the ways to a device through its ports, the primary one first."""
    found = [
        (_RANKS[reached], slot.tag.line or 0, slot.name) for slot in slots if (reached := _reached(slot)) in _RANKS
    ]
    found.sort(key=lambda way: way[:2])
    return tuple(DeviceAccess(name, _PREFERENCE[rank][1]) for rank, _, name in found)


def _reached(slot: PortSlot) -> str:
    return "serial" if slot.kind == "serial" else slot.tag.access
