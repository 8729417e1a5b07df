"""The port template of a topology: a named placeholder for every port that its tags request.

Names are `{label}_{access}`: `PC_serial`, `PC_vnc`, `iosv-0_serial`, `PC_pat22`, `dns_patudp53`, `sw_serial1`. In a
label, spaces become underscores and special characters are removed; labels that become equal get suffixes `-2`, `-3` in
topology order, while an unchanged label keeps its name. Tags of one device that differ only in their placeholder
reach the same service through two ports; the second is `PC_serial-2`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import msgspec

from vkprovider.api import names
from vkprovider.domain.topology.tags import PortTag, parse_tag

_SPACE: Final = re.compile(r"\s")
_SPECIAL: Final = re.compile(r"[^\w-]")


@dataclass(frozen=True, slots=True)
class PortSlot:
    """A placeholder for one port; a lablet's allocation fills in the number.

    Attributes:
        name: Unique in its topology, `{label}_{access}`.
        device: The device's label.
        container: The device's container.
        kind: The service behind it: serial, vnc, pat, http, https, ssh, telnet or tcp.
        protocol: The transport protocol: tcp or udp.
        tag: The tag that requests it.
    """

    name: str
    device: str
    container: str
    kind: str
    protocol: str
    tag: PortTag


@dataclass(frozen=True, slots=True)
class PortDefinition:
    """A service of a device, listed once."""

    name: str
    protocol: str


class PortTemplate(msgspec.Struct, frozen=True, cache_hash=True):
    """The ports that a topology requests.

    Attributes:
        slots: One for every distinct tag of a device, in topology order. Identical tags of a device share one.
    """

    slots: tuple[PortSlot, ...] = ()

    @property
    def definitions(self) -> tuple[PortDefinition, ...]:
        """All services in topology order: one entry per device and access, however many tags lead there."""
        found: dict[tuple[str, str], PortDefinition] = {}
        for slot in self.slots:
            found.setdefault((slot.device, slot.tag.access), PortDefinition(slot.name, slot.protocol))
        return tuple(found.values())

    @staticmethod
    def from_cml_nodes(nodes: Iterable[Any] | None) -> "PortTemplate":
        """Build the template of a topology's `nodes`; other tags, and nodes without a label, are skipped.

        Example:
            `[{"label": "PC", "tags": ["serial:4567", "vnc:4568"]}]` yields PC_serial and PC_vnc.
        """
        tags: dict[str, list[str]] = {}
        for node in nodes if isinstance(nodes, Sequence) else ():
            if isinstance(node, Mapping) and isinstance(label := node.get("label"), str) and label:
                given = node.get("tags")
                tags.setdefault(label, []).extend(
                    tag for tag in (given if isinstance(given, list) else ()) if isinstance(tag, str)
                )
        taken = {names.LAB_CONTAINER}
        return PortTemplate.of([(label, names.container_name(label, taken), found) for label, found in tags.items()])

    @classmethod
    def of(cls, devices: Sequence[tuple[str, str, Iterable[str]]]) -> Self:
        """Build the template from (label, container, tags) of every device; labels differ."""
        stems = _stems([label for label, _, _ in devices])
        slots: list[PortSlot] = []
        for label, container, tags in devices:
            counts: dict[str, int] = {}
            for text in dict.fromkeys(tags):
                tag = parse_tag(text)
                if tag is None:
                    continue
                access = tag.access
                count = counts[access] = counts.get(access, 0) + 1
                name = f"{stems[label]}_{access}" + (f"-{count}" if count > 1 else "")
                slots.append(PortSlot(name, label, container, tag.kind, tag.protocol, tag))
        return cls(tuple(slots))

    def to_dict(self) -> dict[str, Any]:
        """Return the template as plain data, for a status or an event.

        Example:
            `{"ports": [{"name": "PC_serial", "protocol": "tcp", "device": "PC", "container": "pc", "tag": …}]}`
        """
        return {
            "ports": [
                {
                    "name": slot.name,
                    "protocol": slot.protocol,
                    "device": slot.device,
                    "container": slot.container,
                    "tag": slot.tag.text,
                }
                for slot in self.slots
            ]
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Parse the result of `to_dict`.

        Raises:
            ValueError: It is not a port template.
        """
        slots: list[PortSlot] = []
        try:
            for port in data["ports"]:
                tag = parse_tag(port["tag"])
                if tag is None:
                    raise ValueError(f"{port['tag']!r} is not a port tag")
                slots.append(PortSlot(port["name"], port["device"], port["container"], tag.kind, tag.protocol, tag))
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a port template: {error!r}") from None
        return cls(tuple(slots))


def _stems(labels: Sequence[str]) -> dict[str, str]:
    """Return the unique first part of the port names of each label."""
    cleaned = {label: _SPECIAL.sub("", _SPACE.sub("_", label)) or "device" for label in labels}
    taken = {label for label, stem in cleaned.items() if label == stem}
    for label, stem in cleaned.items():
        if label == stem:
            continue
        unique, n = stem, 1
        while unique in taken:
            n += 1
            unique = f"{stem}-{n}"
        taken.add(unique)
        cleaned[label] = unique
    return cleaned
