"""The Node of a CMLWorker: what it should report, and the patches that bring it there.

Only our own fields are compared and written: labels, taints and conditions of other writers are kept.
"""

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from vkprovider.lablet import names
from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.lablet.reasons import ConditionReason, WorkerReason
from vkprovider.labs.pure.conditions import node_condition
from vkprovider.labs.pure.topology.topology import SINCE
from vkprovider.labs.pure.worker.endpoint import KubeletEndpoint, declared, declares
from vkprovider.platform import wellknown
from vkprovider.platform.messages import Fault, TimelessCondition, count
from vkprovider.platform.objects import Node, Taint
from vkprovider.platform.reasons import Reason, reason_of

OLDEST: Final = (2, 8)
NEWEST: Final = (2, 10)
_NAMED_MAX: Final = 4
"""The most lablets that a message names."""
_PRESSURES: Final = {
    "MemoryPressure": ConditionReason.NO_MEMORY_PRESSURE,
    "DiskPressure": ConditionReason.NO_DISK_PRESSURE,
    "PIDPressure": ConditionReason.NO_PID_PRESSURE,
}


@dataclass(frozen=True, slots=True)
class Health:
    """Whether the worker can be used; reason and message of the Node's Ready condition."""

    ready: bool
    reason: Reason
    message: str


def healthy(message: str) -> Health:
    """Return that the worker can be used."""
    return Health(ready=True, reason=WorkerReason.WORKER_READY, message=message)


def unhealthy(reason: Reason, message: str) -> Health:
    """Return why the worker cannot be used."""
    return Health(ready=False, reason=reason, message=message)


def in_use(worker: str, named: Collection[str], number: int) -> Health:
    """Return why a deleted CMLWorker is still there.

    Args:
        worker: Its name.
        named: Its lablets, `namespace/name`, as far as they are known.
        number: How many there are.
    """
    few = sorted(named)[:_NAMED_MAX]
    more = f" and {number - len(few)} more" if few and number > len(few) else ""
    lablets = f"{count(number, 'lablet')}{': ' if few else ''}{', '.join(few)}{more}"
    pods = f"kubectl get pods -A --field-selector spec.nodeName={names.node_name(worker)}"
    text = (
        f"{lablets}; delete the Pods ({pods}), and their labs go first. Only for a worker that never comes back: "
        f"kubectl annotate cmlw {worker} {names.ANNOTATION_ABANDON}=true leaves the labs behind in CML, and cannot be "
        "undone"
    )
    return unhealthy(WorkerReason.IN_USE, text)


