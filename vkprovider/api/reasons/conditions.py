"""Types of conditions, explained in docs/why.md beside the reasons."""

from typing import Final

from vkprovider.api.reasons.base import Explanation

CONDITIONS: Final = {
    "Initialized": Explanation("vkprovider acts on the Pod. Nothing else is initialized."),
    "ContainersReady": Explanation("The same as Ready."),
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
    "TransportInsecure": Explanation(
        "Of a CMLWorker: what is sent to CML could be read or answered by others; its reason says why. In the doctor's "
        "report also of the settings: a service is reached by http.",
        "Use https, and spec.tls.caBundle.",
    ),
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
}
"""Types of conditions that vkprovider writes, beside Ready, whose reasons the other tables explain."""
