"""Shapes of nodes, interfaces and links."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from tests.support.cmlapi.kinds import (
    Coordinate,
    CpuLimit,
    Cpus,
    DefinitionId,
    Gigabytes,
    Label,
    Mac,
    Name,
    NodeState,
    Percent,
    Port,
    Progress,
    Ram,
    Shape,
    Slot,
    State,
    Tag,
    Uuid,
)


class ConsoleKey(Shape):
    """One serial console of a node."""

    console_key: Uuid
    label: str
    device_number: int


class Operational(Shape):
    """What a node that was launched has."""

    boot_disk_size: Gigabytes | None
    cpu_limit: CpuLimit | None
    cpus: Cpus | None
    data_volume: Gigabytes | None
    ram: Ram | None
    compute_id: Uuid | None
    image_definition: DefinitionId | None
    vnc_key: Uuid | None
    resource_pool: Uuid | None
    iol_app_id: int | None
    serial_consoles: list[ConsoleKey]


class ConfigFile(Shape):
    """One file of a node's configuration."""

    name: Name
    content: str | None


class Node(Shape):
    """A node; the last two came with 2.10."""

    id: Uuid
    lab_id: Uuid
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
    state: NodeState
    boot_progress: Progress
    pinned_compute_id: Uuid | None
    operational: Operational | None
    serial_consoles: list[ConsoleKey]
    vnc_key: Uuid | None
    compute_id: Uuid | None
    resource_pool: Uuid | None
    iol_app_id: int | None
    configuration: str | list[ConfigFile] | UnsetType | None = UNSET
    priority: int | UnsetType | None = UNSET
    pyats: dict[str, str | None] | UnsetType = UNSET


class InterfaceOperational(Shape):
    """What an interface of a launched node has."""

    device_name: Annotated[str, Meta(pattern=r"^[\da-z-]{1,15}$")] | None
    mac_address: Mac | None
    src_udp_port: Port | None
    dst_udp_port: Port | None


class Interface(Shape):
    """An interface."""

    id: Uuid
    lab_id: Uuid
    node: Uuid
    label: Label
    slot: Slot | None
    type: Literal["physical", "loopback"]
    mac_address: Mac | None
    is_connected: bool
    state: State
    operational: InterfaceOperational | UnsetType | None = UNSET


class Condition(Shape):
    """What a link does to its packets; empty without a condition."""

    bandwidth: Annotated[int, Meta(ge=0, le=10_000_000)] | UnsetType = UNSET
    latency: Annotated[int, Meta(ge=0, le=10_000)] | UnsetType = UNSET
    delay_corr: Percent | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=0, le=10_000)] | UnsetType = UNSET
    loss: Percent | UnsetType = UNSET
    loss_corr: Percent | UnsetType = UNSET
    gap: Annotated[int, Meta(ge=0, le=10_000)] | UnsetType = UNSET
    duplicate: Percent | UnsetType = UNSET
    duplicate_corr: Percent | UnsetType = UNSET
    jitter: Annotated[int, Meta(ge=0, le=10_000)] | UnsetType = UNSET
    reorder_prob: Percent | UnsetType = UNSET
    reorder_corr: Percent | UnsetType = UNSET
    corrupt_prob: Percent | UnsetType = UNSET
    corrupt_corr: Percent | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class Link(Shape):
    """A link."""

    id: Uuid
    lab_id: Uuid
    label: Label
    state: State
    link_capture_key: Annotated[str, Meta(max_length=64)]
    interface_a: Uuid
    interface_b: Uuid
    node_a: Uuid
    node_b: Uuid


class NodeStateAnswer(Shape):
    """State and progress of a node."""

    state: NodeState
    progress: Progress


class InterfaceState(Shape):
    """The state of an interface."""

    label: Label
    state: State


class LinkState(Shape):
    """The state of a link; asked by Cisco's client, absent from the document of 2.9."""

    state: State


class NewLink(Shape):
    """What a new link answers."""

    id: Uuid
    label: Label


class Address(Shape):
    """An interface with its addresses."""

    id: Uuid
    label: Label
    ip4: list[Annotated[str, Meta(pattern=r"^(\d{1,3}\.){3}\d{1,3}$")]]
    ip6: list[str]


class Addresses(Shape):
    """The addresses of a node by MAC address."""

    name: Label
    interfaces: dict[Mac, Address]
