"""Where a Node's kubelet API is served, and which version it claims.

The version follows the API server's: no kubelet may be newer than its API server, and upgrades refuse one that is more
than three releases older (https://kubernetes.io/releases/version-skew-policy). Programs read it as a semantic version,
with or without a suffix.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from vkprovider.platform.objects import Node

_FEATURES: Final = ["ExtendWebSocketsToKubelet"]
"""What our kubelet API can do of `status.declaredFeatures`: the API server then passes WebSockets on (KEP-4006)."""


@dataclass(frozen=True, slots=True)
class KubeletEndpoint:
    """Where a Node's kubelet API is served.

    Attributes:
        address: The replica's IP address.
        port: Of this Node alone.
    """

    address: str
    port: int


def declared(endpoint: KubeletEndpoint | None) -> dict[str, Any]:
    """Return the fields of a Node's status, beside its addresses, that declare the kubelet API; None removes them."""
    return {
        "daemonEndpoints": {"kubeletEndpoint": {"Port": endpoint.port} if endpoint is not None else None},
        "declaredFeatures": _FEATURES if endpoint is not None else None,
    }


def declares(node: Node, endpoint: KubeletEndpoint | None) -> bool:
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


KUBERNETES_OLDEST: Final = (1, 30)
"""The oldest supported release."""
_SUFFIX: Final = "-vkprovider"
_RELEASE: Final = re.compile(r"v?(\d+\.\d+\.\d+)")


def kubelet_version(server: str) -> str:
    """Return the version for an API server of a version such as `v1.33.5+k3s1`; the oldest where it has none.

    >>> kubelet_version("v1.33.5-eks-3cfe0ce")
    'v1.33.5-vkprovider'
    """
    found = _RELEASE.match(server)
    release = found[1] if found else ".".join(map(str, (*KUBERNETES_OLDEST, 0)))
    return f"v{release}{_SUFFIX}"
