"""Shapes of the diagnostics."""

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from tests.support.cmlapi.kinds import (
    CpuLimit,
    Cpus,
    DefinitionId,
    Gigabytes,
    Label,
    NodeState,
    Ram,
    Shape,
    Stamp,
    State,
    Tag,
    Uuid,
)


class LicenceCounts(Shape):
    """Licensed nodes."""

    quota: int
    started: int
    user_quota: int | None
    user_started: int


class QueuedNode(Shape):
    """A node that waits to be launched."""

    id: Uuid
    lab_id: Uuid
    label: Label
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
    pinned_compute_id: Uuid | None
    x: int
    y: int


class DiagnosedNode(Shape):
    """A node in the diagnostics."""

    label: Label
    state: NodeState
    state_times: dict[Literal["QUEUED", "STARTED", "BOOTED"], int]


class DiagnosedLink(Shape):
    """A link in the diagnostics."""

    state: State
    interface_a: Uuid
    interface_b: Uuid


class DiagnosedInterface(Shape):
    """An interface in the diagnostics."""

    label: Label
    state: State
    node: Uuid
    slot: int | UnsetType = UNSET


class DiagnosedLab(Shape):
    """A lab in the diagnostics."""

    created: Stamp
    allocated: bool
    nodes: dict[Uuid, DiagnosedNode]
    links: dict[Uuid, DiagnosedLink]
    interfaces: dict[Uuid, DiagnosedInterface]


class DiagnosedDefinition(Shape):
    """A node definition in the diagnostics."""

    id: DefinitionId
    images: list[DefinitionId]


class StartupScheduler(Shape):
    """What the controller has loaded."""

    licensing_loaded: bool
    core_driver_connected: bool
    node_definitions_loaded: bool
    lld_connected: bool
    lld_synced: bool
    system_ready: bool
