"""A topology (`cml.yaml`) as data: devices with what they need, and the text that is imported for one lablet.

Versions and fields: the topology schema of CML 2.8 to 2.10. What CML itself would refuse is refused here first, with
the field's name, because here somebody reads the message.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import yaml

from vkprovider.api import names
from vkprovider.api.errors import InputError, shorten

VERSIONS: Final = frozenset(
    {"0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5", "0.1.0", "0.2.0", "0.2.1", "0.2.2", "0.3.0", "0.3.1"}
)
"""Topology versions that CML 2.8 to 2.10 import."""
LABEL_CHARS_MAX: Final = 128
NOTES_CHARS_MAX: Final = 32768
TOPOLOGY_CHARS_MAX: Final = 4 * 2**20
ALIASES_MAX: Final = 100
"""CML writes no YAML aliases; many of them are an attempt to blow the parser up."""
COUNT_MAX: Final = 2**24
"""Of processors, and of MiB of memory: more than any machine has."""
NESTING_MAX: Final = 100
"""CML nests a handful deep; the C parser overflows its stack, and so ends the process, at some ten thousand."""
LAB_CONTAINER: Final = "lab"
"""The container that stands for the lab as a whole; no device gets this name."""

_PORT_TAG = re.compile(r"^(?:(?:serial):\d+(?::\d+)?|(?:vnc|https?|ssh|telnet|tcp):\d+|pat:(?:(?:tcp|udp):)?\d+:\d+)$")
_PLAIN: Final = frozenset({str, int, bool, type(None)})
_UNPRINTABLE = re.compile("[\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_OPENING: Final = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_CLOSING: Final = (yaml.SequenceEndEvent, yaml.MappingEndEvent)
_FLAT_HEADER: Final = ("version", "title", "lab_title", "description", "lab_description", "notes", "lab_notes")


@dataclass(frozen=True, slots=True)
class Device:
    """One node of a topology.

    Attributes:
        container: The name of the container that stands for it in a Pod.
        cpus, ram_mib: What the topology itself says; None where the node definition decides.
    """

    label: str
    container: str
    definition: str
    cpus: int | None = None
    ram_mib: int | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Topology:
    """A parsed topology.

    Attributes:
        header: The lab's own fields, without those that a lablet gets of its own.
        flat: Whether they stand at the top level, as up to version 0.0.5.
        body: Everything else, as YAML text, rendered once.
    """

    version: str
    devices: tuple[Device, ...]
    header: dict[str, Any]
    flat: bool
    body: str

    @property
    def port_tags(self) -> frozenset[tuple[str, str]]:
        """Every (device, tag) that asks for an external port; identical tags of a device share one."""
        return frozenset((d.label, tag) for d in self.devices for tag in d.tags if _PORT_TAG.match(tag))

    def render(self, *, title: str, notes: str) -> str:
        """Write the text to import: the same topology under a lablet's own title, its notes before the author's."""
        header = dict(self.header)
        author = str(header.get("notes") or header.get("lab_notes") or "")
        header["title"] = title
        header["notes"] = f"{notes}\n\n{author}".strip()[:NOTES_CHARS_MAX]
        if all(type(item) in _PLAIN for pair in header.items() for item in pair):
            indent = "" if self.flat else " "
            lines = "".join(f"{indent}{_json(key)}: {_json(value)}\n" for key, value in header.items())
            return ("" if self.flat else "lab:\n") + lines + self.body
        top = header if self.flat else {"lab": header}
        text: str = yaml.dump(top, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
        return text + self.body


def parse(text: str) -> Topology:
    """Read a topology.

    Raises:
        InputError: `TopologyInvalid`, with the place and what CML expects there.
    """
    document = _load(text)
    flat = "lab" not in document
    header = {k: document[k] for k in _FLAT_HEADER if k in document} if flat else document["lab"]
    if not isinstance(header, dict):
        raise _invalid("lab", "must be a mapping with `version` and `title`")
    version = header.get("version")
    if version is None:
        raise _invalid("lab.version", "is missing; CML 2.9 writes '0.3.0'")
    if not isinstance(version, str) or version not in VERSIONS:
        hint = "; put it in quotes" if not isinstance(version, str) else ""
        raise _invalid("lab.version", f"{_show(version)} is unknown, known are {', '.join(sorted(VERSIONS))}{hint}")
    for field in ("notes", "lab_notes"):
        if not isinstance(header.get(field) or "", str):
            raise _invalid(f"lab.{field}", f"must be a text, not {_show(header[field])}")
    nodes, links = document.get("nodes"), document.get("links", [] if flat else None)
    if not isinstance(nodes, list):
        raise _invalid("nodes", "is missing or no list")
    if not nodes:
        raise _invalid("nodes", "is empty; a lab needs at least one device")
    if not isinstance(links, list):
        raise _invalid("links", "is missing or no list")
    devices = _devices(nodes)
    rest = {k: v for k, v in document.items() if k != "lab" and not (flat and k in _FLAT_HEADER)}
    clean = {k: v for k, v in header.items() if k not in {"title", "lab_title"}}
    try:
        yaml.dump(clean, Dumper=_Dumper)
        body: str = yaml.dump(rest, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError("TopologyInvalid", f"it cannot be written again: {shorten(str(error), 120)}") from None
    return Topology(version=version, devices=devices, header=clean, flat=flat, body=body)


def _load(text: str) -> dict[str, Any]:
    if len(text) > TOPOLOGY_CHARS_MAX:
        raise InputError("TopologyInvalid", f"the topology has {len(text)} characters, at most {TOPOLOGY_CHARS_MAX}")
    try:
        aliases = depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            aliases += isinstance(event, yaml.AliasEvent)
            depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
            if depth > NESTING_MAX:
                raise InputError("TopologyInvalid", f"the topology is nested more than {NESTING_MAX} deep")
        if aliases > ALIASES_MAX:
            raise InputError("TopologyInvalid", f"the topology has {aliases} YAML aliases, at most {ALIASES_MAX}")
        document = yaml.load(text, Loader=_Loader)  # noqa: S506 (the safe loader in C)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        where = f" in line {place.line + 1}, column {place.column + 1}" if place else ""
        problem = getattr(error, "problem", None) or str(error)
        raise InputError("TopologyInvalid", f"no YAML{where}: {shorten(str(problem), 120)}") from None
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError) as error:  # of a wrong tag: !!bool x
        raise InputError("TopologyInvalid", f"no YAML: {shorten(str(error), 120)}") from None
    if not isinstance(document, dict):
        raise InputError("TopologyInvalid", "the topology is no mapping; expected `lab`, `nodes` and `links`")
    return document


def _devices(nodes: list[Any]) -> tuple[Device, ...]:
    labels: dict[str, int] = {}
    containers = {LAB_CONTAINER}
    devices = []
    for i, node in enumerate(nodes):
        place = f"nodes[{i}]"
        if not isinstance(node, dict):
            raise _invalid(place, "must be a mapping")
        label, definition = node.get("label"), node.get("node_definition")
        if not isinstance(label, str) or not 1 <= len(label) <= LABEL_CHARS_MAX:
            raise _invalid(f"{place}.label", f"must be a text of 1 to {LABEL_CHARS_MAX} characters, not {_show(label)}")
        if label in labels:
            raise _invalid(f"{place}.label", f"{label!r} is nodes[{labels[label]}]'s already; labels must differ")
        labels[label] = i
        if not isinstance(definition, str) or not definition:
            raise _invalid(f"{place}.node_definition", f"of {label!r} must be a text, not {_show(definition)}")
        tags = node.get("tags") or []
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise _invalid(f"{place}.tags", f"of {label!r} must be a list of texts; put numbers in quotes")
        devices.append(
            Device(
                label=label,
                container=names.container_name(label, containers),
                definition=definition,
                cpus=_count(node, "cpus", place),
                ram_mib=_count(node, "ram", place),
                tags=tuple(tags),
            )
        )
    return tuple(devices)


def _count(node: dict[str, Any], field: str, place: str) -> int | None:
    value = node.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= COUNT_MAX:
        raise _invalid(f"{place}.{field}", f"of {node['label']!r} must be a whole number, not {_show(value)}")
    return value or None


def _show(value: object) -> str:
    """Show a value that is wrong; a few aliases are enough to make the text of a list endless."""
    if isinstance(value, (list, dict, set, tuple)):
        return "a mapping" if isinstance(value, dict) else "a list"
    try:
        return shorten(repr(value), 80)
    except ValueError:  # a number of more than 4300 digits
        return "a number without end"


def _invalid(place: str, what: str) -> InputError:
    return InputError("TopologyInvalid", f"{place} {what}")


def _json(value: Any) -> str:
    """Write a text, a whole number, a boolean or null as JSON that is YAML 1.1 too, and much quicker to write."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(value).decode())
