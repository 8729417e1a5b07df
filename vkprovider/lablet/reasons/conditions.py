"""Types of conditions, explained in docs/why.md beside the reasons; reasons that name a condition."""

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
