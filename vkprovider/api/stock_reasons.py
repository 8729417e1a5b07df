"""What stock Kubernetes says of a Pod or Node of ours before vkprovider can: part of its own text, and what to do.

The words are those of Kubernetes 1.36; a test provokes those of the scheduler and of admission on a real control plane.
"""

from typing import Final

from vkprovider.api.reasons import Reason

ADMISSION: Final = {
    "pod rejected: RuntimeClass": Reason(
        '`RuntimeClass "NAME" not found`: there is no LabletDefinition of that name, or it is not Ready.',
        "Correct runtimeClassName, or repair the definition: `kubectl get ldef`.",
    ),
    "exceeded quota": Reason(
        "The ResourceQuota of the namespace is used up; a lablet is charged what `kubectl get ldef` shows.",
        "Delete lablets of the namespace, or raise the quota.",
    ),
    "must specify": Reason(
        "A ResourceQuota wants requests or limits of every container.",
        "Write them, or have a LimitRange give them: `manifests/examples/quota.yaml`.",
    ),
    "Only lablets may tolerate": Reason(
        "The Pod tolerates the taints of virtual nodes by name, and has no RuntimeClass of a LabletDefinition.",
        "Set runtimeClassName, which adds the tolerations by itself, or remove those that begin with vkprovider.io/.",
    ),
    "Only the provider writes": Reason(
        "The manifest has annotations by which the provider reports.", "Remove them from the manifest or template."
    ),
    "may not use LabletDefinition": Reason(
        "The cluster demands the verb `use` on the definition, of the ServiceAccount of the Pod.",
        "Ask an administrator for the RoleBinding that the message names.",
    ),
    "violates PodSecurity": Reason(
        "The namespace enforces a Pod Security Standard.",
        "Take the securityContext of `manifests/examples/deployment.yaml`.",
    ),
}
"""Why no Pod was made: Event `FailedCreate` of its ReplicaSet, Job or StatefulSet, or the answer to `kubectl apply`."""

SCHEDULER: Final = {
    "no nodes available": Reason(
        "The cluster has no Node at all.", "Bring in a worker, and see that it is Ready: `kubectl get cmlw`."
    ),
    "Insufficient vkprovider.io/lab-nodes": Reason(
        "No worker has so many licensed devices left.",
        "Wait until lablets end, add workers, or correct spec.capacity.labNodes of the CMLWorkers.",
    ),
    "Insufficient cpu": Reason(
        "No worker has so much CPU left for labs.", "The same with spec.capacity.cpu, or lower spec.resources.cpu."
    ),
    "Insufficient memory": Reason(
        "No worker has so much memory left for labs.",
        "The same with spec.capacity.memory, or lower spec.resources.memory.",
    ),
    "Insufficient vkprovider.io/ports": Reason(
        "No worker has so many external ports left.", "Wait, add workers, or widen spec.portRange of the CMLWorkers."
    ),
    "Too many pods": Reason(
        "Every worker runs as many labs as it may.", "Wait, add workers, or raise spec.capacity.labs."
    ),
    "untolerated taint": Reason(
        "Nodes have a taint that the Pod does not tolerate. Of ordinary nodes that is as it should be. Of workers: "
        "they are of another environment than the definition, or not Ready (`node.kubernetes.io/not-ready`, "
        "`unreachable`), or the taint is yours; or the Pod has no runtimeClassName.",
        "`kubectl get cmlw,ldef -o wide` shows environments and why a worker is not Ready; set runtimeClassName.",
    ),
    "didn't match Pod's node affinity/selector": Reason(
        "The Pod is not for those nodes: a lablet goes to workers of its definition's environment only, and where its "
        "own selector and affinity lead.",
        "Compare both with `kubectl get nodes --show-labels`; set spec.nodeLabels of a CMLWorker, or add one.",
    ),
    "were unschedulable": Reason("Nodes are cordoned.", "`kubectl uncordon NODE` when the maintenance is over."),
    "didn't match pod anti-affinity rules": Reason(
        "Another lablet is where this one must not be.", "Add workers, or prefer instead of requiring."
    ),
    "didn't match pod topology spread constraints": Reason(
        "The lablet would make the spread uneven.", "Add workers there, or set whenUnsatisfiable: ScheduleAnyway."
    ),
    "Preemption is not helpful": Reason("Ending other lablets would not make room either.", "See the words before it."),
    "No preemption victims found": Reason(
        "No lablet of lower priority runs where there is too little room.", "See the words before it."
    ),
}
"""Why a Pod has no Node: condition PodScheduled (`Unschedulable`) and Event `FailedScheduling`."""

AFTERWARDS: Final = {
    "ContainerCreating": Reason(
        "Nobody has reported anything of the Pod yet.",
        "If it stays so: `vkprovider doctor` (`NoReplica`, `NoOwner`); look at the provider's log.",
    ),
    "NodeNotReady": Reason("The Pod's Node turned not Ready.", "See the Node's CMLWorker."),
    "NodeStatusUnknown": Reason(
        "Nobody renews the Node's Lease: no replica of the provider lives.", "Start the provider; the labs go on."
    ),
    "TaintManagerEviction": Reason(
        "The Pod was deleted, because it does not tolerate a taint with effect NoExecute.",
        "Remove the taint, or set spec.unreachableTolerationSeconds of the definition higher.",
    ),
    "Preempted": Reason("A lablet of higher priority needed the room.", "Give it a higher priorityClassName."),
    "DeletionByPodGC": Reason(
        "Condition DisruptionTarget: the Pod's Node was deleted.", "Do not delete Nodes; delete the CMLWorker."
    ),
    "EvictionByEvictionAPI": Reason("Condition DisruptionTarget: `kubectl drain`, or another eviction."),
}
"""What Kubernetes says of a Pod that has a Node, and of the Node."""

TABLES: Final = {
    "Kubernetes: no Pod is made (answer, Event FailedCreate)": ADMISSION,
    "Kubernetes: the Pod has no Node (Event FailedScheduling)": SCHEDULER,
    "Kubernetes: the Pod has a Node": AFTERWARDS,
}
"""Heading: what is said there. Keys are parts of messages, or reasons."""
