"""What the provider reports on a custom resource or a Node: whether it is current, and whether a Node is Ready."""

from vkprovider.doctor.findings import Finding, fault
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet.models.status import Status
from vkprovider.platform.objects import CustomResource, Node, NodeCondition


def node_ready(node: Node) -> NodeCondition | None:
    """Return a Node's condition Ready; None if there is not one."""
    return next((condition for condition in node.status.conditions if condition.type == "Ready"), None)


def check_observed(about: str, resource: CustomResource, status: Status) -> list[Finding]:
    """Check that the provider has observed the resource as it is now."""
    if status.ready is not None and status.observed_generation == resource.metadata.generation:
        return []
    text = "the provider has not observed " + ("its last change" if status.ready is not None else "it")
    return [fault(about, DoctorReason.NOT_OBSERVED, text, "Check that the provider runs, and look at its log.")]
