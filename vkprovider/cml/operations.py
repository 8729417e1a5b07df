"""The only requests that may leave for a CML worker, with their timeouts.

`LABS_API` is what the program sends for lablets: no user, licence or system management. `STREAMS_API` is for their
consoles, `STATS_API` for `stats: On` alone, `IMAGES_API` for `images: On`. What the clients offer beyond that
(`MORE`) passes only in a session opened with a wider list.
"""

from typing import Final

from tunnels.base import AllowList
from tunnels.channels import PORTS
from vkprovider.lablet.observations import IMPORT_S
from vkprovider.rest.operations import Operation, allow_list

BASE: Final = "/api/v0"

_PROBE_S: Final = 3.0
"""The deadline of the requests that show whether the worker is alive."""
_LOGIN_S: Final = 10.0
_READ_S: Final = 10.0
_OBSERVE_S: Final = 15.0
"""All nodes of a worker."""
_ACTION_S: Final = 30.0
"""CML answers when it has accepted; a busy one late."""
_EXTRACT_S: Final = 120.0
"""CML logs in to the device."""

_LAB: Final = "/labs/{lab}"
_NODE: Final = "/labs/{lab}/nodes/{node}"

HANDSHAKE: Final = Operation("system_information", "GET", "/system_information", _PROBE_S, anonymous=True)
LOG_IN: Final = Operation("log_in", "POST", "/authenticate", _LOGIN_S, anonymous=True)
IMPORT_LAB: Final = Operation("import_lab", "POST", "/import", IMPORT_S, slow=True)
LIST_LABS: Final = Operation("list_labs", "GET", "/labs", _PROBE_S)
LIST_ALL_NODES: Final = Operation("list_all_nodes", "GET", "/nodes", _OBSERVE_S)
GET_LAB: Final = Operation("get_lab", "GET", _LAB, _READ_S)
DOWNLOAD_LAB: Final = Operation("download_lab", "GET", f"{_LAB}/download", _READ_S)
NOTE_LAB: Final = Operation("note_lab", "PATCH", _LAB, _ACTION_S)
DELETE_LAB: Final = Operation("delete_lab", "DELETE", _LAB, _ACTION_S, slow=True)
START_LAB: Final = Operation("start_lab", "PUT", f"{_LAB}/start", _ACTION_S, slow=True)
STOP_LAB: Final = Operation("stop_lab", "PUT", f"{_LAB}/stop", _ACTION_S, slow=True)
WIPE_LAB: Final = Operation("wipe_lab", "PUT", f"{_LAB}/wipe", _ACTION_S, slow=True)
LIST_NODES: Final = Operation("list_nodes", "GET", f"{_LAB}/nodes", _READ_S)
GET_NODE: Final = Operation("get_node", "GET", _NODE, _READ_S)
START_NODE: Final = Operation("start_node", "PUT", f"{_NODE}/state/start", _ACTION_S, slow=True)
STOP_NODE: Final = Operation("stop_node", "PUT", f"{_NODE}/state/stop", _ACTION_S, slow=True)
WIPE_NODE: Final = Operation("wipe_node", "PUT", f"{_NODE}/wipe_disks", _ACTION_S, slow=True)
EXTRACT_CONFIG: Final = Operation("extract_config", "PUT", f"{_NODE}/extract_configuration", _EXTRACT_S, slow=True)

GET_NODE_STATE: Final = Operation("get_node_state", "GET", f"{_NODE}/state", _READ_S)

GET_CONSOLE_KEY: Final = Operation("get_console_key", "GET", f"{_NODE}/keys/console", _READ_S)
GET_VNC_KEY: Final = Operation("get_vnc_key", "GET", f"{_NODE}/keys/vnc", _READ_S)
CONSOLE_LOG: Final = Operation("console_log", "GET", f"{_NODE}/consoles/{{line}}/log", _READ_S)
SIMULATION_STATS: Final = Operation("simulation_stats", "GET", f"{_LAB}/simulation_stats", _READ_S)

_CAPTURE: Final = f"{_LAB}/links/{{link}}/capture"
LIST_LINKS: Final = Operation("list_links", "GET", f"{_LAB}/links", _READ_S)
START_CAPTURE: Final = Operation("start_capture", "PUT", f"{_CAPTURE}/start", _ACTION_S)
STOP_CAPTURE: Final = Operation("stop_capture", "PUT", f"{_CAPTURE}/stop", _READ_S)
CAPTURE_STATUS: Final = Operation("capture_status", "GET", f"{_CAPTURE}/status", _READ_S)
GET_PCAP: Final = Operation("get_pcap", "GET", "/pcap/{key}", _ACTION_S, slow=True)

CONSOLE_PATH: Final = "/ws/dispatch/frontend/console"
SCREEN_PATH: Final = "/ws/dispatch/frontend/vnc"
PORT_PATH: Final = f"{PORTS}{{port}}"
TEXT_PATHS: Final = frozenset({CONSOLE_PATH})
"""CML's user interface sends what is typed at a console as text."""

SYSTEM_STATS: Final = Operation("system_stats", "GET", "/system_stats", _READ_S)
LIST_DEFINITIONS: Final = Operation("list_definitions", "GET", "/node_definitions", _OBSERVE_S)
LIST_IMAGES: Final = Operation("list_image_definitions", "GET", "/image_definitions", _OBSERVE_S)
LICENSING: Final = Operation("licensing", "GET", "/diagnostics/licensing", _READ_S)

LABS: Final = (
    HANDSHAKE,
    LOG_IN,
    IMPORT_LAB,
    LIST_LABS,
    LIST_ALL_NODES,
    GET_LAB,
    DOWNLOAD_LAB,
    NOTE_LAB,
    DELETE_LAB,
    START_LAB,
    STOP_LAB,
    WIPE_LAB,
    LIST_NODES,
    GET_NODE,
    START_NODE,
    STOP_NODE,
    WIPE_NODE,
    EXTRACT_CONFIG,
)
CONSOLES: Final = (GET_CONSOLE_KEY, GET_VNC_KEY, CONSOLE_LOG, SIMULATION_STATS)
CAPTURES: Final = (LIST_LINKS, START_CAPTURE, STOP_CAPTURE, CAPTURE_STATUS, GET_PCAP)
MORE: Final = (GET_NODE_STATE,)
STATS: Final = (LOG_IN, SYSTEM_STATS, LICENSING, LIST_DEFINITIONS)
IMAGES: Final = (LOG_IN, LIST_IMAGES)

LABS_API: Final = allow_list((*LABS, *CONSOLES, *CAPTURES), BASE)
"""Labs, their nodes, consoles and captures, import, login, and the handshake, which reports the version to everyone."""
STREAMS_API: Final = AllowList(("OPEN", path) for path in (CONSOLE_PATH, SCREEN_PATH, PORT_PATH))
"""Streams of bytes: consoles, screens, and ports of CML's host."""
STATS_API: Final = allow_list(STATS, BASE)
"""Read-only figures: load, licences, and what node definitions need, also of time."""
IMAGES_API: Final = allow_list(IMAGES, BASE)
"""The list of image definitions."""
