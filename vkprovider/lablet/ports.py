"""A lablet's ports: the grammar of port tags, the template of a topology, and where each port leads.

A device of a topology carries tags; those of the forms below request a port of the worker, all others are the author's
own. The outside port in the topology is a placeholder: each lablet gets another one.

    serial:5041         the device's console         serial:5041:1   its second line
    vnc:5042            its screen                   http:5045       (https, ssh, telnet, tcp:) allocated and rewritten,
    pat:5043:22         TCP to its port 22                           but not opened by CML
    pat:udp:5044:53     UDP to its port 53

Names are `{label}_{access}`: `PC_serial`, `PC_vnc`, `iosv-0_serial`, `PC_pat22`, `dns_patudp53`, `sw_serial1`. In a
label, spaces become underscores and special characters are removed; labels that become equal get suffixes `-2`, `-3` in
topology order, while an unchanged label keeps its name. Tags of one device that differ only in their placeholder
reach the same service through two ports; the second is `PC_serial-2`.

A device is shown if a learner can use it. It is shown with its primary access: the best one for a learner among the
ports that CML opens. Tags such as `http:` and `ssh:` get a port, but CML does not listen there, so they are no access:
a device's web page or SSH server is reached through `pat:OUTSIDE:443`, `:80` or `:22`.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

import msgspec

from vkprovider.platform.ports.allocator import PortBounds, RequestedPort

PORT_MAX: Final = 65535

_FORM: Final = re.compile(
    r"serial:(?P<console>[0-9]{1,9})(?::(?P<line>[0-9]{1,9}))?"
    r"|(?P<plain>vnc|https?|ssh|telnet|tcp):(?P<port>[0-9]{1,9})"
    r"|pat:(?:(?P<transport>tcp|udp):)?(?P<out>[0-9]{1,9}):(?P<inside>[0-9]{1,9})"
)
_NUMBERS: Final = ("console", "port", "out")
_HEAD: Final = re.compile(r"\s*([A-Za-z]{2,12})\s*[:=](.*)", re.DOTALL)
_WITHOUT_COLON: Final = re.compile(r"\s*([A-Za-z]{3,12})[\s_.;,/|-]*([0-9]{3,5}(?:[^0-9].*)?)", re.DOTALL)
"""A word and a number that may be a port; shorter ones are names, such as `http2`."""
_FORMS: Final = {
    "serial": "serial:PORT, or serial:PORT:LINE",
    "vnc": "vnc:PORT",
    "pat": "pat:PORT:INSIDE, or pat:udp:PORT:INSIDE",
    **{kind: f"{kind}:PORT" for kind in ("http", "https", "ssh", "telnet", "tcp")},
}
"""How a tag of each kind is written."""
_OPENED: Final = frozenset({"serial", "vnc", "pat"})
"""Kinds of tags for which CML's port service listens; no other kind ever opens a port."""


@dataclass(frozen=True, slots=True)
class PortTag:
    """A tag that requests a port.

    Attributes:
        kind: The service behind the port: serial, vnc, pat, http, https, ssh, telnet or tcp.
        protocol: The transport protocol of the outside port: tcp or udp.
        outside: The author's placeholder, any number.
        inside: The device's own port, of a `pat:` tag.
        line: The serial line, where the tag names one.
        text: The tag itself.
    """

    kind: str
    protocol: str
    outside: int
    inside: int | None
    line: int | None
    text: str

    @property
    def opened(self) -> bool:
        """Whether CML opens the port."""
        return opened_by_cml(self.kind)

    @property
    def access(self) -> str:
        """The service behind the port, unique within a device: serial, serial1, pat22, patudp53."""
        if self.kind == "pat":
            return f"pat{'udp' if self.protocol == 'udp' else ''}{self.inside}"
        return f"{self.kind}{self.line or ''}"


def opened_by_cml(kind: str) -> bool:
    """Return whether CML opens ports of a kind of tag."""
    return kind in _OPENED


def parse_tag(text: str) -> PortTag | None:
    """Parse a tag; None if it is an ordinary one.

    >>> parse_tag("pat:5067:22").access
    'pat22'
    """
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    console, line, plain, port, transport, out, inside = found.groups()
    if inside is not None and not 1 <= int(inside) <= PORT_MAX:
        return None
    return PortTag(
        kind="pat" if inside is not None else plain or "serial",
        protocol=transport or "tcp",
        outside=int(console or port or out),
        inside=int(inside) if inside is not None else None,
        line=int(line) if line is not None else None,
        text=text,
    )


def span_of(text: str) -> tuple[int, int]:
    """Return where the outside port is in the text of a port tag.

    Raises:
        ValueError: It is not a port tag.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a port tag")
    return next(found.span(name) for name in _NUMBERS if found[name] is not None)


def fault(text: str) -> str | None:
    """Return the fault of a tag that has the form of a port tag but can never work; None if it has none."""
    found = _FORM.fullmatch(text)
    if found is not None and found["inside"] is not None and parse_tag(text) is None:
        return f"{text!r} leads to port {int(found['inside'])} of the device; ports are 1 to {PORT_MAX}"
    return None


def suspect(text: str) -> str:
    """Return how a tag that requests no port was probably meant to be written; "" if it is an ordinary one.

    >>> suspect("pat:5043")
    'pat:PORT:INSIDE, or pat:udp:PORT:INSIDE'
    >>> suspect("vnc5042")
    'vnc:PORT'
    """
    head = _HEAD.fullmatch(text) or _WITHOUT_COLON.fullmatch(text)
    if head is None or parse_tag(text) is not None:
        return ""
    kind, rest = head[1].lower(), head[2]
    if kind in _OPENED:
        return _FORMS[kind]
    if not re.search(r"[0-9]", rest):
        return ""
    long = [form for form in _FORMS if len(form) > len("pat")]  # a short word is close to many others
    meant = [kind] if kind in _FORMS else difflib.get_close_matches(kind, long, n=1, cutoff=0.75)
    return _FORMS[meant[0]] if meant else ""


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
def wanted_of(template: PortTemplate) -> tuple[RequestedPort, ...]:
    """List the ports that a lablet of a topology needs."""
    return tuple(RequestedPort(slot.name, slot.protocol.upper()) for slot in template.slots)


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


def describe_closed_ports(ports: Iterable[int], range_: PortBounds) -> str:
    """Return the message for a lablet none of whose console ports opens, with the remedy."""
    numbers = sorted(ports)
    which = f"port {numbers[0]} does not open" if len(numbers) == 1 else f"none of {len(numbers)} console ports opens"
    return (
        f"{which} on the worker: PATty is off or its range is not {range_.start}-{range_.end}: set OPTS in "
        "/etc/default/patty.env on the worker, or spec.portRange of the CMLWorker"
    )


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
