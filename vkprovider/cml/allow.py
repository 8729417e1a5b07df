"""The only requests that may leave for a CML worker.

`LABS_API` is what lablets need: no user, licence or system management. `STATS_API` is for `stats: On` alone.
"""

from typing import Final

from tunnels.allowlist import AllowList

BASE: Final = "/api/v0"
_LAB: Final = f"{BASE}/labs/{{lab}}"
_NODE: Final = f"{_LAB}/nodes/{{node}}"

LABS_API: Final = AllowList(
    [
        ("GET", f"{BASE}/system_information"),
        ("POST", f"{BASE}/authenticate"),
        ("POST", f"{BASE}/import"),
        ("GET", f"{BASE}/labs"),
        ("GET", f"{BASE}/nodes"),
        ("GET", _LAB),
        ("DELETE", _LAB),
        *(("PUT", f"{_LAB}/{action}") for action in ("start", "stop", "wipe")),
        *(
            ("GET", f"{_LAB}/{fact}")
            for fact in ("state", "check_if_converged", "lab_element_state", "topology", "download")
        ),
        *(("GET", f"{_LAB}/{element}") for element in ("nodes", "interfaces", "links")),
        ("GET", f"{_LAB}/interfaces/{{interface}}"),
        ("GET", f"{_LAB}/links/{{link}}"),
        ("GET", _NODE),
        ("PATCH", _NODE),
        ("GET", f"{_NODE}/state"),
        ("GET", f"{_NODE}/interfaces"),
        ("PUT", f"{_NODE}/state/start"),
        ("PUT", f"{_NODE}/state/stop"),
        ("PUT", f"{_NODE}/extract_configuration"),
        ("GET", f"{_NODE}/keys/console"),
        ("GET", f"{_NODE}/keys/vnc"),
        ("GET", f"{_NODE}/consoles/{{line}}/log"),
    ]
)
"""Labs, nodes, interfaces, links, import, login, and the handshake that tells the version."""

STATS_API: Final = AllowList(
    [
        ("POST", f"{BASE}/authenticate"),
        ("GET", f"{BASE}/system_stats"),
        ("GET", f"{BASE}/diagnostics/licensing"),
    ]
)
"""Read-only load and licence figures."""
