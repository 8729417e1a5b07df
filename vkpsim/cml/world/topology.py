"""The topology file: what CML imports and exports.

Files of `0.0.1` to `0.1.0` are converted before they are checked. They have a time stamp, and figures of 0 that stand
for "as the definition says"; some have a flat header instead of the object `lab`. `0.3.1` came with CML 2.10. A
two-part number such as `0.1`, which YAML reads as a float, is not a version.
"""

import contextlib
from typing import Annotated, Any, Final, Literal

import msgspec
import yaml
from msgspec import UNSET, UnsetType

from vkpsim.cml.errors import CmlError, E
from vkpsim.cml.world.model import ConfigFile, Lab, Node

FLAT_VERSIONS: Final = ("0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5")
"""Versions whose title, description and notes may stand at the top level."""
CONVERTED_VERSIONS: Final = (*FLAT_VERSIONS, "0.1.0")
VERSIONS: Final = (*CONVERTED_VERSIONS, "0.2.0", "0.2.1", "0.2.2", "0.3.0")
"""Versions that CML 2.8 and 2.9 read."""
VERSIONS_2_10: Final = (*VERSIONS, "0.3.1")
"""Versions that CML 2.10 reads."""

Title = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Description = Annotated[str, msgspec.Meta(max_length=4096)]
Notes = Annotated[str, msgspec.Meta(max_length=32768)]
ShortId = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Label = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Coordinate = Annotated[int, msgspec.Meta(ge=-15000, le=15000)]
Tag = Annotated[str, msgspec.Meta(max_length=64)]
Cpus = Annotated[int, msgspec.Meta(ge=1, le=128)]
CpuLimit = Annotated[int, msgspec.Meta(ge=20, le=100)]
Slot = Annotated[int, msgspec.Meta(ge=0, le=128)]


class FilePart(msgspec.Struct, forbid_unknown_fields=True):
    """A configuration file; null content is an empty one."""

    name: str
    content: str | None = None


Configuration = str | list[ConfigFile] | None
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=10000)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
_INHERITED: Final = ("ram", "cpus", "cpu_limit", "data_volume", "boot_disk_size")
"""Figures that old files set to 0 where the definition's are meant."""


class Condition(msgspec.Struct, forbid_unknown_fields=True):
    """The condition of a link: what it does to its packets."""

    bandwidth: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] | UnsetType = UNSET
    """The unit is kbit/s."""
    latency: Milliseconds | UnsetType = UNSET
    delay_corr: Percent | UnsetType = UNSET
    limit: Milliseconds | UnsetType = UNSET
    loss: Percent | UnsetType = UNSET
    loss_corr: Percent | UnsetType = UNSET
    gap: Milliseconds | UnsetType = UNSET
    duplicate: Percent | UnsetType = UNSET
    duplicate_corr: Percent | UnsetType = UNSET
    jitter: Milliseconds | UnsetType = UNSET
    reorder_prob: Percent | UnsetType = UNSET
    reorder_corr: Percent | UnsetType = UNSET
    corrupt_prob: Percent | UnsetType = UNSET
    corrupt_corr: Percent | UnsetType = UNSET
    enabled: bool = True


class LabPart(msgspec.Struct, forbid_unknown_fields=True):
    """The object `lab`."""

    version: str
    title: Title | None = None
    description: Description = ""
    notes: Notes = ""
    node_staging: dict[str, Any] | None = None


class InterfacePart(msgspec.Struct, forbid_unknown_fields=True):
    """An interface; its id is local to the node, and a loopback has no slot."""

    id: ShortId
    type: Literal["physical", "loopback"]
    label: str | None = None
    slot: Slot | None = None
    mac_address: str | None = None
    node: str | None = None
    """The id of its node, which says nothing new."""


