"""Labs: create, import, start, stop, wipe, delete, and their states."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from vkpsim.cml.calls import PERMISSIONS, Call, Route, Text
from vkpsim.cml.errors import invalid
from vkpsim.cml.routes import views
from vkpsim.cml.world import editing
from vkpsim.cml.world.model import Lab
from vkpsim.cml.world.states import NodeState
from vkpsim.cml.world.topology import Description, Notes, Title, parse, render


class Association(msgspec.Struct, forbid_unknown_fields=True):
    """The permissions of a user or a group on a lab."""

    id: str
    permissions: list[str]


class Associations(msgspec.Struct, forbid_unknown_fields=True):
    """With whom a lab is shared."""

    groups: list[Association] | UnsetType = UNSET
    users: list[Association] | UnsetType = UNSET


class LabChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a lab that can be set."""

    title: Title | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    notes: Notes | UnsetType = UNSET
    owner: str | UnsetType = UNSET
    groups: list[dict[str, str]] | UnsetType = UNSET
    associations: Associations | UnsetType = UNSET
    autostart: dict[str, Any] | UnsetType = UNSET
    node_staging: dict[str, Any] | UnsetType = UNSET


def drawn(call: Call, lab: Lab) -> dict[str, Any]:
    """Render a lab for the user who asks."""
    call.shown.append(lab)
    return views.lab_json(call.sim, lab, [name for name in PERMISSIONS if name in call.permissions(lab)])


def list_labs(call: Call) -> list[str]:
    """List the ids of the user's own and shared labs; `show_all` gives an administrator all."""
    own = call.user.id
    labs = call.visible_labs()
    if not call.flag("show_all") and call.user.admin:
        labs = [lab for lab in labs if lab.owner == own or own in lab.user_permissions or _in_group(call, lab)]
    return [lab.id for lab in labs]


def _in_group(call: Call, lab: Lab) -> bool:
    groups = call.sim.accounts.groups
    return any(group in groups and call.user.id in groups[group].members for group in lab.group_permissions)


def create_lab(call: Call) -> dict[str, Any]:
    """Create an empty lab."""
    change = call.read(LabChange) if call.body else LabChange()
    title = None if change.title is UNSET else change.title
    lab = editing.new_lab(call.sim.world, call.now, call.user.id, title)
    _apply(call, lab, change)
    return drawn(call, lab)


def import_lab(call: Call) -> dict[str, Any]:
    """Import a topology file; Cisco's client sends it without a Content-Type."""
    title = call.query.get("title")
    if title is not None and not 1 <= len(title) <= 64:  # noqa: PLR2004 (CML's limit)
        raise invalid("String should have 1 to 64 characters", ("query", "title"), "string_too_long")
    topology = parse(call.body, call.sim.topology_versions)
    unknown = {node.node_definition for node in topology.nodes} - set(call.sim.world.definitions)
    warnings = [f"Unknown node definition: {name}" for name in sorted(unknown)]
    lab = editing.import_topology(call.sim.world, call.now, call.user.id, topology, title)
    call.imported = lab
    return {"id": lab.id, "warnings": warnings or None}


def get_lab(call: Call) -> dict[str, Any]:
    """Show a lab without its elements."""
    return drawn(call, call.lab())


def change_lab(call: Call) -> dict[str, Any]:
    """Change title, notes, owner or sharing; allowed in every state."""
    lab = call.lab("lab_edit")
    _apply(call, lab, call.read(LabChange))
    return drawn(call, lab)


def _apply(call: Call, lab: Lab, change: LabChange) -> None:
    for name in ("autostart", "node_staging"):
        if getattr(change, name) is not UNSET and not call.sim.at_least(2, 10):
            raise invalid("Extra inputs are not permitted", ("body", name), "extra_forbidden")
    if change.title is not UNSET:
        lab.title = change.title
    if change.description is not UNSET:
        lab.description = change.description
    if change.notes is not UNSET:
        lab.notes = change.notes
    if change.owner is not UNSET:
        lab.owner = call.sim.accounts.user(change.owner).id
    if change.autostart is not UNSET:
        lab.autostart = change.autostart
    if change.node_staging is not UNSET:
        lab.node_staging = change.node_staging
    if change.groups is not UNSET:
        lab.group_permissions = {group["id"]: old_permissions(group.get("permission", "")) for group in change.groups}
    if change.associations is not UNSET:
        associate(lab, change.associations)
    editing.touch(call.sim.world, call.now, lab, "MODIFIED", "Lab", lab.id)


