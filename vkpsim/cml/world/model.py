"""What a controller holds: labs with their nodes, interfaces and links. Plain data that msgspec can store."""

from typing import Any

import msgspec

from vkpsim.cml.world.states import ACTIVE, LabState, NodeState, WireState


class Resources(msgspec.Struct):
    """Licences, CPU points (100 per core) and memory: a capacity, a use, or a need."""

    licences: int
    cpu_points: int
    ram_mib: int


class ConfigFile(msgspec.Struct):
    """One configuration file of a node; the first one is the main file."""

    name: str
    content: str


class Boot(msgspec.Struct):
    """One run of a node, from which its console text follows."""

    started_at: float
    booted_at: float
    """When CML calls it BOOTED: with its boot text, or without it at the time-out of the node definition."""
    ended_at: float | None = None
    text_at: float | None = None
    """When the boot text appears, if that is after the time-out."""

    @property
    def done_at(self) -> float:
        """When the device itself has booted."""
        return self.booted_at if self.text_at is None else self.text_at


class Typed(msgspec.Struct):
    """A line that was typed on a console, or that the device answered."""

    at: float
    line: int
    """Number of the serial port."""
    text: str


class Interface(msgspec.Struct, kw_only=True):
    """A port of a node; `slot` is None for a loopback."""

    id: str
    node: str
    label: str
    slot: int | None
    type: str = "physical"
    mac_address: str | None = None
    state: WireState = WireState.DEFINED
    link: str | None = None


class Capture(msgspec.Struct, kw_only=True):
    """A packet capture on a link."""

    key: str
    config: dict[str, Any]
    started_at: float
    stopped_at: float | None = None


class Link(msgspec.Struct, kw_only=True):
    """A wire between two interfaces."""

    id: str
    label: str
    a: str
    b: str
    node_a: str
    node_b: str
    state: WireState = WireState.DEFINED
    condition: dict[str, Any] | None = None
    capture: Capture | None = None


class Node(msgspec.Struct, kw_only=True):
    """A device. `state` assumes a connected compute host: `World.state` also considers a lost one."""

    id: str
    lab: str
    label: str
    node_definition: str
    x: int = 0
    y: int = 0
    configuration: list[ConfigFile] = []
    image_definition: str | None = None
    ram: int | None = None
    cpus: int | None = None
    cpu_limit: int | None = None
    data_volume: int | None = None
    boot_disk_size: int | None = None
    hide_links: bool = False
    tags: list[str] = []
    parameters: dict[str, str | None] = {}
    pinned_compute_id: str | None = None
    priority: int | None = None
    pyats: dict[str, str | None] | None = None
    resource_pool: str | None = None
    interfaces: dict[str, Interface] = {}

    state: NodeState = NodeState.DEFINED
    boots: list[Boot] = []
    """The runs since the last wipe; the last one is going on while the node runs."""
    stop_at: float | None = None
    """The time at which a requested stop takes effect."""
    held: Resources | None = None
    """The resources that it holds while it runs."""
    wipes: int = 0
    console_keys: list[str] = []
    vnc_key: str | None = None
    typed: list[Typed] = []
    learned: list[str] = []
    """Configuration lines typed on the device since its configuration was last extracted."""

    @property
    def placed(self) -> bool:
        """Whether the node was launched since its last wipe: it then has a compute host, keys and addresses."""
        return bool(self.boots)

    @property
    def booted_at(self) -> float:
        """When CML calls the present or last run BOOTED."""
        return self.boots[-1].booted_at if self.boots else 0.0

    @property
    def done_at(self) -> float:
        """When the device itself has booted in that run."""
        return self.boots[-1].done_at if self.boots else 0.0


class Lab(msgspec.Struct, kw_only=True):
    """A lab. Its state is never stored: it follows from its nodes."""

    id: str
    owner: str
    created: float
    modified: float
    title: str
    description: str = ""
    notes: str = ""
    autostart: dict[str, Any] = {}
    node_staging: dict[str, Any] = {}
    nodes: dict[str, Node] = {}
    links: dict[str, Link] = {}
    interface_nodes: dict[str, str] = {}
    """Interface id: id of its node."""
    annotations: dict[str, dict[str, Any]] = {}
    smart_annotations: dict[str, dict[str, Any]] = {}
    user_permissions: dict[str, list[str]] = {}
    group_permissions: dict[str, list[str]] = {}
    connector_mappings: dict[str, str | None] = {}
    starts: int = 0
    """How often its nodes were started; distinguishes one convergence from the next."""

    @property
    def state(self) -> LabState:
        """Derive the state: STARTED as soon as one node is active, even if it only queues."""
        states = {node.state for node in self.nodes.values()}
        if states & ACTIVE:
            return LabState.STARTED
        return LabState.STOPPED if NodeState.STOPPED in states else LabState.DEFINED

    @property
    def converged(self) -> bool:
        """Return whether no node is in transition."""
        return all(settled(node) for node in self.nodes.values())

    @property
    def up(self) -> bool:
        """Return whether the lab has converged as STARTED: what clients wait for after a start."""
        return self.converged and self.state is LabState.STARTED

    def interface(self, interface_id: str) -> Interface | None:
        """Find an interface by its id."""
        node = self.nodes.get(self.interface_nodes.get(interface_id, ""))
        return node.interfaces.get(interface_id) if node else None

    def interfaces(self) -> list[Interface]:
        """List the interfaces of all nodes."""
        return [interface for node in self.nodes.values() for interface in node.interfaces.values()]


def settled(node: Node) -> bool:
    """Return whether a node is in no transition: neither queued, nor booting, nor about to stop."""
    return node.state not in {NodeState.QUEUED, NodeState.STARTED} and node.stop_at is None
