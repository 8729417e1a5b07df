"""Shapes of labs and their topologies."""

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from tests.support.cmlapi.kinds import (
    Coordinate,
    CpuLimit,
    Cpus,
    DefinitionId,
    Description,
    Gigabytes,
    Label,
    Mac,
    Name,
    NodeState,
    Notes,
    OldPermission,
    Permission,
    Ram,
    Shape,
    Slot,
    Stamp,
    State,
    Tag,
    Uuid,
)
from tests.support.cmlapi.nodes import Condition, ConfigFile


class Import(Shape):
    """The answer to an import."""

    id: Uuid
    warnings: list[str] | None


class OldGroup(Shape):
    """A group in the deprecated form."""

    id: Uuid
    permission: OldPermission
    name: str | UnsetType = UNSET


class Lab(Shape):
    """A lab; the last two came with 2.10."""

    id: Uuid
    created: Stamp
    modified: Stamp
    state: State
    lab_title: Name
    lab_description: Description
    lab_notes: Notes
    owner: Uuid
    owner_username: str
    owner_fullname: str
    node_count: int
    link_count: int
    groups: list[OldGroup]
    effective_permissions: list[Permission]
    autostart: dict[str, Any] | UnsetType = UNSET
    node_staging: dict[str, Any] | UnsetType = UNSET


class LinkInTopology(Shape):
    """A link in a topology, by the ids of its ends; so in the topologies that virl2-client's own tests recorded."""

    id: Uuid
    label: Label
    interface_a: Uuid
    interface_b: Uuid
    node_a: Uuid
    node_b: Uuid
    conditioning: Condition | UnsetType = UNSET


class InterfaceInTopology(Shape):
    """An interface in a topology: nothing of its node or its state, which clients before 2.10 take for their own."""

    id: Uuid
    label: Label
    type: Literal["physical", "loopback"]
    slot: Slot | UnsetType = UNSET
    mac_address: Mac | UnsetType | None = UNSET


class NodeInTopology(Shape):
    """A node in a topology, with the keys of a topology file: the document of 2.9 allows no others.

    Cisco's client needs the interfaces, even of a node that has none; that of 2.8 breaks on any other key.
    """

    id: Uuid
    label: Label
    x: Coordinate
    y: Coordinate
    node_definition: DefinitionId
    image_definition: DefinitionId | None
    ram: Ram | None
    cpus: Cpus | None
    cpu_limit: CpuLimit | None
    data_volume: Gigabytes | None
    boot_disk_size: Gigabytes | None
    hide_links: bool
    tags: list[Tag]
    parameters: dict[str, Any]
    interfaces: list[InterfaceInTopology]
    configuration: str | list[ConfigFile] | UnsetType | None = UNSET
    priority: int | UnsetType | None = UNSET
    pyats: dict[str, str | None] | UnsetType = UNSET


class Header(Shape):
    """The object `lab` of a topology; Cisco's client needs title, description and notes."""

    version: str
    title: Name
    description: Description
    notes: Notes
    owner: Uuid
    node_staging: dict[str, Any] | UnsetType = UNSET


class Elements(Shape):
    """The elements of a topology; both kinds of annotations come together."""

    nodes: list[NodeInTopology]
    links: list[LinkInTopology]
    annotations: list[dict[str, Any]]
    smart_annotations: list[dict[str, Any]]


class Topology(Elements):
    """A lab with its elements."""

    lab: Header


class Tile(Lab, kw_only=True):
    """A lab as the dashboard shows it."""

    topology: Elements


class Tiles(Shape):
    """The dashboard."""

    lab_tiles: dict[Uuid, Tile]


class ElementStates(Shape):
    """The states of all elements of a lab."""

    nodes: dict[Uuid, NodeState]
    links: dict[Uuid, State]
    interfaces: dict[Uuid, State]


class Event(Shape):
    """An event of a lab; the names are those on the wire, as Cisco's client reads them."""

    lab_id: Uuid
    event: Literal["CREATED", "DELETED", "MODIFIED", "state"]
    element_type: Literal["Lab", "Node", "Interface", "Link", "Annotation", "ConnectorMapping", "SmartAnnotation"]
    element_id: Uuid
    data: dict[str, Any]
    previous: dict[str, Any]
    timestamp: Stamp


class LinkCounters(Shape):
    """Counters of a link."""

    readbytes: int
    readpackets: int
    writebytes: int
    writepackets: int
    drops: int


class Statistics(Shape):
    """Counters of a lab."""

    nodes: dict[Uuid, dict[str, float]]
    links: dict[Uuid, LinkCounters]


class Association(Shape):
    """Rights on a lab."""

    id: Uuid
    permissions: list[Permission]


class Associations(Shape):
    """With whom a lab is shared."""

    groups: list[Association]
    users: list[Association]


class Mapping(Shape):
    """Which bridge a key of external connectors stands for."""

    key: Tag
    device_name: str | None


class Capture(Shape):
    """A packet capture; empty if there was none."""

    config: dict[str, Any] | UnsetType = UNSET
    starttime: Stamp | UnsetType = UNSET
    packetscaptured: int | UnsetType = UNSET