def old_permissions(permission: str) -> list[str]:
    """Translate a permission of the old form, `read_only` or `read_write`."""
    return ["lab_view", "lab_exec", "lab_edit"] if permission == "read_write" else ["lab_view"]


def associate(lab: Lab, given: Associations) -> None:
    """Share a lab with users and groups."""
    if given.users is not UNSET:
        lab.user_permissions = {user.id: user.permissions for user in given.users if user.permissions}
    if given.groups is not UNSET:
        lab.group_permissions = {group.id: group.permissions for group in given.groups if group.permissions}


def delete_lab(call: Call) -> None:
    """Delete a lab that was wiped or never started."""
    call.sim.world.delete_lab(call.now, call.lab("lab_admin"))


def start_lab(call: Call) -> None:
    """Start the nodes that do not run."""
    lab = call.lab("lab_exec")
    idle = [node.id for node in lab.nodes.values() if node.state in {NodeState.DEFINED, NodeState.STOPPED}]
    call.sim.check_pool(call.user.id, lab, idle)
    call.sim.world.start_lab(call.now, lab)


def stop_lab(call: Call) -> None:
    """Stop all nodes."""
    call.sim.world.stop_lab(call.now, call.lab("lab_exec"))


def wipe_lab(call: Call) -> None:
    """Wipe all nodes of a stopped lab."""
    call.sim.world.wipe_lab(call.now, call.lab("lab_exec"))


def lab_state(call: Call) -> str:
    """Return the state, as a JSON string."""
    lab = call.lab()
    call.shown.append(lab)
    return lab.state


def check_if_converged(call: Call) -> bool:
    """Return whether the lab has converged: no element is in transition."""
    lab = call.lab()
    call.shown.append(lab)
    return lab.converged


def element_states(call: Call) -> dict[str, dict[str, str]]:
    """Return the states of all elements."""
    lab = call.lab()
    call.shown.append(lab)
    return views.element_states_json(call.sim, lab)


def topology(call: Call) -> dict[str, Any]:
    """Show a lab with all its elements."""
    lab = call.lab()
    call.shown.append(lab)
    return views.topology_json(call.sim, lab, exclude_configurations=call.flag("exclude_configurations"))


def download(call: Call) -> Text:
    """Export a lab as a topology file."""
    return Text(render(call.lab(), call.sim.topology_versions[-1]), "application/yaml")


def tile(call: Call) -> dict[str, Any]:
    """Show a lab with its elements, as the dashboard of labs does."""
    return _tile(call, call.lab())


def _tile(call: Call, lab: Lab) -> dict[str, Any]:
    elements = views.topology_json(call.sim, lab, exclude_configurations=True)
    del elements["lab"]
    return {**drawn(call, lab), "topology": elements}


def tiles(call: Call) -> dict[str, Any]:
    """Show all visible labs with their elements."""
    return {"lab_tiles": {lab.id: _tile(call, lab) for lab in call.visible_labs()}}


ROUTES = (
    Route("GET", "/labs", list_labs),
    Route("POST", "/labs", create_lab),
    Route("POST", "/import", import_lab),
    Route("GET", "/populate_lab_tiles", tiles),
    Route("GET", "/labs/{lab}", get_lab),
    Route("PATCH", "/labs/{lab}", change_lab),
    Route("DELETE", "/labs/{lab}", delete_lab),
    Route("PUT", "/labs/{lab}/start", start_lab),
    Route("PUT", "/labs/{lab}/stop", stop_lab),
    Route("PUT", "/labs/{lab}/wipe", wipe_lab),
    Route("PUT", "/labs/{lab}/state/start", start_lab),
    Route("PUT", "/labs/{lab}/state/stop", stop_lab),
    Route("PUT", "/labs/{lab}/state/wipe", wipe_lab),
    Route("GET", "/labs/{lab}/state", lab_state),
    Route("GET", "/labs/{lab}/check_if_converged", check_if_converged),
    Route("GET", "/labs/{lab}/lab_element_state", element_states),
    Route("GET", "/labs/{lab}/topology", topology),
    Route("GET", "/labs/{lab}/download", download),
    Route("GET", "/labs/{lab}/tile", tile),
)
