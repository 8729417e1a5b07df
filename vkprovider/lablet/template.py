"""The port template of a topology: a named placeholder for every port that its tags request.

Names are `{label}_{access}`: `PC_serial`, `PC_vnc`, `iosv-0_serial`, `PC_pat22`, `dns_patudp53`, `sw_serial1`. In a
label, spaces become underscores and special characters are removed; labels that become equal get suffixes `-2`, `-3` in
topology order, while an unchanged label keeps its name. Tags of one device that differ only in their placeholder
reach the same service through two ports; the second is `PC_serial-2`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import msgspec

from vkprovider.lablet.tags import PortTag, parse_tag

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


class PortTemplate(msgspec.Struct, frozen=True, cache_hash=True):
    """The ports that a topology requests.

    Attributes:
        slots: One for every distinct tag of a device, in topology order. Identical tags of a device share one.
    """

    slots: tuple[PortSlot, ...] = ()

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
