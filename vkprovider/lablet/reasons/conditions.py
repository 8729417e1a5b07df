"""What Kubernetes itself shows of our Pods and Nodes, explained: types of conditions, and stock reasons.

The texts of stock reasons are those of Kubernetes 1.37; a test provokes the scheduler's and admission's on a real
control plane.
"""

from collections.abc import Mapping
from typing import Final

from vkprovider.platform.reasons import Explanation, Reason, Reasons


class ConditionReason(Reasons):
    """Reasons that name a condition: those of a Node's conditions, in the kubelet's words, and those that are types."""

    TRANSPORT_INSECURE = (
        "TransportInsecure",
        (
            "Of a CMLWorker: what is sent to CML could be read or answered by others; its reason says why. In the "
            "doctor's report also of the settings: a service is reached by http."
        ),
        "Use https, and spec.tls.caBundle.",
    )
    PORTS_OPEN = ("PortsOpen", "Condition PortsOpen of a CMLWorker: learners can reach the ports of its labs.")
    ROUTE_CREATED = ("RouteCreated", "Condition NetworkUnavailable of a Node is False, as it always is.")
    NO_MEMORY_PRESSURE = ("NoMemoryPressure", "Condition MemoryPressure of a Node is False, as it always is.")
    NO_DISK_PRESSURE = ("NoDiskPressure", "Condition DiskPressure of a Node is False, as it always is.")
    NO_PID_PRESSURE = ("NoPIDPressure", "Condition PIDPressure of a Node is False, as it always is.")


CONDITIONS: Final[Mapping[str, Reason | Explanation]] = {
    "Initialized": Explanation("vkprovider acts on the Pod. Nothing else is initialized."),
    "ContainersReady": Explanation("The same as Ready, whatever the readiness gates of the Pod are."),
    "vkprovider.io/LabImported": Explanation(
        "The Pod's lab is on the worker.", "While it is False, the waiting reason of the container `lab` says why."
    ),
    "vkprovider.io/LabConverged": Explanation(
        "Every device of the lab has booted, and the worker answers.", "While it is False, see the condition Ready."
    ),
    "vkprovider.io/PortsOpen": Explanation(
        "A learner can reach the lab's ports on the worker.", "While it is False, see its message for the setting."
    ),
    "vkprovider.io/SessionReady": Explanation("The learner's session exists and knows the devices."),
    "vkprovider.io/SessionStarted": Explanation("The learner has logged in."),
    ConditionReason.TRANSPORT_INSECURE: ConditionReason.TRANSPORT_INSECURE,
    "AgentTurnedAway": Explanation(
        "Of a CMLWorker: an agent with its name is not used; its reason says why. The condition goes with that agent.",
        "Stop that agent, or correct its name or spec.tunnel.",
    ),
    "Impeded": Explanation(
        "Of a LabletDefinition: its content is good, but something else keeps its lablets from working.",
        "Do what the message says; the condition goes within RECONCILE_INTERVAL.",
    ),
    "Refreshed": Explanation("Of a LabletDefinition: how the last refresh went.", "While it is False, see its reason."),
    "NetworkUnavailable": Explanation(
        "Of a Node: always False (`RouteCreated`), lablets use the worker's own network."
    ),
    "MemoryPressure": Explanation("Of a Node: always False (`NoMemoryPressure`), CML admits labs by itself."),
    "DiskPressure": Explanation("Of a Node: always False (`NoDiskPressure`), CML admits labs by itself."),
    "PIDPressure": Explanation("Of a Node: always False (`NoPIDPressure`), CML admits labs by itself."),
    **{reason.value: reason for reason in ConditionReason},
}
"""Conditions that vkprovider writes, beside Ready, whose reasons the other tables explain."""


ADMISSION: Final = {
    "pod rejected: RuntimeClass": Explanation(
        '`RuntimeClass "NAME" not found`: there is no LabletDefinition of that name, or it is not Ready.',
        "Correct runtimeClassName, or repair the definition: `kubectl get ldef`.",
    ),
    "exceeded quota": Explanation(
        "The ResourceQuota of the namespace is used up; a lablet is charged what `kubectl get ldef` shows.",
        "Delete lablets of the namespace, or raise the quota.",
    ),
    "must specify": Explanation(
        "A ResourceQuota requires requests or limits on every container.",
        "Set them, or add a LimitRange with defaults: `manifests/examples/quota.yaml`.",
    ),
    "Only lablets may tolerate": Explanation(
        "The Pod tolerates the taints of virtual nodes by name, but has no RuntimeClass of a LabletDefinition.",
        "Set runtimeClassName, which adds the tolerations by itself, or remove those that begin with vkprovider.io/.",
    ),
    "Only the provider writes": Explanation(
        "The manifest has annotations by which the provider reports.", "Remove them from the manifest or template."
    ),
    "may not use LabletDefinition": Explanation(
        "The cluster requires the verb `use` on the definition for the Pod's ServiceAccount.",
        "Ask an administrator for the RoleBinding that the message names.",
    ),
    "violates PodSecurity": Explanation(
        "The namespace enforces a Pod Security Standard.",
        "Use the securityContext of `manifests/examples/deployment.yaml`.",
    ),
}
"""Why no Pod was made: Event `FailedCreate` of its ReplicaSet, Job or StatefulSet, or the answer to `kubectl apply`."""