@dataclass(frozen=True, slots=True)
class NodeView:
    """What a Node should report.

    Attributes:
        ip: The worker's address, resolved; "" while it is unknown.
        dns: The worker's name, if its address is one.
        endpoint: Where the replica serves the kubelet API; None if it does not.
        cordoned: Whether the worker awaits approval.
        identified: Whether it has a provider id.
        images: The names of its image definitions; None while they are unknown, and the Node keeps those that it has.
    """

    worker: str
    uid: str
    installation: str
    spec: CMLWorkerSpec
    version: str
    ip: str
    dns: str
    endpoint: KubeletEndpoint | None
    capacity: dict[str, str]
    allocatable: dict[str, str]
    health: Health
    taint_effect: str
    kubelet_version: str
    cordoned: bool = False
    identified: bool = True
    images: tuple[str, ...] | None = ()

    @property
    def labels(self) -> dict[str, str]:
        """Our labels."""
        name = names.node_name(self.worker)
        labels = {
            **self.spec.node_labels,
            names.LABEL_COMPONENT: names.COMPONENT_VNODE,
            names.LABEL_STACK: "cml",
            names.LABEL_ENV: self.spec.environment,
            names.LABEL_WORKER: wellknown.label_value(self.worker),
            names.LABEL_TUNNEL: self.spec.tunnel,
            names.LABEL_TYPE: "virtual-kubelet",
            names.LABEL_HOSTNAME: wellknown.label_value(name),
            names.LABEL_ROLE: "",
            names.LABEL_NO_LOAD_BALANCER: "true",
            wellknown.LABEL_MANAGED_BY: wellknown.MANAGER,
        }
        if release := names.cml_release(self.version):
            labels[names.LABEL_CML_VERSION] = ".".join(map(str, release))
            for topology, since in SINCE.items():
                labels[names.LABEL_TOPOLOGY_PREFIX + topology] = str(release >= since).lower()
        return labels

    @property
    def annotations(self) -> dict[str, str]:
        """Our annotations; the first one marks the Node as ours."""
        found = {wellknown.ANNOTATION_INSTALLATION: self.installation}
        if self.version:
            found[names.ANNOTATION_CML_BUILD] = self.version
        if self.spec.node_labels:
            found[names.ANNOTATION_NODE_LABELS] = ",".join(sorted(self.spec.node_labels))
        if self.cordoned:
            found[names.ANNOTATION_CORDONED] = "true"
        return found

    @property
    def taints(self) -> list[Taint]:
        """Our taints: they repel ordinary Pods, and lablets of other environments."""
        return [
            Taint(key=names.TAINT_VIRTUAL_NODE, value="true", effect=self.taint_effect),
            Taint(key=names.TAINT_ENV, value=self.spec.environment, effect=self.taint_effect),
        ]

    @property
    def provider_id(self) -> str:
        """The provider id; "" if there is none."""
        return f"vkprovider://{self.worker}" if self.identified else ""

    @property
    def addresses(self) -> list[dict[str, str]]:
        """Where learners reach the worker, and where the API server reaches us.

        There is no Hostname: by default an API server would dial that before the InternalIP.
        """
        internal = self.endpoint.address if self.endpoint is not None else ""
        found = [("InternalIP", internal), ("ExternalIP", self.ip), ("ExternalDNS", self.dns)]
        return [{"type": t, "address": a} for t, a in found if a]

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

    def conditions(self) -> list[TimelessCondition]:
        """Return our conditions."""
        health = self.health
        return [
            TimelessCondition("Ready", "True" if health.ready else "False", health.reason, health.message),
            *(
                TimelessCondition(kind, "False", reason, "CML admits labs by itself")
                for kind, reason in _PRESSURES.items()
            ),
            TimelessCondition(
                "NetworkUnavailable", "False", ConditionReason.ROUTE_CREATED, "lablets use the worker's own network"
            ),
        ]


def address_of(spec: CMLWorkerSpec) -> str:
    """Return the address that learners use: `spec.address`, or the host of `spec.url`."""
    return spec.address or urlsplit(spec.cml_url).hostname or ""


@lru_cache(maxsize=4096)
def is_ip(address: str) -> bool:
    """Return whether an address is an IP address, not a name to be resolved."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True


def check_version(version: str) -> Fault | None:
    """Return why a CML version cannot be used; None if it can."""
    release = names.cml_release(version)
    if release is None or not OLDEST <= release[:2] <= NEWEST:
        return Fault(
            WorkerReason.UNSUPPORTED_VERSION, f"CML {version!r} is not supported; supported are 2.8, 2.9 and 2.10"
        )
    return None


def ours(node: Node, installation: str, uid: str = "") -> bool:
    """Return whether a Node was made by this installation; any other is never touched.

    Args:
        node: The Node.
        installation: The one that its annotation names.
        uid: That of its CMLWorker, which its status names: so it is ours also when the annotation was removed.
    """
    marked = node.metadata.annotations.get(wellknown.ANNOTATION_INSTALLATION)
    if marked is None and uid:
        return node.status.node_info.get("systemUUID") == uid
    return marked == installation


def create(view: NodeView, now_unix: int) -> dict[str, Any]:
    """Build the Node; the API server accepts its status at creation."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": names.node_name(view.worker),
            "labels": view.labels,
            "annotations": view.annotations,
        },
        "spec": {
            **({"providerID": view.provider_id} if view.provider_id else {}),
            "taints": [_taint(t) for t in view.taints],
            **({"unschedulable": True} if view.cordoned else {}),
        },
        "status": _status(view, None, now_unix),
    }


def metadata_patch(node: Node, view: NodeView) -> dict[str, Any] | None:
    """Build the merge patch that repairs labels, annotations and taints; None if nothing differs.

    A provider id is added, and never changed or removed: the API server allows neither.
    An annotation lists the labels that came from `spec.nodeLabels`, so that the next owner of the Node removes those
    that are no longer wanted.
    """
    labels, annotations = _label_changes(node, view), _annotation_changes(node, view)
    taints, identify = _taint_changes(node, view), bool(view.provider_id) and not node.spec.provider_id
    if not labels and not annotations and taints is None and not identify:
        return None
    patch: dict[str, Any] = {
        "metadata": {
            "resourceVersion": node.metadata.resource_version,
            **({"labels": labels} if labels else {}),
            **({"annotations": annotations} if annotations else {}),
        }
    }
    spec: dict[str, Any] = {"taints": taints} if taints is not None else {}
    if identify:
        spec["providerID"] = view.provider_id
    if names.ANNOTATION_CORDONED in annotations:
        spec["unschedulable"] = view.cordoned or None
    return {**patch, "spec": spec} if spec else patch


