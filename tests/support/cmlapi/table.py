"""Which shape each answer of CML has, and a check of one answer."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import yaml

from tests.support.cmlapi import accounts, definitions, diagnostics, labs, nodes, system, testbeds
from tests.support.cmlapi.kinds import Identified, Problem, State, Uuid

NOTHING: Final = "nothing"
"""An empty 204."""
YAML: Final = "yaml"
TEXT: Final = "text"
BYTES: Final = "bytes"
Annotation = dict[str, Any]
"""Its limits are checked where it comes in; an imported one is kept as it was."""

_LAB: Final[Mapping[str, Any]] = {
    "GET /labs": list[Uuid],
    "POST /labs": labs.Lab,
    "POST /import": labs.Import,
    "GET /populate_lab_tiles": labs.Tiles,
    "GET /labs/{}": labs.Lab,
    "PATCH /labs/{}": labs.Lab,
    "DELETE /labs/{}": NOTHING,
    "PUT /labs/{}/(state/)?(start|stop|wipe)": NOTHING,
    "GET /labs/{}/state": State,
    "GET /labs/{}(/nodes/{}|/links/{})?/check_if_converged": bool,
    "GET /labs/{}/lab_element_state": labs.ElementStates,
    "GET /labs/{}/topology": labs.Topology,
    "GET /labs/{}/download": YAML,
    "GET /labs/{}/tile": labs.Tile,
    "GET /labs/{}/events": list[labs.Event],
    "GET /labs/{}/simulation_stats": labs.Statistics,
    "GET /labs/{}/layer3_addresses": dict[Uuid, nodes.Addresses],
    "DELETE /labs/{}(/nodes/{})?/layer3_addresses": NOTHING,
    "GET /labs/{}/resource_pools": list[Uuid],
    "((PUT|GET) /labs/{}/bootstrap|GET /build_configurations)": NOTHING,
    "GET /labs/{}/pyats_testbed": testbeds.Testbed,
    "(GET|PATCH) /labs/{}/associations": labs.Associations,
    "(GET|PUT) /labs/{}/groups": list[labs.OldGroup],
    "(GET|PATCH) /labs/{}/connector_mappings": list[labs.Mapping],
    "GET /labs/{}/find/node/label/{}": Uuid | None,
    "GET /labs/{}/find_all/node/tag/{}": list[Uuid],
    "(GET|POST) /labs/{}/annotations": Annotation | list[Annotation],
    "(GET|PATCH) /labs/{}/annotations/{}": Annotation,
    "DELETE /labs/{}/annotations/{}": NOTHING,
    "GET /labs/{}/smart_annotations": list[Annotation],
    "(GET|PATCH) /labs/{}/smart_annotations/{}": Annotation,
}
_ELEMENTS: Final[Mapping[str, Any]] = {
    "GET /nodes": list[nodes.Node],
    "GET /labs/{}/nodes": list[Uuid | nodes.Node],
    "POST /labs/{}/nodes": Identified,
    "GET /labs/{}/nodes/{}": nodes.Node,
    "PATCH /labs/{}/nodes/{}": Uuid,
    "DELETE /labs/{}/nodes/{}": NOTHING,
    "GET /labs/{}/nodes/{}/state": nodes.NodeStateAnswer,
    "PUT /labs/{}/nodes/{}/(state/start|state/stop|wipe_disks)": NOTHING,
    "PUT /labs/{}/nodes/{}/extract_configuration": Any,
    "PUT /labs/{}/nodes/{}/clone_image": definitions.ImageDefinition,
    "GET /labs/{}/nodes/{}/keys/(console|vnc)": Uuid,
    "GET /labs/{}/nodes/{}/consoles/{}/log": str,
    "GET /labs/{}/nodes/{}/layer3_addresses": nodes.Addresses,
    "GET /labs/{}/nodes/{}/interfaces": list[Uuid | nodes.Interface],
    "GET /labs/{}/interfaces": list[nodes.Interface],
    "POST /labs/{}/interfaces": nodes.Interface | list[nodes.Interface],
    "GET /labs/{}/interfaces/{}": nodes.Interface,
    "PATCH /labs/{}/interfaces/{}": Uuid,
    "DELETE /labs/{}/interfaces/{}": NOTHING,
    "GET /labs/{}/interfaces/{}/state": nodes.InterfaceState,
    "PUT /labs/{}/(interfaces|links)/{}/state/(start|stop)": NOTHING,
    "GET /labs/{}/links": list[Uuid | nodes.Link],
    "POST /labs/{}/links": nodes.NewLink,
    "GET /labs/{}/links/{}": nodes.Link,
    "DELETE /labs/{}/links/{}": NOTHING,
    "GET /labs/{}/links/{}/state": nodes.LinkState,
    "(GET|PATCH) /labs/{}/links/{}/condition": nodes.Condition,
    "DELETE /labs/{}/links/{}/condition": NOTHING,
    "PUT /labs/{}/links/{}/capture/(start|stop)": dict[str, Any],
    "GET /labs/{}/links/{}/capture/status": labs.Capture,
    "GET /labs/{}/links/{}/capture/key": Uuid,
    "GET (//api/v0)?/pcap/{}": BYTES,
    "GET (//api/v0)?/pcap/{}/packets": list[Any],
    "GET (//api/v0)?/pcap/{}/packets?/{}": dict[str, Any],
}
_CONTROLLER: Final[Mapping[str, Any]] = {
    "GET /system_information": system.Information,
    "POST /authenticate": str,
    "POST /auth_extended": system.Session,
    "GET /authok": Any,
    "GET /authentication": system.Session,
    "DELETE /logout": bool,
    "GET /web_session_timeout/?": int,
    "PATCH /web_session_timeout/{}": str,
    "GET /system_stats": system.SystemStats,
    "GET /system_health": system.SystemHealth,
    "GET /system/compute_hosts": list[system.ComputeHost],
    "(GET|PATCH) /system/compute_hosts/configuration": system.Admission,
    "(GET|PATCH) /system/compute_hosts/{}": system.ComputeHost,
    "GET /keys/console": dict[Uuid, system.Key],
    "GET /keys/vnc": dict[Uuid, system.VncKey],
    "(GET|PATCH) /system/maintenance_mode": system.Maintenance,
    "GET /system/notices": list[system.Notice],
    "POST /system/notices": system.Notice,
    "(GET|PATCH) /system/notices/{}": system.Notice,
    "DELETE /system/notices/{}": NOTHING,
    "(GET|PUT) /system/external_connectors": list[system.Connector],
    "(GET|PATCH) /system/external_connectors/{}": system.Connector,
    "DELETE /system/external_connectors/{}": NOTHING,
    "GET /system/auth/config": dict[str, Any],
    "PATCH /system/auth/config": NOTHING,
    "(GET|PUT) /telemetry": system.Telemetry,
    "GET /telemetry/events": list[Any],
    "GET /diagnostics": dict[str, Any],
    "GET /diagnostics/licensing": diagnostics.LicenceCounts,
    "GET /diagnostics/node_launch_queue": list[diagnostics.QueuedNode],
    "GET /diagnostics/user_list": list[accounts.User],
    "GET /diagnostics/labs": dict[Uuid, diagnostics.DiagnosedLab],
    "GET /diagnostics/lab_events": dict[Uuid, list[labs.Event]],
    "GET /diagnostics/node_definitions": list[diagnostics.DiagnosedDefinition],
    "GET /diagnostics/startup_scheduler": diagnostics.StartupScheduler,
    "GET /diagnostics/(computes|services)": dict[str, Any],
    "GET /sample/labs": dict[str, Any],
    "PUT /sample/labs/{}": Uuid,
    "GET /lab_repos": list[system.Repository],
    "POST /lab_repos": system.Repository,
    "PUT /lab_repos/refresh": dict[str, Any],
    "DELETE /lab_repos/{}": NOTHING,
}
_ACCOUNTS: Final[Mapping[str, Any]] = {
    "GET /users": list[accounts.User],
    "POST /users": accounts.User,
    "(GET|PATCH) /users/{}": accounts.User,
    "DELETE /(users|groups|resource_pools)/{}": NOTHING,
    "GET /(users|groups)/{}/id": Uuid,
    "GET /users/{}/groups": list[Uuid],
    "GET /groups": list[accounts.Group],
    "POST /groups": accounts.Group,
    "(GET|PATCH) /groups/{}": accounts.Group,
    "GET /groups/{}/(labs|members)": list[Uuid],
    "GET /resource_pools": list[Uuid | accounts.Pool],
    "POST /resource_pools": accounts.Pool | list[accounts.Pool],
    "(GET|PATCH) /resource_pools/{}": accounts.Pool,
    "GET /resource_pool_usage": list[accounts.Usage],
    "GET /resource_pool_usage/{}": accounts.Usage,
    "GET /node_definitions/?": list[definitions.NodeDefinition],
    "GET /simplified_node_definitions": list[definitions.SimplifiedDefinition],
    "GET /node_definitions/{}": definitions.NodeDefinition | str,
    "(POST|PUT) /(node|image)_definitions/?": str,
    "DELETE /(node|image)_definitions/{}": NOTHING,
    "PUT /node_definitions/{}/read_only": definitions.NodeDefinition,
    "GET /node_definitions/{}/image_definitions": list[definitions.ImageDefinition],
    "GET /image_definitions/?": list[definitions.ImageDefinition],
    "GET /image_definitions/{}": definitions.ImageDefinition | str,
    "PUT /image_definitions/{}/read_only": definitions.ImageDefinition,
    "GET /list_image_definition_drop_folder/?": list[str],
    "POST /images/upload": str,
    "DELETE /images/manage/{}": str,
    "GET /licensing": accounts.Licensing,
    "GET /licensing/features": list[accounts.Feature],
    "PATCH /licensing/features": NOTHING,
    "GET /licensing/tech_support": TEXT,
    "(POST|PUT|DELETE) /licensing/(registration|registration/renew|authorization/renew|deregistration)": NOTHING,
    "PUT /licensing/(product_license|transport|reservation/mode)": NOTHING,
    "(GET|POST|DELETE) /licensing/reservation/(confirmation_code|return_code|request|complete|discard|release)": str,
    "DELETE /licensing/reservation/(cancel|confirmation_code|return_code)": NOTHING,
}
_TABLE: Final = {**_LAB, **_ELEMENTS, **_CONTROLLER, **_ACCOUNTS}
_PATTERNS: Final = [(re.compile(key.replace("{}", "[^/]+")), shape) for key, shape in _TABLE.items()]
_CREATED: Final = frozenset({"POST /users", "POST /groups"})
_ERROR: Final = 400


class UnlikeCmlError(Exception):
    """An answer is not of the shape that CML's answers have."""


