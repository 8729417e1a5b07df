"""Slim structs of the Kubernetes objects that we read.

msgspec decodes them straight from the bytes of a watch and skips every field that is not declared here, which makes
them an order of magnitude cheaper than a client library's models. All are frozen, because informers share them.
"""

from typing import Any, Final

import msgspec

from vkprovider.platform import wellknown

ENV: Final = "env"
"""An entry of `PodSpec.other_fields`: a container has environment variables, in `env` or `envFrom`."""


class OwnerReference(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The owner of an object."""

    uid: str = ""
    kind: str = ""
    name: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of `metadata` that we read."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int = 0
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


class ReadinessGate(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A condition that must be True for a Pod to be Ready."""

    condition_type: str


class PodSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Pod's spec that defines a lablet.

    Attributes:
        other_fields: The names of further fields that the Pod or its containers have, see `slimming`.
    """

    containers: list[Container]
    init_containers: list[Container] = msgspec.field(default_factory=list)
    node_name: str = ""
    runtime_class_name: str = ""
    restart_policy: str = "Always"
    active_deadline_seconds: int | None = None
    overhead: dict[str, str] = msgspec.field(default_factory=dict)
    readiness_gates: tuple[ReadinessGate, ...] = ()
    other_fields: tuple[str, ...] = ()


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A container's status as last written."""

    name: str
    ready: bool = False
    restart_count: int = 0
    state: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    last_state: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)

    @property
    def last_end(self) -> str:
        """Why it last ended; "" if it never did."""
        return str(self.last_state.get("terminated", {}).get("message", ""))


class PodStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A Pod's status as last written."""

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
        """`namespace/name`."""
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


class DaemonEndpoint(msgspec.Struct, frozen=True, gc=False):
    """A port that a Node's daemon listens on; the API writes it with a capital letter."""

    port: int = msgspec.field(default=0, name="Port")


class DaemonEndpoints(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The daemons of a Node."""

    kubelet_endpoint: DaemonEndpoint = DaemonEndpoint()


class NodeImage(msgspec.Struct, frozen=True, gc=False):
    """An image on a Node: the image definition of a worker, such as `cml/iosv-159-3-m3`."""

    names: list[str] = msgspec.field(default_factory=list)


class NodeStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Node's status that we own or read."""

    conditions: list[NodeCondition] = msgspec.field(default_factory=list)
    addresses: list[NodeAddress] = msgspec.field(default_factory=list)
    capacity: dict[str, str] = msgspec.field(default_factory=dict)
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    node_info: dict[str, Any] = msgspec.field(default_factory=dict)
    daemon_endpoints: DaemonEndpoints = DaemonEndpoints()
    declared_features: list[str] = msgspec.field(default_factory=list)
    images: list[NodeImage] = msgspec.field(default_factory=list)


class Node(msgspec.Struct, frozen=True, gc=False):
    """A Node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        """Whether its condition Ready is True."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)


class ConfigMap(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A ConfigMap with its payload."""

    metadata: Metadata
    data: dict[str, str] = msgspec.field(default_factory=dict)
    binary_data: dict[str, str] = msgspec.field(default_factory=dict)
    immutable: bool = False


class EventSeries(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """How often an Event was repeated, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class Event(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An Event, of whatever program."""

    metadata: Metadata
    type: str = "Normal"
    reason: str = ""
    message: str = ""
    count: int = 0
    last_timestamp: str | None = None
    event_time: str | None = None
    series: EventSeries | None = None


class UserInfo(msgspec.Struct, frozen=True, gc=False):
    """A user of the cluster."""

    username: str = ""


class ReviewMetadata(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The `metadata` of a review, which has no name."""

    creation_timestamp: str = ""


class SelfReviewStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The answer of a SelfSubjectReview."""

    user_info: UserInfo = UserInfo()


class SelfSubjectReview(msgspec.Struct, frozen=True, gc=False):
    """Who the caller is; it is stamped with the API server's time."""

    metadata: ReviewMetadata = ReviewMetadata()
    status: SelfReviewStatus = SelfReviewStatus()


class Secret(msgspec.Struct, frozen=True, gc=False):
    """A Secret."""

    metadata: Metadata
    data: dict[str, bytes] = msgspec.field(default_factory=dict)


class RuntimeClass(msgspec.Struct, frozen=True, gc=False):
    """A RuntimeClass."""

    metadata: Metadata
    handler: str = ""
    overhead: dict[str, Any] = msgspec.field(default_factory=dict)
    scheduling: dict[str, Any] = msgspec.field(default_factory=dict)


class RoleRef(msgspec.Struct, frozen=True, gc=False):
    """The role of a binding."""

    kind: str = ""
    name: str = ""


class Subject(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", gc=False, order=True):
    """Whom a binding names."""

    kind: str
    name: str
    api_group: str = ""
    namespace: str = ""

    @property
    def username(self) -> str:
        """The username of the user or ServiceAccount; "" for a group."""
        match self.kind:
            case "User":
                return self.name
            case "ServiceAccount":
                return f"{wellknown.ACCOUNT_USERNAME}{self.namespace}:{self.name}"
            case _:
                return ""


class RoleBinding(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A RoleBinding. The API server may answer null for subjects that are none."""

    metadata: Metadata
    role_ref: RoleRef = RoleRef()
    subjects: tuple[Subject, ...] | None = None

    @property
    def usernames(self) -> frozenset[str]:
        """The usernames that it names; groups are left out."""
        return frozenset(each.username for each in self.subjects or ()) - {""}

    @property
    def namespaces(self) -> frozenset[str]:
        """The namespaces of the ServiceAccounts that it names."""
        return frozenset(each.namespace for each in self.subjects or ()) - {""}

    def binds(self, cluster_role: str) -> bool:
        """Return whether it gives a ClusterRole."""
        return (self.role_ref.kind, self.role_ref.name) == ("ClusterRole", cluster_role)


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


class ObjectReference(msgspec.Struct, frozen=True, gc=False):
    """A reference to an object."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EndpointConditions(msgspec.Struct, frozen=True, gc=False):
    """The conditions of an endpoint; None for one that is unknown."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it takes new connections; unknown counts, as Kubernetes says."""
        return self.ready is not False

    @property
    def is_leaving(self) -> bool:
        """Whether it is terminating and takes connections all the same, where no other endpoint is ready (KEP-1669)."""
        return not self.is_ready and self.serving is True and self.terminating is True


class Endpoint(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One backend of an EndpointSlice."""

    addresses: list[str] = msgspec.field(default_factory=list)
    conditions: EndpointConditions = EndpointConditions()
    target_ref: ObjectReference | None = None


class EndpointPort(msgspec.Struct, frozen=True, gc=False):
    """A port that every endpoint of an EndpointSlice has; None stands for all ports."""

    name: str = ""
    protocol: str = "TCP"
    port: int | None = None


class EndpointSlice(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An EndpointSlice. The API server may answer null for a list that is empty."""

    metadata: Metadata
    address_type: str = "IPv4"
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None


class PortSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A port of a Service."""

    port: int
    name: str = ""
    protocol: str = "TCP"


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The part of a Service's spec that we read."""

    type: str = ""
    load_balancer_class: str = ""
    load_balancer_source_ranges: tuple[str, ...] = ()
    ip_families: tuple[str, ...] = ()
    selector: dict[str, str] = {}
    ports: tuple[PortSpec, ...] = ()


class CustomResource(msgspec.Struct, frozen=True, gc=False):
    """A custom resource before its spec is validated."""

    metadata: Metadata
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)