def _labels_of_spec(node: Node) -> list[str]:
    """List the labels of a Node that came from `spec.nodeLabels`."""
    listed = node.metadata.annotations.get(names.ANNOTATION_NODE_LABELS, "")
    return [key for key in listed.split(",") if key]


def _label_changes(node: Node, view: NodeView) -> dict[str, str | None]:
    wanted, found = view.labels, node.metadata.labels
    changed: dict[str, str | None] = {key: value for key, value in wanted.items() if found.get(key) != value}
    return changed | {key: None for key in _labels_of_spec(node) if key not in wanted and key in found}


def _annotation_changes(node: Node, view: NodeView) -> dict[str, str | None]:
    wanted, found = view.annotations, node.metadata.annotations
    changed: dict[str, str | None] = {key: value for key, value in wanted.items() if found.get(key) != value}
    if _labels_of_spec(node) and names.ANNOTATION_NODE_LABELS not in wanted:
        changed[names.ANNOTATION_NODE_LABELS] = None
    if names.ANNOTATION_CORDONED in found and names.ANNOTATION_CORDONED not in wanted:
        changed[names.ANNOTATION_CORDONED] = None
    return changed


def _taint_changes(node: Node, view: NodeView) -> list[dict[str, str]] | None:
    """Return all taints, other writers' included, if ours differ; None if they do not."""
    keys = {taint.key for taint in view.taints}
    if [taint for taint in node.spec.taints if taint.key in keys] == view.taints:
        return None
    return [_taint(taint) for taint in (*view.taints, *(t for t in node.spec.taints if t.key not in keys))]


def status_patch(node: Node, view: NodeView, now_unix: int) -> dict[str, Any] | None:
    """Build the merge patch of `nodes/status`; None if nothing differs.

    Conditions of other writers are carried over, with the resourceVersion as precondition.
    """
    conditions = {
        c.type: TimelessCondition(c.type, c.status, reason_of(c.reason), c.message) for c in node.status.conditions
    }
    same = (
        all(conditions.get(wanted.type) == wanted for wanted in view.conditions())
        and [{"type": a.type, "address": a.address} for a in node.status.addresses] == view.addresses
        and declares(node, view.endpoint)
        and view.capacity.items() <= node.status.capacity.items()
        and view.allocatable.items() <= node.status.allocatable.items()
        and all(node.status.node_info.get(key, "") == value for key, value in view.node_info.items())
        and _images(view, node) is None
    )
    if same:
        return None
    return {
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "status": _status(view, node, now_unix),
    }


def _status(view: NodeView, node: Node | None, now_unix: int) -> dict[str, Any]:
    before = {
        c.type: {
            "type": c.type,
            "status": c.status,
            "reason": c.reason,
            "message": c.message,
            "lastTransitionTime": c.last_transition_time,
            "lastHeartbeatTime": c.last_heartbeat_time,
        }
        for c in (node.status.conditions if node is not None else ())
    }
    wanted = view.conditions()
    ours = {condition.type for condition in wanted}
    conditions = [node_condition(before, condition, now_unix=now_unix) for condition in wanted]
    conditions += [condition for type_, condition in before.items() if type_ not in ours]
    return {
        "capacity": view.capacity,
        "allocatable": view.allocatable,
        "addresses": view.addresses,
        "conditions": conditions,
        "nodeInfo": view.node_info,
        **(declared(view.endpoint) if node is not None or view.endpoint is not None else {}),
        **(_images(view, node) or {}),
    }


def _images(view: NodeView, node: Node | None) -> dict[str, Any] | None:
    """Return `status.images` as it is to be written; None if it is to stay as it is."""
    shown = [image.names for image in node.status.images] if node is not None else []
    if view.images is None or shown == (wanted := [[name] for name in view.images]):
        return None
    return {"images": [{"names": each} for each in wanted] or None}


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}
