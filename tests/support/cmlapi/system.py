"""Shapes of the controller: version, load, hosts, console keys, notices, bridges."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from tests.support.cmlapi.kinds import (
    Bridge,
    Label,
    Name,
    Percent,
    Shape,
    Tag,
    Uuid,
)


class Information(Shape):
    """Version and readiness; the last two came with 2.10."""

    version: str
    ready: bool
    allow_ssh_pubkey_auth: bool
    oui: str
    timeout: int | UnsetType = UNSET
    features: list[str] | UnsetType = UNSET


class Session(Shape):
    """A user with a token."""

    username: Name
    id: Uuid
    token: str
    admin: bool
    error: str | None


class Memory(Shape):
    """Memory or disk, in bytes."""

    used: float
    free: float
    total: float


class Load(Shape):
    """The CPUs of all hosts."""

    count: int
    percent: Percent


class HostLoad(Load):
    """The CPUs of one host."""

    model: str
    hyperthreading: bool
    predicted: int
    load: list[float]


class Counts(Shape):
    """Nodes of a host."""

    total_nodes: int
    total_orphans: int
    running_nodes: int
    running_orphans: int


class Domains(Counts):
    """Nodes of a host, and what they hold."""

    allocated_cpus: int
    allocated_memory: int


class HostStats(Shape):
    """The load of one host."""

    cpu: HostLoad
    memory: Memory
    disk: Memory
    dominfo: Domains


class HostWithStats(Shape):
    """One host."""

    hostname: str
    is_controller: bool
    stats: HostStats


class AllStats(Shape):
    """The sum over all hosts."""

    cpu: Load
    memory: Memory
    disk: Memory


class SystemStats(Shape):
    """The load of the controller."""

    computes: dict[Uuid, HostWithStats]
    all: AllStats
    controller: dict[Literal["disk"], Memory]


class SystemHealth(Shape):
    """The health of the controller; per host, only the keys that 2.9 and 2.10 share are named by recordings."""

    valid: bool
    computes: dict[Uuid, dict[str, bool | str]]
    is_licensed: bool
    is_enterprise: bool
    controller: dict[Literal["core_connected", "nodes_loaded", "images_loaded", "valid"], bool]


class ComputeHost(Shape):
    """A host; Cisco's client breaks on any other key: before 2.9 on `node_counts`, since 2.10 on `nodes`."""

    id: Uuid
    hostname: str
    server_address: str
    is_connector: bool
    is_simulator: bool
    is_connected: bool
    is_synced: bool
    admission_state: Literal["UNREGISTERED", "REGISTERED", "ONLINE", "READY"]
    node_counts: Counts | UnsetType = UNSET
    nodes: list[Uuid] | UnsetType = UNSET


class Admission(Shape):
    """The state of new hosts."""

    admission_state: Literal["UNREGISTERED", "REGISTERED", "ONLINE", "READY"]


class Key(Shape):
    """A console by its key."""

    lab_id: Uuid
    node_id: Uuid
    compute_id: Uuid
    label: Label
    driver: str
    line: int


class VncKey(Shape):
    """A screen by its key."""

    lab_id: Uuid
    node_id: Uuid
    compute_id: Uuid
    label: Label
    driver: str
    compute_address: str


class Notice(Shape):
    """A notice."""

    id: Uuid
    level: Literal["INFO", "SUCCESS", "WARNING", "ERROR"]
    label: Annotated[str, Meta(max_length=128)]
    content: str
    enabled: bool
    acknowledged: dict[str, bool]
    groups: list[Uuid] | None


class Maintenance(Shape):
    """The maintenance mode."""

    maintenance_mode: bool
    notice: Uuid | None
    resolved_notice: Notice | None


class Forwarding(Shape):
    """The state of a bridge."""

    label: str
    interface: str | None
    forwarding: Literal["BRIDGE", "NAT", "OFF"]
    mtu: int
    exists: bool
    enabled: bool
    protected: bool
    snooped: bool
    stp: bool
    ip_networks: list[str] | None


class Connector(Shape):
    """A bridge of the controller."""

    id: Uuid
    device_name: Bridge
    label: Label
    protected: bool
    snooped: bool
    tags: list[Tag]
    allowed: bool
    operational: Forwarding


class Telemetry(Shape):
    """Whether telemetry is allowed: the words came with 2.10, and `show_modal` went."""

    opt_in: Literal["unset", "accepted", "declined"] | bool | None
    show_modal: bool | UnsetType = UNSET


class Repository(Shape):
    """A repository of labs."""

    id: Uuid
    url: str
    name: Name
    folder: str | None