def shapes_of(method: str, path: str) -> list[Any]:
    """Return the shapes of a request's answer; more than one where the path alone does not decide."""
    return [shape for pattern, shape in _PATTERNS if pattern.fullmatch(f"{method} {path}")]


def check(method: str, path: str, status: int, kind: str, body: bytes) -> None:
    """Check an answer.

    Args:
        method: Of the request.
        path: Of the request, without `/api/v0` and without query.
        status: Of the answer.
        kind: Its media type.
        body: Its body.

    Raises:
        UnlikeCmlError: It differs.
    """
    if status >= _ERROR:
        _decode(body, kind, Problem)
        if msgspec.json.decode(body)["code"] != status:
            raise UnlikeCmlError(f"the code is not {status}: {body[:200]!r}")
        return
    shapes = shapes_of(method, path)
    if not shapes:
        raise UnlikeCmlError("the table has no such answer")
    faults = []
    for shape in shapes:
        try:
            _check_shape(f"{method} {path}", status, kind, body, shape)
        except UnlikeCmlError as error:
            faults.append(str(error))
        else:
            return
    raise UnlikeCmlError("; ".join(faults))


def _check_shape(request: str, status: int, kind: str, body: bytes, shape: Any) -> None:
    if shape is NOTHING:
        if status != 204 or body:
            raise UnlikeCmlError(f"{status} with {len(body)} bytes, expected an empty 204")
        return
    if status != (wanted := 201 if request in _CREATED else 200):
        raise UnlikeCmlError(f"status {status}, expected {wanted}")
    if shape is TEXT or shape is BYTES:
        return
    if kind == "application/yaml":
        document = yaml.safe_load(body)
        if shape is not YAML:
            _convert(document, shape)
        elif not isinstance(document, dict):
            raise UnlikeCmlError("it is not a YAML mapping")
        return
    if shape is YAML:
        raise UnlikeCmlError(f"it is {kind}, expected YAML")
    _decode(body, kind, shape)


def _decode(body: bytes, kind: str, shape: Any) -> None:
    if kind != "application/json":
        raise UnlikeCmlError(f"it is {kind}, expected JSON")
    try:
        _convert(msgspec.json.decode(body), shape)
    except msgspec.DecodeError as error:
        raise UnlikeCmlError(f"{error}: {body[:200]!r}") from error


def _convert(document: Any, shape: Any) -> None:
    """Check a document; of a union of arrays or of text and object, each member alone."""
    try:
        msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        raise UnlikeCmlError(str(error)) from error
