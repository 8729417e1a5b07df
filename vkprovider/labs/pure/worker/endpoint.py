"""Where a Node's kubelet API is served, as the Node's status declares it, and as it is withdrawn."""

from dataclasses import dataclass
from typing import Any, Final

from vkprovider.platform.objects import Node

_FEATURES: Final = ["ExtendWebSocketsToKubelet"]
"""What our kubelet API can do of `status.declaredFeatures`: the API server then passes WebSockets on (KEP-4006)."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a Node's kubelet API is served.

    Attributes:
        address: The replica's IP address.
        port: Of this Node alone.
    """

    address: str
    port: int


def declared(endpoint: Endpoint | None) -> dict[str, Any]:
    """Return the fields of a Node's status, beside its addresses, that declare the kubelet API; None removes them."""
    return {
        "daemonEndpoints": {"kubeletEndpoint": {"Port": endpoint.port} if endpoint is not None else None},
        "declaredFeatures": _FEATURES if endpoint is not None else None,
    }


def declares(node: Node, endpoint: Endpoint | None) -> bool:
    """Return whether a Node's status, beside its addresses, declares this.

    An API server before 1.35 drops `declaredFeatures`: that they are missing is no reason to write; they are written
    with the port.
    """
    port = endpoint.port if endpoint is not None else 0
    superfluous = endpoint is None and bool(node.status.declared_features)
    return node.status.daemon_endpoints.kubelet_endpoint.port == port and not superfluous


def withdrawal(node: Node) -> dict[str, Any] | None:
    """Build the merge patch of `nodes/status` that withdraws the kubelet API; None if none is declared.

    Nobody serves it once the last replica has ended, and another program may get the address.
    """
    kept = [{"type": a.type, "address": a.address} for a in node.status.addresses if a.type != "InternalIP"]
    if declares(node, None) and len(kept) == len(node.status.addresses):
        return None
    return {
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "status": {"addresses": kept, **declared(None)},
    }
