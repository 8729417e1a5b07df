"""R000-044: the lab paths, and the version without a token; the rest of the system API is for statistics, read-only."""

import ast
from itertools import product
from pathlib import Path

import vkprovider.cml
from vkprovider.agent.upstream import AGENT_API
from vkprovider.cml.operations import CONSOLES, HANDSHAKE, IMAGES_API, LABS, LABS_API, LOG_IN, STATS_API

SYSTEM = (
    "system_stats", "system_health", "system/compute_hosts", "system/maintenance_mode", "licensing",
    "diagnostics/licensing", "users", "groups", "resource_pools", "node_definitions", "image_definitions",
    "telemetry", "web_session_timeout", "logout", "images/upload", "populate_lab_tiles",
)  # fmt: skip


def test_no_system_path_is_a_lab_path() -> None:
    asked = product(("GET", "POST", "PUT", "PATCH", "DELETE"), SYSTEM, ("", "/x"))
    assert [each for each in asked if LABS_API.allows(each[0], f"/api/v0/{each[1]}{each[2]}")] == []


def test_every_entry_is_about_labs_or_the_login() -> None:
    roots = {pattern.removeprefix("/api/v0/").partition("/")[0] for _, pattern in LABS_API.entries}
    assert roots == {"authenticate", "system_information", "import", "labs", "nodes", "pcap"}


def test_nothing_but_handshake_and_login_goes_without_a_token() -> None:
    assert [operation for operation in (*LABS, *CONSOLES) if operation.anonymous] == [HANDSHAKE, LOG_IN]


def test_the_program_sends_twenty_seven_kinds_of_requests() -> None:
    """Least privilege: who adds a request adds it here."""
    lab, node, link = "labs/{lab}", "labs/{lab}/nodes/{node}", "labs/{lab}/links/{link}"
    assert {(method, pattern.removeprefix("/api/v0/")) for method, pattern in LABS_API.entries} == {
        ("GET", "system_information"),
        ("POST", "authenticate"),
        ("POST", "import"),
        ("GET", "labs"),
        ("GET", "nodes"),
        ("GET", lab),
        ("GET", f"{lab}/download"),
        ("PATCH", lab),
        ("DELETE", lab),
        ("PUT", f"{lab}/start"),
        ("PUT", f"{lab}/stop"),
        ("PUT", f"{lab}/wipe"),
        ("GET", f"{lab}/nodes"),
        ("GET", node),
        ("PUT", f"{node}/state/start"),
        ("PUT", f"{node}/state/stop"),
        ("PUT", f"{node}/wipe_disks"),
        ("PUT", f"{node}/extract_configuration"),
        ("GET", f"{node}/keys/console"),
        ("GET", f"{node}/keys/vnc"),
        ("GET", f"{node}/consoles/{{line}}/log"),
        ("GET", f"{lab}/simulation_stats"),
        ("GET", f"{lab}/links"),
        ("PUT", f"{link}/capture/start"),
        ("PUT", f"{link}/capture/stop"),
        ("GET", f"{link}/capture/status"),
        ("GET", "pcap/{key}"),
    }


def test_statistics_only_read() -> None:
    assert {entry for entry in STATS_API.entries if entry[0] != "GET"} == {("POST", "/api/v0/authenticate")}


def test_node_definitions_are_asked_for_with_the_statistics_only() -> None:
    path = "/api/v0/node_definitions"
    assert (STATS_API.allows("GET", path), LABS_API.allows("GET", path)) == (True, False)


def test_the_list_of_image_definitions_is_one_path_of_its_own() -> None:
    """That of an agent has it, too; nothing else about image definitions leaves for a worker."""
    path = "/api/v0/image_definitions"
    assert set(IMAGES_API.entries) == {("POST", "/api/v0/authenticate"), ("GET", path)}
    assert AGENT_API.allows("GET", path)
    for method, wanted in (("POST", path), ("DELETE", f"{path}/iosv"), ("GET", f"{path}/iosv"), ("PUT", path)):
        assert not IMAGES_API.allows(method, wanted)
        assert not AGENT_API.allows(method, wanted)


def test_only_wiring_may_import_the_statistics() -> None:
    package = Path(vkprovider.cml.__file__).parent.parent
    importers = set()
    for path in package.rglob("*.py"):
        for statement in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []
            if isinstance(statement, ast.ImportFrom):
                names = [f"{statement.module}.{alias.name}" for alias in statement.names]
            if any(f"{name}.".startswith("vkprovider.cml.stats.") for name in names):
                importers.add(path.relative_to(package).parts[0])
    assert importers <= {"agent", "labs"}
