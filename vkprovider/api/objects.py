"""Slim structs of what we read of Kubernetes objects.

Decoded by msgspec straight from the bytes of a watch; what is not named here is never decoded, which is what makes
them an order of magnitude cheaper than a client library's models. All are frozen: a store may be shared, and none can
be part of a cycle.
"""

import sys
from typing import Any, Final, TypeVar, cast

import msgspec

_fields: Final = msgspec.json.Decoder(dict[str, Any])


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Whose object it is."""

    uid: str = ""
    kind: str = ""
    name: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of `metadata` that somebody reads."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    finalizers: list[str] = msgspec.field(default_factory=list)
    owner_references: list[OwnerReference] = msgspec.field(default_factory=list)


class Condition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One entry of a Pod's `status.conditions`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class NodeCondition(Condition, frozen=True, gc=False):
    """One entry of a Node's `status.conditions`."""

    last_heartbeat_time: str | None = None


class Container(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A container of a Pod's spec."""

    name: str
    image: str = ""


class PodSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Pod's spec that is a lablet's contract."""

    containers: list[Container]
    init_containers: list[Container] = msgspec.field(default_factory=list)
    node_name: str = ""
    runtime_class_name: str = ""
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    overhead: dict[str, str] = msgspec.field(default_factory=dict)


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A container's status as somebody last wrote it."""

    name: str
    ready: bool = False
    restart_count: int = 0
    state: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)


class PodStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A Pod's status as somebody last wrote it."""

    phase: str = "Pending"
    reason: str = ""
    conditions: list[Condition] = msgspec.field(default_factory=list)
    container_statuses: list[ContainerStatus] = msgspec.field(default_factory=list)
    start_time: str | None = None
    observed_generation: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    pod_ip: str = msgspec.field(default="", name="podIP")


class Pod(msgspec.Struct, frozen=True, gc=False):
    """A Pod."""

    metadata: Metadata
    spec: PodSpec
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """Namespace and name, as people write them."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def terminal(self) -> bool:
        """Whether the phase is final."""
        return self.status.phase in {"Succeeded", "Failed"}


class NodeAddress(msgspec.Struct, frozen=True, gc=False):
    """One of a Node's addresses."""

    type: str
    address: str


class Taint(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of a Node's taints."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Node's spec that we own or read."""

    taints: list[Taint] = msgspec.field(default_factory=list)
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")


class NodeStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Node's status that we own or read."""

    conditions: list[NodeCondition] = msgspec.field(default_factory=list)
    addresses: list[NodeAddress] = msgspec.field(default_factory=list)
    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    node_info: dict[str, Any] = msgspec.field(default_factory=dict)


class Node(msgspec.Struct, frozen=True, gc=False):
    """A Node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ConfigMap(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A ConfigMap with its payload."""

    metadata: Metadata
    data: dict[str, str] = msgspec.field(default_factory=dict)
    binary_data: dict[str, str] = msgspec.field(default_factory=dict)
    immutable: bool = False


class Secret(msgspec.Struct, frozen=True, gc=False):
    """A Secret's payload."""

    data: dict[str, bytes] = msgspec.field(default_factory=dict)


class RuntimeClass(msgspec.Struct, frozen=True, gc=False):
    """A RuntimeClass."""

    metadata: Metadata
    handler: str = ""
    overhead: dict[str, Any] = msgspec.field(default_factory=dict)
    scheduling: dict[str, Any] = msgspec.field(default_factory=dict)


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A Lease's spec."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(msgspec.Struct, frozen=True, gc=False):
    """A Lease."""

    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()


class KnownLeaseMetadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What a replica keeps of the metadata of everybody's Leases."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class KnownLeaseSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """What it keeps of their specs."""

    holder_identity: str | None = None
    lease_transitions: int | None = None


class KnownLease(msgspec.Struct, frozen=True, gc=False):
    """A Lease as every replica keeps it of every node: who has it, in which epoch."""

    metadata: KnownLeaseMetadata
    spec: KnownLeaseSpec = KnownLeaseSpec()


_NOTHINGS: Final[dict[str, Any]] = {"labels": {}, "annotations": {}, "finalizers": [], "owner_references": []}


def share_nothings(metadata: Metadata) -> None:
    """Have all objects share what is empty in theirs: each of its own takes 60 bytes."""
    for field, nothing in _NOTHINGS.items():
        if not getattr(metadata, field):
            msgspec.structs.force_setattr(metadata, field, nothing)


_OTHERS_NOTES: Final = "kubectl.kubernetes.io/last-applied-configuration"


class CustomResource(msgspec.Struct, frozen=True, gc=False):
    """A custom resource before its spec is validated.

    Every replica keeps those of all workers, and hardly ever looks at those of others: spec and status are kept as
    bytes, a third of what they are as dictionaries, and decoded for whoever asks.
    """

    metadata: Metadata
    packed_spec: dict[str, Any] | None = msgspec.field(name="spec", default=None)
    packed_status: dict[str, Any] | None = msgspec.field(name="status", default=None)

    def __post_init__(self) -> None:
        """Pack, and drop what only kubectl reads."""
        for field in ("packed_spec", "packed_status"):
            if not isinstance(found := getattr(self, field), bytes):
                msgspec.structs.force_setattr(self, field, msgspec.json.encode(found or {}))
        self.metadata.annotations.pop(_OTHERS_NOTES, None)
        share_nothings(self.metadata)

    @property
    def spec(self) -> dict[str, Any]:
        """What was asked for."""
        return _fields.decode(cast("bytes", self.packed_spec))

    @property
    def status(self) -> dict[str, Any]:
        """What was reported."""
        return _fields.decode(cast("bytes", self.packed_status))


T = TypeVar("T")


def shared(item: T) -> T:
    """Copy an object so that it shares its words with others: nodes differ in little but their names."""
    return cast("T", _shared(item))


def _shared(item: Any) -> Any:
    match item:
        case str():
            return sys.intern(item)
        case dict():
            return {_shared(key): _shared(value) for key, value in item.items()}
        case list():
            return [_shared(value) for value in item]
        case msgspec.Struct():
            return type(item)(*(_shared(getattr(item, field)) for field in item.__struct_fields__))
        case _:
            return item
