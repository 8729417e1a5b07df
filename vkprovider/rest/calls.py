"""Duration of requests by labels, operation and outcome; ids are not kept."""

from collections.abc import Sequence
from typing import Final

from tunnels import errors
from vkprovider.platform.histogram import LONG_S, Histogram

BOUNDS_S: Final = (0.005, 0.02, 0.1, 0.5)
"""The short ones; a service adds those of `LONG_S` that its timeouts reach."""

_UNANSWERED: Final = (
    (errors.DeadlineExceeded, "timeout"),
    (errors.ConnectionLost, "lost"),
    (errors.CertificateInvalid, "certificate"),
    (errors.RequestRefused, "not_allowed"),
)


def code_of(error: errors.TransportError) -> str:
    """Return the metric's code for a request without an answer; `unreachable` if there was not even a connection."""
    return next((code for kind, code in _UNANSWERED if isinstance(error, kind)), "unreachable")


class Calls:
    """Seconds of requests by the service's labels, operation and code: an HTTP status, or a word of `code_of`.

    Args:
        long_bounds: How many of `LONG_S` the histograms have.
    """

    def __init__(self, *, long_bounds: int) -> None:
        self.took_s: dict[tuple[str, ...], Histogram] = {}
        self._bounds_s = (*BOUNDS_S, *LONG_S[:long_bounds])

    def count(self, labels: Sequence[str], took_s: float) -> None:
        """Count a request."""
        key = tuple(labels)
        histogram = self.took_s.get(key)
        if histogram is None:
            histogram = self.took_s[key] = Histogram(self._bounds_s)
        histogram.observe(took_s)
