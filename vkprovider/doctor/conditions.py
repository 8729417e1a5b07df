"""What the provider reports on a custom resource or a Node: whether it is current, and its conditions."""

from typing import Any

from vkprovider.api.objects import CustomResource, Node, NodeCondition
from vkprovider.api.reasons import DoctorReason
from vkprovider.doctor.findings import Finding, fault


def condition_of(resource: CustomResource, type_: str) -> dict[str, Any]:
    """Return a condition; empty if there is not one of that type."""
    return next((c for c in resource.status.get("conditions", []) if c.get("type") == type_), {})


def ready_of(resource: CustomResource) -> dict[str, Any]:
    """Return the condition Ready; empty if there is not one."""
    return condition_of(resource, "Ready")


def is_ready(resource: CustomResource) -> bool:
    """Return whether the condition Ready is True."""
    return ready_of(resource).get("status") == "True"


def node_ready(node: Node) -> NodeCondition | None:
    """Return a Node's condition Ready; None if there is not one."""
    return next((condition for condition in node.status.conditions if condition.type == "Ready"), None)


def check_observed(about: str, resource: CustomResource) -> list[Finding]:
    """Check that the provider has observed the resource as it is now."""
    ready = ready_of(resource)
    if ready and resource.status.get("observedGeneration") == resource.metadata.generation:
        return []
    text = "the provider has not observed " + ("its last change" if ready else "it")
    return [fault(about, DoctorReason.NOT_OBSERVED, text, "Check that the provider runs, and look at its log.")]
