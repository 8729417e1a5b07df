"""A topology (`cml.yaml`) as data: devices with what they need, and the text that is imported for one lablet.

Versions and fields: the topology schema of CML 2.8 to 2.10. What CML itself would refuse is refused here first, with
the field's name, because here the message reaches the author.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from vkprovider.lablet import names
from vkprovider.lablet import ports as grammar
from vkprovider.lablet.ports import PortSlot, PortTemplate, accesses, why_hidden
from vkprovider.lablet.reasons import DefinitionReason
from vkprovider.labs.pure.topology import rewrite, schema, yamltext
from vkprovider.labs.pure.topology.rewrite import GappedText, ParameterConfiguration, form_of, head_of
from vkprovider.labs.pure.topology.yamltext import CHARS_MAX as TOPOLOGY_CHARS_MAX
from vkprovider.platform.errors import InputError, shorten

__all__ = ["NOTES_CHARS_MAX", "SINCE", "TOPOLOGY_CHARS_MAX", "VERSIONS", "Device", "Topology", "parse"]

VERSIONS: Final = frozenset(
    {"0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5", "0.1.0", "0.2.0", "0.2.1", "0.2.2", "0.3.0", "0.3.1"}
)
"""Topology versions that CML 2.8 to 2.10 import."""
SINCE: Final[Mapping[str, tuple[int, int]]] = MappingProxyType({"0.3.1": (2, 10)})
"""The first release of CML that imports a version, of those that not every supported release imports."""
LABEL_CHARS_MAX: Final = 128
TAG_CHARS_MAX: Final = 64
NOTES_CHARS_MAX: Final = 32768
COUNT_MAX: Final = 2**24
"""The most processors, and the most MiB of memory: more than any machine has."""

_FLAT_VERSIONS: Final = frozenset({"0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5"})
"""Versions whose header is at the top level."""
_CONVERTED_VERSIONS: Final = frozenset({"0.1.0"})
"""Versions that CML converts before it checks them, beside those of `_FLAT_VERSIONS`."""
_FLAT_FIELDS: Final = ("version", "title", "description", "notes")
_FLAT_HEADER: Final = frozenset({*_FLAT_FIELDS, *(f"lab_{field}" for field in _FLAT_FIELDS)})


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a topology.

    Attributes:
        container: The name of the container that represents it in a Pod.
        definition, image: Its node definition; the image definition, where the topology names one.
        cpus, ram_mib: The topology's own values; None where the node definition decides.
        tags: All of them, as written.
        visible: Whether learners see it.
        primary: The name of the best port for a learner, visible or not; None if no client can reach it.
        place: Its coordinates in the picture of the lab; None if it has none that CML would take.
    """

    label: str
    container: str
    definition: str
    cpus: int | None = None
    ram_mib: int | None = None
    tags: tuple[str, ...] = ()
    image: str | None = None
    visible: bool = False
    primary: str | None = None
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """A parsed topology: plain data, so that it can be parsed in one process and used in another.

    Attributes:
        description, notes: The author's.
        head: The lab's fields as text, with gaps for title, description and notes.
        template: The ports that its tags request.
        form: Everything but the lab's fields, as text with gaps for the ports and for `configurations`.
        configurations: The day-0 configurations with parameters.
        faults: What no CML imports, with the places, of a version that CML does not convert before.
        doubts: What CML's schema does not allow, with the places; an import may fail for it.
        unreached: Labels of devices that a `pat:` tag leads to, and that no link joins with an external connector.
        pairs: The labels of the devices that links join, each pair once.
        cpu_limit: The smallest share of its CPU that a device gets, in percent; CML waits the longer for it to boot.
    """

    version: str
    devices: tuple[Device, ...]
    description: str
    notes: str
    head: GappedText
    template: PortTemplate
    form: GappedText
    configurations: tuple[ParameterConfiguration, ...] = ()
    faults: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    cpu_limit: int = 100

    def suspect_tags(self) -> list[str]:
        """Return the fault of each tag that looks like a port tag and requests no port."""
        return [
            f"tag {tag!r} of {device.label!r} requests no port: write {meant}"
            for device in self.devices
            for tag in device.tags
            if (meant := grammar.suspect(tag))
        ]

    def tags_without_ports(self) -> dict[str, list[str]]:
        """Return, by label, the tags that request no port: the author's own, and those of a wrong form."""
        found = {d.label: [tag for tag in d.tags if grammar.parse_tag(tag) is None] for d in self.devices}
        return {label: tags for label, tags in found.items() if tags}

    def render(
        self,
        *,
        title: str,
        notes: str,
        description: str | None = None,
        ports: Mapping[str, int] | None = None,
        environment: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> str:
        """Render the text to import: the same topology under a lablet's own title, its notes before the author's.

        Args:
            title: The lab's title.
            notes: The text before the author's notes.
            description: The lab's description; None is the author's.
            ports: The outside port of every slot of the template, by the slot's name; None keeps those in the tags.
            environment: The values of parameters; see `rewrite.scalars`.

        Raises:
            InputError: `CreateContainerConfigError`: the values are too long.
            KeyError: A slot has no port.
        """
        all_notes = (f"{notes}\n\n{self.notes}" if self.notes else notes)[:NOTES_CHARS_MAX]
        shown = self.description if description is None else description
        fields = {"title": title, "notes": all_notes, "description": shown}
        head = self.head.filled({field: yamltext.scalar(text) for field, text in fields.items()})
        if not self.configurations:
            return head + self.form.filled(ports)
        values: dict[str, int | str] = {**(self.form.own if ports is None else ports)}
        return head + self.form.filled(values | rewrite.scalars(self.configurations, environment))


def parse(text: str, *, images: Mapping[str, str] = MappingProxyType({})) -> Topology:
    """Parse a topology.

    Args:
        text: Of a cml.yaml.
        images: Image definitions that replace those in the text, by the device's label.

    Raises:
        InputError: `TopologyInvalid`, with the field and what is wrong about it.
    """
    document, shared = yamltext.load(text)
    if not isinstance(document, dict):
        raise InputError(DefinitionReason.TOPOLOGY_INVALID, "not a CML topology: expected lab, nodes and links")
    flat = "lab" not in document
    header = {k: v for k, v in document.items() if k in _FLAT_HEADER} if flat else document["lab"]
    version = _version(header, flat=flat)
    nodes = _nodes(document, flat=flat)
    devices, template = _devices(nodes, images)
    if wrong := schema.link_fault(nodes, document.get("links", [])):
        raise _invalid(*wrong)
    rest = {k: v for k, v in document.items() if k != "lab" and not (flat and k in _FLAT_HEADER)}
    if images:
        rest["nodes"] = [
            {**node, "image_definition": images[node["label"]]} if node["label"] in images else node for node in nodes
        ]
    description = header.get("description", header.get("lab_description", "") if flat else "")
    gaps = ["title", "notes", *(["description"] if isinstance(description, str) else [])]
    ours = {"title", "lab_title", *gaps, *(f"lab_{gap}" for gap in gaps if flat)}
    try:
        clean = {field: value for field, value in header.items() if field not in ours}
        head = head_of(clean, gaps, source=text, flat=flat, shared=shared)
        containers = {device.label: device.container for device in devices}
        form, configurations = form_of(rest, template, containers, source=text, shared=shared)
    except ValueError as error:
        raise InputError(DefinitionReason.TOPOLOGY_INVALID, str(error)) from None
    notes = header.get("notes") or header.get("lab_notes") or ""
    faults, doubts = _against_schema(version, document, nodes)
    reached = schema.reached_from("external_connector", nodes, document.get("links", []))
    passed_on = dict.fromkeys(slot.device for slot in template.slots if slot.kind == "pat")
    return Topology(
        version=version,
        devices=devices,
        description=description if isinstance(description, str) else "",
        notes=notes,
        head=head,
        template=template,
        form=form,
        configurations=configurations,
        faults=faults,
        doubts=doubts,
        unreached=tuple(label for label in passed_on if label not in reached),
        pairs=schema.pairs(nodes, document.get("links", [])),
        cpu_limit=min(schema.cpu_limit_of(node) for node in nodes),
    )


def _against_schema(
    version: str, document: dict[Any, Any], nodes: list[Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the faults and the doubts of a topology: of an older version doubts alone, for CML converts it first."""
    if version in _FLAT_VERSIONS:
        return (), ()
    faults = tuple(schema.faults(nodes, document["links"]))
    if version in _CONVERTED_VERSIONS:
        return (), faults
    return faults, tuple(schema.doubts(document, nodes))


def _version(header: Any, *, flat: bool) -> str:
    """Check the header; return its version."""
    if not isinstance(header, dict):
        raise _invalid("lab", "must be a mapping with `version` and `title`")
    version = header.get("version", header.get("lab_version") if flat else None)
    if version is None:
        raise _invalid("lab.version", "is missing; CML 2.9 writes '0.3.0'")
    if not isinstance(version, str) or version not in VERSIONS:
        hint = "; put it in quotes" if not isinstance(version, str) else ""
        raise _invalid("lab.version", f"{_show(version)} is unknown, known are {', '.join(sorted(VERSIONS))}{hint}")
    if flat and version not in _FLAT_VERSIONS:
        raise _invalid("lab", f"is missing; version {version} has a mapping there, with `version` and `title`")
    for field in ("notes", "lab_notes"):
        if not isinstance(header.get(field) or "", str):
            raise _invalid(f"lab.{field}", f"must be a text, not {_show(header[field])}")
    return version


def _nodes(document: dict[Any, Any], *, flat: bool) -> list[Any]:
    """Check that nodes and links are lists; return the nodes."""
    nodes, schema = document.get("nodes"), document.get("links", [] if flat else None)
    if not isinstance(nodes, list):
        raise _invalid("nodes", "is missing or not a list")
    if not nodes:
        raise _invalid("nodes", "is empty; a lab needs at least one device")
    if not isinstance(schema, list):
        raise _invalid("links", "is missing or not a list")
    return nodes


def _devices(nodes: list[Any], images: Mapping[str, str]) -> tuple[tuple[Device, ...], PortTemplate]:
    labels: dict[str, int] = {}
    containers = {names.LAB_CONTAINER}
    devices = []
    for i, node in enumerate(nodes):
        place = f"nodes[{i}]"
        if not isinstance(node, dict):
            raise _invalid(place, "must be a mapping")
        label = node.get("label")
        if not isinstance(label, str) or not 1 <= len(label) <= LABEL_CHARS_MAX:
            raise _invalid(f"{place}.label", f"must be a text of 1 to {LABEL_CHARS_MAX} characters, not {_show(label)}")
        if label in labels:
            raise _invalid(f"{place}.label", f"{label!r} is nodes[{labels[label]}]'s already; labels must differ")
        labels[label] = i
        if label in images:
            node = {**node, "image_definition": images[label]}  # noqa: PLW2901 (the same node, completed)
        devices.append(_device(node, label, names.container_name(label, containers), place))
    template = PortTemplate.of([(device.label, device.container, device.tags) for device in devices])
    slots: dict[str, list[PortSlot]] = {}
    for slot in template.slots:
        slots.setdefault(slot.device, []).append(slot)
    return tuple(
        dataclasses.replace(device, primary=ways[0].slot) if (ways := accesses(slots.get(device.label, ()))) else device
        for device in devices
    ), template


def _device(node: dict[Any, Any], label: str, container: str, place: str) -> Device:
    definition, image = node.get("node_definition"), node.get("image_definition")
    if not isinstance(definition, str) or not definition:
        raise _invalid(f"{place}.node_definition", f"of {label!r} must be a text, not {_show(definition)}")
    if image is not None and not isinstance(image, str):
        raise _invalid(f"{place}.image_definition", f"of {label!r} must be a text, not {_show(image)}")
    tags = node.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise _invalid(f"{place}.tags", f"of {label!r} must be a list of texts; put numbers in quotes")
    for tag in tags:
        if len(tag) > TAG_CHARS_MAX:
            raise _invalid(
                f"{place}.tags", f"of {label!r}: {_show(tag)} has {len(tag)} characters, at most {TAG_CHARS_MAX}"
            )
        if fault := grammar.fault(tag):
            raise _invalid(f"{place}.tags", f"of {label!r}: {fault}")
    return Device(
        label=label,
        container=container,
        definition=definition,
        cpus=_count(node, "cpus", place),
        ram_mib=_count(node, "ram", place),
        tags=tuple(tags),
        image=image or None,
        visible=why_hidden(definition, tags) is None,
        place=_place(node),
    )


def _place(node: dict[Any, Any]) -> tuple[int, int] | None:
    """Return the coordinates of a node; None if one of them is none. A doubt of the schema tells the author."""
    found = []
    for axis in "xy":
        value = node.get(axis)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= schema.COORDINATE_MAX:
            return None
        found.append(round(value))
    return found[0], found[1]


def _count(node: dict[str, Any], field: str, place: str) -> int | None:
    value = node.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= COUNT_MAX:
        raise _invalid(f"{place}.{field}", f"of {node['label']!r} must be a whole number, not {_show(value)}")
    return value or None


def _show(value: object) -> str:
    """Return the text of an invalid value; a few aliases are enough to make the text of a list endless."""
    if isinstance(value, (list, dict, set, tuple)):
        return "a mapping" if isinstance(value, dict) else "a list"
    try:
        return shorten(repr(value), 80)
    except ValueError:  # a number of more than 4300 digits
        return "a number without end"


def _invalid(place: str, what: str) -> InputError:
    return InputError(DefinitionReason.TOPOLOGY_INVALID, f"{place} {what}")
