"""How people name a link, and the packets of a capture's file that grows. Pure."""

import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from vkprovider.lablet.observations import LinkFact
from vkprovider.lablet.reasons import ConsoleReason
from vkprovider.platform.errors import InputError, Unavailable


class LinkEnd(NamedTuple):
    """An end of a link: the label of the device, and of the interface; "" where that is not known."""

    device: str
    interface: str

    def __str__(self) -> str:
        return f"{self.device}:{self.interface}" if self.interface else self.device


class NamedLink(NamedTuple):
    """A link with its ends."""

    fact: LinkFact
    ends: tuple[LinkEnd, LinkEnd]

    def __str__(self) -> str:
        return " - ".join(map(str, self.ends))


_BETWEEN: Final = "<->"


def named(
    links: Iterable[LinkFact], labels: Mapping[str, str], hidden: frozenset[str], wiring: frozenset[str]
) -> list[NamedLink]:
    """Return the links of a lab with their ends, without those that may carry what hidden devices say to each other.

    Where there is a hidden device, a link is returned if one of its ends is neither hidden nor wiring.

    Args:
        links: As CML lists them.
        labels: Those of the devices, by id.
        hidden: The labels of devices whose configuration nobody sees.
        wiring: Those of switches and connectors, which pass on what others say.
    """
    found = []
    closed = hidden | wiring | {""} if hidden else hidden  # a device that is not known may be any
    for fact in links:
        devices = [labels.get(node, "") for node in fact.nodes]
        sides = fact.label.split(_BETWEEN)
        if len(sides) != len(devices) or not all(s.startswith(f"{d}-") for s, d in zip(sides, devices, strict=True)):
            sides = [f"{device}-" for device in devices]  # a device was renamed, or CML words it in another way
        a, b = (LinkEnd(device, side[len(device) + 1 :]) for device, side in zip(devices, sides, strict=True))
        if not {a.device, b.device} <= closed:
            found.append(NamedLink(fact, (a, b)))
    return sorted(found, key=str)


def find(links: Iterable[NamedLink], name: str) -> NamedLink:
    """Return the link of a name: one of its ends, or its devices where they have one link only.

    Raises:
        InputError: `NotALink`.
    """
    known = list(links)
    found = [link for link in known if any(_is_end(name, end) for end in link.ends) or _joins(link, name)]
    exact = [link for link in found if any(str(end).lower() == name.lower() for end in link.ends)]
    if len(found) != 1 and len(exact) != 1:
        what = f"several links are named {name!r}" if found else f"there is no link {name!r}"
        there = ", ".join(map(str, found or known)) or "none"
        raise InputError(
            ConsoleReason.NOT_A_LINK, f"{what}: write one of its ends, such as r1:eth0; links are: {there}"
        )
    return (exact or found)[0]


def _joins(link: NamedLink, name: str) -> bool:
    a, b = (end.device.lower() for end in link.ends)
    return name.lower() in {f"{a}-{b}", f"{b}-{a}"}


_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz ._-"


def _is_end(name: str, end: LinkEnd) -> bool:
    """Return whether a name is that of an end; `gi0/0` is GigabitEthernet0/0.

    >>> [_is_end("r1:gi0/1", LinkEnd("r1", f"GigabitEthernet0/{number}")) for number in (1, 10)]
    [True, False]
    """
    device, _, interface = name.lower().rpartition(":")
    if device != end.device.lower() or not interface or not end.interface:
        return False
    whole = end.interface.lower()
    number, whole_number = interface.lstrip(_LETTERS), whole.lstrip(_LETTERS)
    kind, whole_kind = interface.removesuffix(number), whole.removesuffix(whole_number)
    return number == whole_number and bool(kind) == bool(whole_kind) and whole_kind.startswith(kind)


_FILE_BYTES: Final = 24
_RECORD_BYTES: Final = 16
_PACKET_BYTES_MAX: Final = 256 * 1024
_ORDERS: Final = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\xa1\xb2\x3c\x4d": ">",
}
"""The order of bytes by the first four of a pcap file: of those with microseconds, and with nanoseconds."""
EMPTY: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
"""A pcap file of Ethernet without a packet."""


class GrowingPcap:
    """A pcap file that is read again and again while it grows.

    Attributes:
        packets: How many were returned.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._taken = 0
        self.packets = 0

    @property
    def has_begun(self) -> bool:
        """Whether the head of the file was returned."""
        return self._taken > 0

    def new(self, data: bytes, enough_bytes: int) -> bytes:
        """Return what was not returned before: the head once, and each packet once, as soon as it is whole.

        Args:
            data: The file.
            enough_bytes: The packet that reaches so many is the last; if it is reached, there may be more.

        Raises:
            Unavailable: It is no pcap file, or a damaged one.
        """
        if len(data) < _FILE_BYTES:
            return b""
        order = _ORDERS.get(data[:4])
        if order is None:
            raise Unavailable("CML gives the packets of a link in a form that is no pcap file")
        begin = self._taken
        at = begin or _FILE_BYTES
        while at + _RECORD_BYTES <= len(data) and at - begin < enough_bytes:
            (length,) = struct.unpack_from(f"{order}8xI", data, at)
            if length > _PACKET_BYTES_MAX:
                raise Unavailable(f"CML gives a damaged pcap file: a packet of {length} bytes")
            if at + _RECORD_BYTES + length > len(data):
                break
            at += _RECORD_BYTES + length
            self.packets += 1
        self._taken = max(begin, at)
        return data[begin : self._taken]
