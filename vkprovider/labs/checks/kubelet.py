"""Checks of the kubelet API of the Nodes."""

from collections.abc import Iterable, Sequence

from vkprovider.doctor.findings import Finding, note
from vkprovider.doctor.reasons import DoctorReason
from vkprovider.labs.kubelet.certificate import SigningRequest
from vkprovider.platform.messages import count
from vkprovider.platform.objects import Node


def check_requests(namespace: str, requests: Iterable[SigningRequest]) -> list[Finding]:
    """Report serving certificates that nobody has approved."""
    pending = sorted(request.metadata.name for request in requests if request.is_pending)
    if not pending:
        return []
    text = (
        f"not approved yet: {count(len(pending), 'serving certificate')} of replicas; until then a replica serves a "
        "certificate of its own, which metrics-server does not trust"
    )
    remedy = f"kubectl certificate approve {' '.join(pending)}; or set VKPROVIDER_KUBELET_CERTIFICATE=self-signed"
    return [note(f"Namespace/{namespace}", DoctorReason.SERVING_CERTIFICATE_PENDING, text, remedy)]


def check_nodes(namespace: str, nodes: Sequence[Node]) -> list[Finding]:
    """Report Nodes that declare no kubelet API."""
    silent = [node.metadata.name for node in nodes if not node.status.daemon_endpoints.kubelet_endpoint.port]
    if not silent:
        return []
    which = ", ".join(silent[:3]) + (", …" if len(silent) > 3 else "")  # noqa: PLR2004 (a few examples)
    where = f"{len(silent)} of {count(len(nodes), 'Node')}"
    text = f"no kubectl logs, attach, exec and port-forward on {where}: {which}"
    remedy = "Unless VKPROVIDER_KUBELET=false is meant: see VKPROVIDER_KUBELET_PORTS and the provider's log."
    return [note(f"Namespace/{namespace}", DoctorReason.KUBELET_NOT_SERVED, text, remedy)]