SCHEDULER: Final = {
    "no nodes available": Explanation(
        "The cluster has no Nodes.", "Add a worker, and see that it is Ready: `kubectl get cmlw`."
    ),
    "Insufficient vkprovider.io/lab-nodes": Explanation(
        "No worker has enough licensed devices left.",
        "Wait until lablets end, add workers, or correct spec.capacity.labNodes of the CMLWorkers.",
    ),
    "Insufficient cpu": Explanation(
        "No worker has enough CPU left for labs.", "The same with spec.capacity.cpu, or lower spec.resources.cpu."
    ),
    "Insufficient memory": Explanation(
        "No worker has enough memory left for labs.",
        "The same with spec.capacity.memory, or lower spec.resources.memory.",
    ),
    "Insufficient vkprovider.io/ports": Explanation(
        "No worker has enough external ports left.", "Wait, add workers, or widen spec.portRange of the CMLWorkers."
    ),
    "Too many pods": Explanation(
        "Every worker runs its maximum of labs.", "Wait, add workers, or raise spec.capacity.labs."
    ),
    "untolerated taint": Explanation(
        "Nodes have a taint that the Pod does not tolerate. On ordinary nodes that is intended. On workers: "
        "they are of another environment than the definition, or not Ready (`node.kubernetes.io/not-ready`, "
        "`unreachable`), or the taint is yours; or the Pod has no runtimeClassName.",
        "`kubectl get cmlw,ldef -o wide` shows environments and why a worker is not Ready; set runtimeClassName.",
    ),
    "didn't match Pod's node affinity/selector": Explanation(
        "The Pod is not for those nodes: a lablet goes to workers of its definition's environment only, and where its "
        "own selector and affinity lead.",
        "Compare both with `kubectl get nodes --show-labels`; set spec.nodeLabels of a CMLWorker, or add one.",
    ),
    "were unschedulable": Explanation("Nodes are cordoned.", "`kubectl uncordon NODE` when the maintenance is over."),
    "didn't match pod anti-affinity rules": Explanation(
        "Another lablet runs where this one is not allowed beside it.", "Add workers, or prefer instead of requiring."
    ),
    "didn't match pod topology spread constraints": Explanation(
        "The lablet would make the spread uneven.", "Add workers there, or set whenUnsatisfiable: ScheduleAnyway."
    ),
    "Preemption is not helpful": Explanation(
        "Evicting other lablets would not make room either.", "See the text before it."
    ),
    "No preemption victims found": Explanation(
        "No lablet of lower priority runs where room is lacking.", "See the text before it."
    ),
}
"""Why a Pod has no Node: condition PodScheduled (`Unschedulable`) and Event `FailedScheduling`."""

AFTERWARDS: Final = {
    "ContainerCreating": Explanation(
        "No status of the Pod has been reported yet.",
        "If it stays so: `vkprovider doctor` (`NoReplica`, `NoOwner`); look at the provider's log.",
    ),
    "NodeNotReady": Explanation("The Pod's Node turned not Ready.", "See the Node's CMLWorker."),
    "NodeStatusUnknown": Explanation(
        "The Node's Lease is not renewed: no replica of the provider runs.",
        "Start the provider; the labs keep running.",
    ),
    "TaintManagerEviction": Explanation(
        "The Pod was deleted, because it does not tolerate a taint with effect NoExecute.",
        "Remove the taint, or set spec.unreachableTolerationSeconds of the definition higher.",
    ),
    "Preempted": Explanation("A lablet of higher priority needed the room.", "Set a higher priorityClassName."),
    "DeletionByPodGC": Explanation(
        "Condition DisruptionTarget: the Pod's Node was deleted.", "Do not delete Nodes; delete the CMLWorker."
    ),
    "EvictionByEvictionAPI": Explanation("Condition DisruptionTarget: `kubectl drain`, or another eviction."),
}
"""What Kubernetes reports on a Pod that has a Node, and on the Node."""

TABLES: Final = {
    "Kubernetes: no Pod is made (answer, Event FailedCreate)": ADMISSION,
    "Kubernetes: the Pod has no Node (Event FailedScheduling)": SCHEDULER,
    "Kubernetes: the Pod has a Node": AFTERWARDS,
}
"""Heading: its texts. Keys are parts of messages, or reasons."""
