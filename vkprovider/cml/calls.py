"""How often and how long CML is called, by operation and by what came of it; operations are named, ids are not kept."""

import re
from collections.abc import Mapping
from typing import Final

from tunnels import errors
from vkprovider.api.histogram import LONG_S, Histogram

OPERATIONS: Final[Mapping[str, str]] = {
    "system_information": "GET /system_information",
    "log_in": "POST /authenticate",
    "import_lab": "POST /import",
    "list_labs": "GET /labs",
    "list_all_nodes": "GET /nodes",
    "get_lab": "GET /labs/*",
    "download_lab": "GET /labs/*/download",
    "delete_lab": "DELETE /labs/*",
    "start_lab": "PUT /labs/*/start",
    "stop_lab": "PUT /labs/*/stop",
    "wipe_lab": "PUT /labs/*/wipe",
    "list_nodes": "GET /labs/*/nodes",
    "get_node": "GET /labs/*/nodes/*",
    "change_node": "PATCH /labs/*/nodes/*",
    "get_node_state": "GET /labs/*/nodes/*/state",
    "start_node": "PUT /labs/*/nodes/*/state/start",
    "stop_node": "PUT /labs/*/nodes/*/state/stop",
    "extract_config": "PUT /labs/*/nodes/*/extract_configuration",
    "system_stats": "GET /system_stats",
    "licensing": "GET /diagnostics/licensing",
}
"""Operation: the request, `*` for an id. What is not here is counted as `other`."""

_BOUNDS_S: Final = (0.005, 0.02, 0.1, 0.5, *LONG_S[:6])
_PATTERN: Final = re.compile(
    "|".join(f"(?P<{name}>{request.replace('*', '[^/]+')})" for name, request in OPERATIONS.items())
)
_UNANSWERED: Final = (
    (errors.DeadlineExceeded, "timeout"),
    (errors.ConnectionLost, "lost"),
    (errors.CertificateInvalid, "certificate"),
    (errors.RequestRefused, "not_allowed"),
)


def operation_of(method: str, path: str) -> str:
    """Name a request.

    >>> operation_of("PUT", "/labs/4711/start")
    'start_lab'
    """
    match = _PATTERN.fullmatch(f"{method} {path}")
    return (match.lastgroup if match is not None else None) or "other"


def code_of(error: errors.TransportError) -> str:
    """Name what came instead of an answer; `unreachable` if there was not even a connection."""
    return next((code for kind, code in _UNANSWERED if isinstance(error, kind)), "unreachable")


class Calls:
    """Seconds of calls by operation and code: a status, or a word of `code_of`."""

    def __init__(self) -> None:
        self.took_s: dict[tuple[str, str], Histogram] = {}

    def count(self, method: str, path: str, code: str, took_s: float) -> None:
        """Count a call."""
        key = operation_of(method, path), code
        histogram = self.took_s[key] = self.took_s.get(key) or Histogram(_BOUNDS_S)
        histogram.observe(took_s)


CALLS: Final = Calls()
"""Of this process: sessions come and go with workers and their settings, a count only ever grows."""
