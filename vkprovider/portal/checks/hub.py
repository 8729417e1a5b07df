"""The JupyterHub that logs people in to a portal: whether it is there, bound, and may be asked."""

from collections.abc import Iterable, Sequence
from typing import Final

from vkprovider.doctor.findings import Finding, fault, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.platform.objects import RoleBinding
from vkprovider.portal.checks.services import EgressPolicy, ServiceAddress, ServiceSlice, is_closed
from vkprovider.portal.pure import portalnames

HUB_ROLE: Final = "vkprovider-portal-hub"
"""The ClusterRole by which a hub sees and ends labs."""


def check_hub_answers(hub: ServiceAddress, *, exists: bool, slices: Iterable[ServiceSlice]) -> list[Finding]:
    """Check that a hub is there.

    Args:
        hub: The hub.
        exists: Whether its Service does.
        slices: Those of the Service.
    """
    if not hub.name:
        return []  # outside of the cluster: it is not asked from here
    about, reason = f"Service/{hub.namespace}/{hub.name}", DoctorReason.HUB_AWAY
    if not exists:
        text = "VKPROVIDER_PORTAL_HUB_API_URL names it, and there is no such Service: nobody logs in to the portal"
        return [fault(about, reason, text, reason.remedy)]
    if any(each.is_ready for each in slices):
        return []
    text = "no Pod of the hub is ready: who comes now is not logged in, and open pages go on"
    return [
        fault(about, reason, text, f"kubectl -n {hub.namespace} get pods; kubectl -n {hub.namespace} logs deploy/hub")
    ]


def check_hub_bound(namespace: str, hub: ServiceAddress, bindings: Iterable[RoleBinding]) -> list[Finding]:
    """Check that a hub may see and end labs."""
    there = any(
        each.role_ref.name == HUB_ROLE and each.metadata.namespace in {"", namespace} and each.subjects
        for each in bindings
    )
    if there:
        return []
    text = f"no hub is bound to {HUB_ROLE}, unless by a role of your own: it can neither see labs nor end them"
    remedy = (
        f"kubectl -n {namespace} create rolebinding portal-hub --clusterrole={HUB_ROLE} "
        f"--serviceaccount={hub.namespace or 'NAMESPACE'}:hub"
    )
    return [note(f"Namespace/{namespace}", DoctorReason.HUB_UNBOUND, text, remedy)]


def check_hub_open(namespace: str, hub: ServiceAddress, policies: Sequence[EgressPolicy]) -> list[Finding]:
    """Check that NetworkPolicies let a portal connect to its hub.

    Args:
        namespace: The portal's.
        hub: The hub.
        policies: Those of that namespace; without one everything is open.
    """
    if not is_closed(hub.port, policies):
        return []
    text = f"no NetworkPolicy lets the portal connect to port {hub.port}, where its hub is"
    remedy = DoctorReason.HUB_CLOSED.remedy
    return [note(f"NetworkPolicy/{namespace}/{portalnames.PORTAL_PROGRAM}", DoctorReason.HUB_CLOSED, text, remedy)]
