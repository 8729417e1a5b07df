"""Administration: maintenance, notices, connectors, telemetry, repositories."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from vkpsim.cml.calls import Call, Route
from vkpsim.cml.errors import CmlError, E, invalid
from vkpsim.cml.world import editing
from vkpsim.cml.world.topology import Tag, parse


class Maintenance(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of the maintenance mode."""

    maintenance_mode: bool | UnsetType = UNSET
    notice: str | UnsetType | None = UNSET


class NoticeChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a notice."""

    level: str | UnsetType = UNSET
    label: str | UnsetType = UNSET
    content: str | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    acknowledged: dict[str, bool] | UnsetType = UNSET
    groups: list[str] | UnsetType | None = UNSET


class NewRepository(msgspec.Struct, forbid_unknown_fields=True):
    """A repository of labs."""

    url: str
    name: str
    folder: str


def maintenance(call: Call) -> dict[str, Any]:
    """Show the maintenance mode; needs no token."""
    system = call.sim.system
    notice = system.notices.get(system.maintenance_notice or "")
    return {
        "maintenance_mode": system.maintenance,
        "notice": system.maintenance_notice,
        "resolved_notice": notice,
    }


def change_maintenance(call: Call) -> dict[str, Any]:
    """Switch the maintenance mode, or choose its notice."""
    call.require_admin()
    given = call.read(Maintenance)
    if given.maintenance_mode is not UNSET:
        call.sim.system.maintenance = given.maintenance_mode
    if given.notice is not UNSET:
        call.sim.system.maintenance_notice = given.notice
    return maintenance(call)


def list_notices(call: Call) -> list[dict[str, Any]]:
    """Show all notices."""
    return list(call.sim.system.notices.values())


def add_notice(call: Call) -> dict[str, Any]:
    """Add a notice."""
    call.require_admin()
    notice = {"id": call.sim.new_id(), "level": "INFO", "label": "", "content": "", "enabled": False}
    notice |= {"acknowledged": {}, "groups": None}
    call.sim.system.notices[str(notice["id"])] = notice
    return _apply_notice(notice, call.read(NoticeChange))


def _apply_notice(notice: dict[str, Any], given: NoticeChange) -> dict[str, Any]:
    notice.update({name: getattr(given, name) for name in given.__struct_fields__ if getattr(given, name) is not UNSET})
    return notice


def _notice(call: Call) -> dict[str, Any]:
    found = call.sim.system.notices.get(call.path["notice"])
    if found is None:
        raise CmlError(E.NOTICE_NOT_FOUND, id=call.path["notice"])
    return found


def get_notice(call: Call) -> dict[str, Any]:
    """Show a notice."""
    return _notice(call)


def change_notice(call: Call) -> dict[str, Any]:
    """Change a notice."""
    return _apply_notice(_notice(call), call.read(NoticeChange))


def delete_notice(call: Call) -> None:
    """Remove a notice."""
    call.require_admin()
    del call.sim.system.notices[_notice(call)["id"]]


def list_connectors(call: Call) -> list[dict[str, Any]]:
    """Show the bridges that external connectors may use."""
    return list(call.sim.system.connectors.values())


def push_connectors(call: Call) -> list[dict[str, Any]]:
    """Synchronise bridges with the host; the simulator has no other."""
    call.require_admin()
    return list_connectors(call)


class ConnectorChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a bridge that can be changed."""

    label: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | UnsetType = UNSET
    protected: bool | UnsetType = UNSET
    snooped: bool | UnsetType = UNSET
    tags: list[Tag] | UnsetType = UNSET


def get_connector(call: Call) -> dict[str, Any]:
    """Show a bridge."""
    found = call.sim.system.connectors.get(call.path["connector"])
    if found is None:
        raise CmlError(E.CONNECTOR_NOT_FOUND, id=call.path["connector"])
    return found


def change_connector(call: Call) -> dict[str, Any]:
    """Change a bridge's label, tags or protection."""
    call.require_admin()
    found = get_connector(call)
    given = msgspec.to_builtins(call.read(ConnectorChange))
    found.update(given)
    found["operational"].update({name: given[name] for name in ("label", "protected", "snooped") if name in given})
    return found


def delete_connector(call: Call) -> None:
    """Forget a bridge."""
    call.require_admin()
    del call.sim.system.connectors[get_connector(call)["id"]]


def telemetry(call: Call) -> dict[str, Any]:
    """Show whether telemetry is allowed: a word since 2.10, true, false or null before."""
    if call.sim.at_least(2, 10):
        return {"opt_in": call.sim.system.telemetry}
    allowed = {"accepted": True, "declined": False}.get(call.sim.system.telemetry)
    return {"opt_in": allowed, "show_modal": allowed is None}


