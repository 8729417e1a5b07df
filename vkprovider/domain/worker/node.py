"""A CMLWorker as a Node: what it should say, and the patches that make it so.

Only what is ours is compared and written: labels, taints and conditions of others are kept.
"""

import ipaddress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from vkprovider.api import names, quantities
from vkprovider.api.errors import InputError
from vkprovider.api.models import CMLWorkerSpec
from vkprovider.api.objects import Node, Taint
from vkprovider.api.times import iso
from vkprovider.domain.topology.resources import Resources

LABS_DEFAULT: Final = 200
OLDEST: Final = (2, 8)
NEWEST: Final = (2, 10)
_PRESSURES: Final = ("MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class Stats:
    """What CML's system API says, where `stats: On`.

    Attributes:
        cpus, memory_bytes, lab_nodes: What the worker has.
        foreign: What labs of others use of it.
    """

    cpus: int | None = None
    memory_bytes: int | None = None
    lab_nodes: int | None = None
    foreign: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the worker can be used; reason and message of the Node's Ready condition."""

    ready: bool
    reason: str
    message: str


def up(message: str) -> Health:
    """Say that the worker can be used."""
    return Health(ready=True, reason="WorkerReady", message=message)


def down(reason: str, message: str) -> Health:
    """Say why the worker cannot be used."""
    return Health(ready=False, reason=reason, message=message)


@dataclass(frozen=True, slots=True)
class View:
    """What a Node should say.

    Attributes:
        ip: The worker's address, resolved; "" while it is unknown.
        dns: The worker's name, if its address is one.
        internal_ip: Where the replica serves the kubelet API; "" if it does not.
    """

    worker: str
    uid: str
    installation: str
    spec: CMLWorkerSpec
    version: str
    ip: str
    dns: str
    internal_ip: str
    capacity: dict[str, str]
    allocatable: dict[str, str]
    health: Health
    taint_effect: str
    kubelet_version: str

    @property
    def labels(self) -> dict[str, str]:
        """Our labels."""
        name = names.node_name(self.worker)
        labels = {
            **self.spec.node_labels,
            names.LABEL_COMPONENT: names.COMPONENT_VNODE,
            names.LABEL_STACK: "cml",
            names.LABEL_ENV: self.spec.environment,
            names.LABEL_WORKER: names.label_value(self.worker),
            names.LABEL_TUNNEL: self.spec.tunnel,
            names.LABEL_TYPE: "virtual-kubelet",
            names.LABEL_HOSTNAME: names.label_value(name),
            names.LABEL_ROLE: "",
            names.LABEL_NO_LOAD_BALANCER: "true",
            names.LABEL_MANAGED_BY: names.MANAGER,
        }
        if release := names.cml_release(self.version):
            labels[names.LABEL_CML_VERSION] = ".".join(map(str, release))
        return labels

    @property
    def annotations(self) -> dict[str, str]:
        """Our annotations; the first one says that the Node is ours."""
        found = {names.ANNOTATION_INSTALLATION: self.installation}
        if self.version:
            found[names.ANNOTATION_CML_BUILD] = self.version
        if self.spec.node_labels:
            found[names.ANNOTATION_NODE_LABELS] = ",".join(sorted(self.spec.node_labels))
        return found

    @property
    def taints(self) -> list[Taint]:
        """Our taints: they keep ordinary pods away, and lablets of other environments."""
        return [
            Taint(key=names.TAINT_VIRTUAL_NODE, value="true", effect=self.taint_effect),
            Taint(key=names.TAINT_ENV, value=self.spec.environment, effect=self.taint_effect),
        ]

    @property
    def addresses(self) -> list[dict[str, str]]:
        """Where learners reach the worker, and where the API server reaches us."""
        found = [("InternalIP", self.internal_ip), ("ExternalIP", self.ip), ("ExternalDNS", self.dns)]
        return [{"type": t, "address": a} for t, a in found if a] + [
            {"type": "Hostname", "address": names.node_name(self.worker)}
        ]

    @property
    def node_info(self) -> dict[str, str]:
        """What the wide table of `kubectl get nodes` shows."""
        release = names.cml_release(self.version)
        short = ".".join(map(str, release)) if release else "unknown"
        return {
            "machineID": self.uid,
            "systemUUID": self.uid,
            "bootID": "",
            "kernelVersion": self.version or "unknown",
            "osImage": f"Cisco Modeling Labs {short}",
            "containerRuntimeVersion": f"cml://{short}",
            "kubeletVersion": self.kubelet_version,
            "kubeProxyVersion": "",
            "operatingSystem": "cml",
            "architecture": "",
        }

    def conditions(self) -> list[tuple[str, str, str, str]]:
        """Our conditions: type, status, reason, message."""
        calm = [(p, "False", f"No{p}", "CML admits labs by itself") for p in _PRESSURES]
        network = ("NetworkUnavailable", "False", "RouteCreated", "lablets use the worker's own network")
        health = self.health
        return [("Ready", "True" if health.ready else "False", health.reason, health.message), *calm, network]


def address_of(spec: CMLWorkerSpec) -> str:
    """Tell what learners reach: `spec.address`, or the host of the url."""
    return spec.address or urlsplit(spec.url).hostname or ""


def is_ip(address: str) -> bool:
    """Tell whether an address is one already, or a name to be resolved."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


def capacity_of(
    spec: CMLWorkerSpec, stats: Stats | None, default_range: tuple[int, int]
) -> tuple[Resources, int, Resources]:
    """Compute what a worker holds, how many labs, and what foreign labs take off.

    Raises:
        InputError: `CapacityUnknown`: neither the CMLWorker nor CML says how much there is.
    """
    capacity = spec.capacity
    cpus = quantities.parse_millicores(capacity.cpu) if capacity.cpu is not None else None
    memory = quantities.parse_bytes(capacity.memory) if capacity.memory is not None else None
    lab_nodes = capacity.lab_nodes
    foreign = Resources()
    if stats is not None:
        cpus = cpus if cpus is not None or stats.cpus is None else stats.cpus * 1000
        memory = memory if memory is not None else stats.memory_bytes
        lab_nodes = lab_nodes if lab_nodes is not None else stats.lab_nodes
        foreign = stats.foreign
    missing = [name for name, value in (("cpu", cpus), ("memory", memory), ("labNodes", lab_nodes)) if value is None]
    if cpus is None or memory is None or lab_nodes is None:
        how = "and CML does not tell it; set it" if spec.stats == "On" else "set it, or set spec.stats: On to ask CML"
        raise InputError("CapacityUnknown", f"spec.capacity lacks {', '.join(missing)}; {how}")
    ports = spec.port_range.size if spec.port_range is not None else default_range[1] - default_range[0] + 1
    labs = capacity.labs if capacity.labs is not None else LABS_DEFAULT
    return Resources(cpus, memory, lab_nodes, max(0, ports)), labs, foreign


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a worker offers.

    Attributes:
        total: All that it has.
        labs: How many labs it may hold.
        foreign: What labs that are not ours use of it.
        fault: Why it is not known; everything is zero then.
    """

    total: Resources
    labs: int
    foreign: Resources
    fault: InputError | None = None


def capacity(spec: CMLWorkerSpec, stats: Stats | None, default_range: tuple[int, int], node: Node | None) -> Capacity:
    """Return what a worker offers: by its CMLWorker, by CML, else as its Node said last.

    Args:
        spec: The CMLWorker's.
        stats: What CML says; None while it is not known.
        default_range: First and last external port where the spec has none.
        node: The worker's Node as it is.
    """
    try:
        return Capacity(*capacity_of(spec, stats, default_range))
    except InputError as fault:
        if spec.stats == "On" and (known := last_known(node)) is not None:
            return Capacity(*known)
        return Capacity(Resources(), 0, Resources(), fault)


def last_known(node: Node | None) -> tuple[Resources, int, Resources] | None:
    """Read back what a Node says, in the form of `capacity_of`: for a worker that cannot be asked just now.

    Returns:
        None if it says nothing of use.
    """
    if node is None:
        return None
    try:
        total = Resources.from_quantities(node.status.capacity)
        left = Resources.from_quantities(node.status.allocatable)
        labs = int(quantities.parse(node.status.capacity.get("pods", "0")))
    except ValueError:
        return None
    return (total, labs, total.minus(left)) if total.cpu_m and labs else None


def amounts(total: Resources, labs: int, foreign: Resources) -> tuple[dict[str, str], dict[str, str]]:
    """Write capacity and allocatable as a Node does."""
    left = total.minus(foreign)
    pods = {"pods": quantities.format_count(labs)}
    return total.quantities() | pods, left.quantities() | pods


def check_version(version: str) -> InputError | None:
    """Tell why a CML version cannot be used, if it cannot."""
    release = names.cml_release(version)
    if release is None or not OLDEST <= release[:2] <= NEWEST:
        return InputError("UnsupportedVersion", f"CML {version!r} is not supported; supported are 2.8, 2.9 and 2.10")
    return None


def ours(node: Node, installation: str) -> bool:
    """Tell whether a Node was made by this installation; any other is never touched."""
    return node.metadata.annotations.get(names.ANNOTATION_INSTALLATION) == installation


def create(view: View, now_unix: int) -> dict[str, Any]:
    """Make the Node; status is accepted at creation."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": names.node_name(view.worker),
            "labels": view.labels,
            "annotations": view.annotations,
        },
        "spec": {"providerID": f"vkprovider://{view.worker}", "taints": [_taint(t) for t in view.taints]},
        "status": _status(view, None, now_unix),
    }


def metadata_patch(node: Node, view: View) -> dict[str, Any] | None:
    """Make the merge patch that repairs labels, annotations and taints; None if nothing is wrong.

    Which labels came from `spec.nodeLabels` stands in an annotation, so that whoever acts for the node next removes
    those that are no longer wanted.
    """
    found = node.metadata.annotations
    given = [key for key in found.get(names.ANNOTATION_NODE_LABELS, "").split(",") if key]
    labels: dict[str, str | None] = {k: v for k, v in view.labels.items() if node.metadata.labels.get(k) != v}
    labels |= {k: None for k in given if k not in view.labels and k in node.metadata.labels}
    annotations: dict[str, str | None] = {k: v for k, v in view.annotations.items() if found.get(k) != v}
    if given and names.ANNOTATION_NODE_LABELS not in view.annotations:
        annotations[names.ANNOTATION_NODE_LABELS] = None
    keys = {t.key for t in view.taints}
    foreign = [t for t in node.spec.taints if t.key not in keys]
    taints = None
    if [t for t in node.spec.taints if t.key in keys] != view.taints:
        taints = [_taint(t) for t in [*view.taints, *foreign]]
    if not labels and not annotations and taints is None:
        return None
    patch: dict[str, Any] = {
        "metadata": {
            "resourceVersion": node.metadata.resource_version,
            **({"labels": labels} if labels else {}),
            **({"annotations": annotations} if annotations else {}),
        }
    }
    return {**patch, "spec": {"taints": taints}} if taints is not None else patch


def status_patch(node: Node, view: View, now_unix: int) -> dict[str, Any] | None:
    """Make the merge patch of `nodes/status`; None if it says everything already.

    Conditions of others are carried over, with the resourceVersion as precondition.
    """
    conditions = {c.type: (c.type, c.status, c.reason, c.message) for c in node.status.conditions}
    same = (
        all(conditions.get(wanted[0]) == wanted for wanted in view.conditions())
        and [{"type": a.type, "address": a.address} for a in node.status.addresses] == view.addresses
        and view.capacity.items() <= node.status.capacity.items()
        and view.allocatable.items() <= node.status.allocatable.items()
        and all(node.status.node_info.get(key, "") == value for key, value in view.node_info.items())
    )
    if same:
        return None
    return {
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "status": _status(view, node, now_unix),
    }


def _status(view: View, node: Node | None, now_unix: int) -> dict[str, Any]:
    now = iso(now_unix)
    before = {c.type: c for c in node.status.conditions} if node is not None else {}
    conditions: list[dict[str, Any]] = []
    for type_, status, reason, message in view.conditions():
        old = before.pop(type_, None)
        changed = now if old is None or old.status != status else old.last_transition_time or now
        conditions.append(
            {
                "type": type_,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": now,
                "lastTransitionTime": changed,
            }
        )
    conditions += [
        {
            "type": c.type,
            "status": c.status,
            "reason": c.reason,
            "message": c.message,
            "lastTransitionTime": c.last_transition_time,
            "lastHeartbeatTime": c.last_heartbeat_time,
        }
        for c in before.values()
    ]
    return {
        "capacity": view.capacity,
        "allocatable": view.allocatable,
        "addresses": view.addresses,
        "conditions": conditions,
        "nodeInfo": view.node_info,
    }


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}