class NodePart(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A node."""

    id: ShortId
    node_definition: str
    label: Label | None = None
    x: Coordinate | None = None
    y: Coordinate | None = None
    image_definition: str | None = None
    configuration: str | list[FilePart] | FilePart | None = None
    ram: int | None = None
    cpus: Cpus | None = None
    cpu_limit: CpuLimit | None = None
    data_volume: int | None = None
    boot_disk_size: int | None = None
    hide_links: bool = False
    tags: list[Tag] = []
    parameters: dict[str, str | None] = {}
    priority: int | None = None
    pyats: dict[str, str | None] | None = None
    interfaces: list[InterfacePart] = []


class LinkPart(msgspec.Struct, forbid_unknown_fields=True):
    """A link between two interfaces."""

    id: ShortId
    n1: ShortId
    i1: ShortId
    n2: ShortId
    i2: ShortId
    label: str | None = None
    conditioning: Condition | None = None


class Topology(msgspec.Struct, forbid_unknown_fields=True):
    """A whole topology file."""

    lab: LabPart
    nodes: list[NodePart]
    links: list[LinkPart]
    annotations: list[dict[str, Any]] = []
    smart_annotations: list[dict[str, Any]] = []


def parse(text: bytes, versions: tuple[str, ...]) -> Topology:
    """Read a topology file, YAML or JSON, as an import does.

    Raises:
        CmlError: 400, with what is wrong.
    """
    try:
        document = _read(text)
    except (yaml.YAMLError, msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise CmlError(E.BAD_TOPOLOGY, details=f"not valid YAML: {error}") from error
    if not isinstance(document, dict):
        raise CmlError(E.BAD_TOPOLOGY, details="the topology is not a mapping.")
    document = _converted(_lift_flat_header(document))
    header = document.get("lab")
    version = header.get("version") if isinstance(header, dict) else None
    if version not in versions:
        raise CmlError(E.BAD_TOPOLOGY, details=f"unknown topology version {version!r}; known: {', '.join(versions)}.")
    try:
        topology = msgspec.convert(document, Topology)
    except msgspec.ValidationError as error:
        raise CmlError(E.BAD_TOPOLOGY, details=str(error)) from error
    newer = topology.lab.node_staging is not None or any(node.priority or node.pyats for node in topology.nodes)
    if newer and versions is not VERSIONS_2_10:
        raise CmlError(E.BAD_TOPOLOGY, details="node_staging, priority and pyats came with CML 2.10.")
    if versions is not VERSIONS_2_10:
        _check_places(topology)
    _check_references(topology)
    return topology


def files_of(configuration: str | list[FilePart] | FilePart | None) -> Configuration:
    """Return the configuration of a node: its main file as a text, or all files."""
    if isinstance(configuration, str) or configuration is None:
        return configuration
    files = [configuration] if isinstance(configuration, FilePart) else configuration
    return [ConfigFile(file.name, file.content or "") for file in files]


def _read(text: bytes) -> Any:
    """Read YAML, or JSON, whose escapes of characters beyond the BMP YAML does not know."""
    if text.lstrip().startswith(b"{"):
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(text)
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 (both are safe loaders)


def _lift_flat_header(document: dict[str, Any]) -> dict[str, Any]:
    """Bring the flat header of old versions, `title` or `lab_title`, into the object `lab`."""
    if "lab" in document or document.get("version", document.get("lab_version")) not in FLAT_VERSIONS:
        return document
    header: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in document.items():
        name = str(key).removeprefix("lab_")
        if name in {"title", "description", "notes", "version"}:
            header[name] = value
        elif name not in {"owner", "state", "created"}:
            rest[key] = value
    return {"lab": header, **rest}


def _converted(document: dict[str, Any]) -> dict[str, Any]:
    """Bring a file of an old version into the form of the present ones; what has another shape is left to the check."""
    header, nodes = document.get("lab"), document.get("nodes")
    if not isinstance(header, dict) or not isinstance(nodes, list) or header.get("version") not in CONVERTED_VERSIONS:
        return document
    header = {key: value for key, value in header.items() if key not in {"timestamp", "owner"}}
    return {**document, "lab": header, "nodes": [_converted_node(node) for node in nodes]}


def _converted_node(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    return {
        key: value
        for key, value in node.items()
        if not (key in _INHERITED and value == 0) and not (key == "hide_links" and value is None)
    }


def _check_places(topology: Topology) -> None:
    """Check that each node has a label and a place: CML 2.10 does without."""
    for number, node in enumerate(topology.nodes):
        for name in ("label", "x", "y"):
            if getattr(node, name) is None:
                details = f"Object missing required field `{name}` - at `$.nodes[{number}]`"
                raise CmlError(E.BAD_TOPOLOGY, details=details)


def _check_references(topology: Topology) -> None:
    """Check what a schema cannot: unique ids and labels, links whose ends exist and are free."""
    ports: dict[str, set[str]] = {}
    labels: set[str] = set()
    for node in topology.nodes:
        if node.id in ports:
            raise CmlError(E.BAD_TOPOLOGY, details=f"node id {node.id!r} is not unique.")
        if node.label is not None and node.label in labels:
            raise CmlError(E.BAD_TOPOLOGY, details=f"node label {node.label!r} is not unique.")
        labels |= {node.label} if node.label is not None else set()
        ports[node.id] = {interface.id for interface in node.interfaces}
        if len(ports[node.id]) != len(node.interfaces):
            raise CmlError(E.BAD_TOPOLOGY, details=f"interface ids of node {node.id!r} are not unique.")
    taken: set[tuple[str, str]] = set()
    for link in topology.links:
        for end in ((link.n1, link.i1), (link.n2, link.i2)):
            if end[1] not in ports.get(end[0], ()):
                raise CmlError(E.BAD_TOPOLOGY, details=f"link {link.id!r}: no interface {end[1]!r} on {end[0]!r}.")
            if end in taken:
                raise CmlError(E.BAD_TOPOLOGY, details=f"link {link.id!r}: interface {end[1]!r} is already in use.")
            taken.add(end)


def render(lab: Lab, version: str) -> str:
    """Write a lab as a topology file, with new short ids `n0`, `i0`, `l0`.

    Example:
        `lab: {version: 0.3.0, title: t, …}`, `nodes: [{id: n0, label: r1, …}]`, `links: [{id: l0, n1: n0, …}]`.
    """
    node_names = {node_id: f"n{number}" for number, node_id in enumerate(lab.nodes)}
    port_names = {
        interface: f"i{number}" for node in lab.nodes.values() for number, interface in enumerate(node.interfaces)
    }
    links: list[dict[str, Any]] = []
    for number, link in enumerate(lab.links.values()):
        drawn: dict[str, Any] = {"id": f"l{number}", "n1": node_names[link.node_a], "n2": node_names[link.node_b]}
        drawn |= {"i1": port_names[link.a], "i2": port_names[link.b], "label": link.label}
        if link.condition:
            drawn["conditioning"] = link.condition
        links.append(drawn)
    header: dict[str, Any] = {"description": lab.description, "notes": lab.notes, "title": lab.title}
    document = {
        "annotations": [_without_id(annotation) for annotation in lab.annotations.values()],
        "smart_annotations": [_without_id(annotation) for annotation in lab.smart_annotations.values()],
        "nodes": [_render_node(node, node_names[node.id], port_names) for node in lab.nodes.values()],
        "links": links,
        "lab": header | {"version": version},
    }
    text: str = yaml.dump(document, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
    return text


def _render_node(node: Node, name: str, port_names: dict[str, str]) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "id": name,
        "label": node.label,
        "node_definition": node.node_definition,
        "x": node.x,
        "y": node.y,
        "hide_links": node.hide_links,
        "tags": node.tags,
        "parameters": node.parameters,
        "configuration": [{"name": file.name, "content": file.content} for file in node.configuration],
    }
    for key in ("image_definition", "ram", "cpus", "cpu_limit", "data_volume", "boot_disk_size", "priority", "pyats"):
        value = getattr(node, key)
        if value is not None:
            drawn[key] = value
    drawn["interfaces"] = []
    for interface in node.interfaces.values():
        port = {"id": port_names[interface.id], "label": interface.label, "type": interface.type}
        drawn["interfaces"].append(
            port
            | ({} if interface.slot is None else {"slot": interface.slot})
            | ({} if interface.mac_address is None else {"mac_address": interface.mac_address})
        )
    return drawn


def _without_id(annotation: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in annotation.items() if key != "id"}