def change_telemetry(call: Call) -> dict[str, Any]:
    """Allow or forbid telemetry; the client writes the word in capitals and reads it in small letters."""
    call.require_admin()
    wanted = call.read(dict[str, Any]).get("opt_in")
    words = {True: "accepted", False: "declined", None: "unset"}
    call.sim.system.telemetry = wanted.lower() if isinstance(wanted, str) else words[wanted]
    return telemetry(call)


def telemetry_events(_call: Call) -> list[Any]:
    """List telemetry events: none."""
    return []


SAMPLE = b"""lab: {version: 0.1.0, title: Two hosts, description: A sample, notes: ''}
nodes:
- {id: n0, label: h0, node_definition: alpine, x: 0, y: 0, interfaces: [{id: i0, type: physical, slot: 0}]}
- {id: n1, label: h1, node_definition: alpine, x: 200, y: 0, interfaces: [{id: i0, type: physical, slot: 0}]}
links: [{id: l0, n1: n0, i1: i0, n2: n1, i2: i0}]
"""


def sample_labs(_call: Call) -> dict[str, Any]:
    """List the sample labs."""
    return {"two-hosts": {"title": "Two hosts", "description": "A sample", "version": "0.1.0"}}


def import_sample(call: Call) -> str:
    """Import a sample lab; the answer is its id alone."""
    if call.path["sample"] not in {"two-hosts", "Two hosts"}:
        raise CmlError(E.LAB_NOT_FOUND, id=call.path["sample"])
    topology = parse(SAMPLE, call.sim.topology_versions)
    lab = editing.import_topology(call.sim.world, call.now, call.user.id, topology, None)
    call.imported = lab
    return lab.id


def list_repositories(call: Call) -> list[dict[str, Any]]:
    """Show the lab repositories."""
    return list(call.sim.system.repositories.values())


def add_repository(call: Call) -> dict[str, Any]:
    """Add a lab repository."""
    call.require_admin()
    given = call.read(NewRepository)
    repository = {"id": call.sim.new_id(), "url": given.url, "name": given.name, "folder": given.folder}
    call.sim.system.repositories[repository["id"]] = repository
    return repository


def refresh_repositories(call: Call) -> dict[str, Any]:
    """Fetch lab repositories; the simulator fetches nothing."""
    return {str(one["name"]): "Already up to date." for one in call.sim.system.repositories.values()}


def delete_repository(call: Call) -> None:
    """Remove a lab repository."""
    call.require_admin()
    if call.sim.system.repositories.pop(call.path["repository"], None) is None:
        raise CmlError(E.REPOSITORY_NOT_FOUND, id=call.path["repository"])


def auth_config(call: Call) -> dict[str, Any]:
    """Show where users come from."""
    call.require_admin()
    return call.sim.system.auth_config


def change_auth_config(call: Call) -> None:
    """Set where users come from; the simulator still uses its own."""
    call.require_admin()
    given = call.read(dict[str, Any])
    if given.get("method", "local") not in {"local", "ldap", "radius"}:
        raise invalid("Input should be 'local', 'ldap' or 'radius'", ("body", "method"), "enum")
    call.sim.system.auth_config.update(given)


ROUTES = (
    Route("GET", "/system/maintenance_mode", maintenance, open=True),
    Route("PATCH", "/system/maintenance_mode", change_maintenance),
    Route("GET", "/system/notices", list_notices),
    Route("POST", "/system/notices", add_notice),
    Route("GET", "/system/notices/{notice}", get_notice),
    Route("PATCH", "/system/notices/{notice}", change_notice),
    Route("DELETE", "/system/notices/{notice}", delete_notice),
    Route("GET", "/system/external_connectors", list_connectors),
    Route("PUT", "/system/external_connectors", push_connectors),
    Route("GET", "/system/external_connectors/{connector}", get_connector),
    Route("PATCH", "/system/external_connectors/{connector}", change_connector),
    Route("DELETE", "/system/external_connectors/{connector}", delete_connector),
    Route("GET", "/system/auth/config", auth_config),
    Route("PATCH", "/system/auth/config", change_auth_config),
    Route("GET", "/telemetry", telemetry),
    Route("PUT", "/telemetry", change_telemetry),
    Route("GET", "/telemetry/events", telemetry_events),
    Route("GET", "/sample/labs", sample_labs),
    Route("PUT", "/sample/labs/{sample}", import_sample),
    Route("GET", "/lab_repos", list_repositories),
    Route("POST", "/lab_repos", add_repository),
    Route("PUT", "/lab_repos/refresh", refresh_repositories),
    Route("DELETE", "/lab_repos/{repository}", delete_repository),
)
