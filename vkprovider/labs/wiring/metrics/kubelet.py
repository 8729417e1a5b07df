"""The metrics of the kubelet API."""

from collections.abc import Iterator

from vkprovider.labs.wiring.kubelet import Kubelet
from vkprovider.platform.runtime.metrics.measure import Measure, by_name, counter, gauge, value


def kubelet_measures(kubelet: Kubelet) -> Iterator[Measure]:
    """Yield the metrics of the kubelet API."""
    yield gauge("vkprovider_kubelet_nodes", "Nodes whose kubelet API is served.", lambda: value(len(kubelet.listeners)))
    yield gauge(
        "vkprovider_kubelet_certificate_signed",
        "Whether the certificate of the kubelet API is signed by the cluster; else it is the replica's own.",
        lambda: value(kubelet.certificates is not None and kubelet.certificates.is_signed),
    )
    yield gauge(
        "vkprovider_kubelet_sessions",
        "Open sessions of the kubelet API: `logs`, `attach`, `exec`, `portForward`.",
        lambda: by_name(kubelet.sessions.open),
        "kind",
    )
    yield counter(
        "vkprovider_kubelet_requests_total",
        "Requests to the kubelet API by path, without names, and status; a session counts when it ends.",
        kubelet.requests.items,
        "path",
        "code",
    )
