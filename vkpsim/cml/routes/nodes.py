"""Nodes: add, change, start, stop, wipe, delete, consoles, configuration."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from vkpsim.cml.calls import Call, Route
from vkpsim.cml.consoles import console, shell
from vkpsim.cml.errors import CmlError, E, invalid
from vkpsim.cml.routes import views
from vkpsim.cml.world import editing
from vkpsim.cml.world.definitions import image_id
from vkpsim.cml.world.model import ConfigFile, Lab, Node, settled
from vkpsim.cml.world.rules import NodeOp
from vkpsim.cml.world.states import PROGRESS, RUNNING
from vkpsim.cml.world.topology import Coordinate, CpuLimit, Cpus, Label, Tag

Count = Annotated[int, msgspec.Meta(ge=0)]


class NodeChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of a node that can be changed."""

    label: Label | UnsetType = UNSET
    x: Coordinate | UnsetType = UNSET
    y: Coordinate | UnsetType = UNSET
    hide_links: bool | UnsetType = UNSET
    tags: list[Tag] | UnsetType = UNSET
    image_definition: str | UnsetType | None = UNSET
    ram: Count | UnsetType | None = UNSET
    cpus: Cpus | UnsetType | None = UNSET
    cpu_limit: CpuLimit | UnsetType | None = UNSET
    data_volume: Count | UnsetType | None = UNSET
    boot_disk_size: Count | UnsetType | None = UNSET
    parameters: dict[str, str | None] | UnsetType = UNSET
    configuration: str | list[ConfigFile] | dict[str, str] | UnsetType | None = UNSET
    pinned_compute_id: str | UnsetType | None = UNSET
    resource_pool: str | UnsetType | None = UNSET
    priority: Count | UnsetType | None = UNSET
    pyats: dict[str, str | None] | UnsetType = UNSET


class NewNode(NodeChange, forbid_unknown_fields=True, kw_only=True):
    """The fields of a new node; before 2.10 it needs a label and a place."""

    node_definition: str


DECORATION = frozenset({"label", "x", "y", "hide_links", "tags", "priority", "pyats"})
"""The fields that can be changed in every state."""


def list_all(call: Call) -> list[dict[str, Any]]:
    """Show all nodes of all visible labs in one answer."""
    flags = _flags(call)
    drawn = []
    for lab in call.visible_labs():
        call.shown.append(lab)
        drawn += [views.node_json(call.sim, node, **flags) for node in lab.nodes.values()]
    return drawn


def list_nodes(call: Call) -> list[Any]:
    """List the ids of a lab's nodes, or with `data` the nodes themselves."""
    lab = call.lab()
    if not call.flag("data"):
        return list(lab.nodes)
    call.shown.append(lab)
    flags = _flags(call)
    return [views.node_json(call.sim, node, **flags) for node in lab.nodes.values()]


def _flags(call: Call) -> dict[str, Any]:
    return {
        "operational": bool(call.flag("operational")),
        "exclude_configurations": call.flag("exclude_configurations"),
    }


def add_node(call: Call) -> dict[str, str]:
    """Add a node, also to a running lab."""
    lab = call.lab("lab_edit")
    given = call.read(NewNode)
    for name in ("label", "x", "y") if not call.sim.at_least(2, 10) else ():
        if getattr(given, name) is UNSET:
            raise invalid("Field required", ("body", name), "missing")
    taken = {node.label for node in lab.nodes.values()}
    label = editing.free_label(taken, given.node_definition) if given.label is UNSET else given.label
    node = Node(id=call.sim.new_id(), lab=lab.id, label=label, node_definition=given.node_definition)
    _apply(call, lab, node, given)
    if given.configuration is UNSET or given.configuration is None:
        editing.configure(call.sim.world, node, call.sim.world.definition(node.node_definition).day0 or None)
    populate = bool(call.flag("populate_interfaces"))
    return {"id": editing.add_node(call.sim.world, call.now, lab, node, populate=populate).id}


def get_node(call: Call) -> dict[str, Any]:
    """Show a node."""
    _, node = call.node()
    return views.node_json(call.sim, node, **_flags(call))


def change_node(call: Call) -> str:
    """Change a node: label, position and tags in every state, all else only before the first start or after a wipe."""
    lab, node = call.node("lab_edit")
    given = call.read(NodeChange)
    names = {name for name in given.__struct_fields__ if getattr(given, name) is not UNSET}
    if names - DECORATION:
        call.sim.world.check(NodeOp.CONFIGURE, node)
    _apply(call, lab, node, given)
    editing.touch(call.sim.world, call.now, lab, "MODIFIED", "Node", node.id)
    editing.refresh_smart_annotations(call.sim.world, lab)
    return node.id


def _apply(call: Call, lab: Lab, node: Node, given: NodeChange) -> None:
    if given.label is not UNSET:
        editing.check_label(lab, node, given.label)
    for name in given.__struct_fields__:
        value = getattr(given, name)
        if value is UNSET or name in {"node_definition", "configuration", "parameters"}:
            continue
        if name in {"priority", "pyats"} and not call.sim.at_least(2, 10):
            raise invalid("Extra inputs are not permitted", ("body", name), "extra_forbidden")
        setattr(node, name, value)
    if given.parameters is not UNSET:
        merged = node.parameters | given.parameters
        node.parameters = {key: value for key, value in merged.items() if value is not None}
    if isinstance(given.configuration, dict):
        file = ConfigFile(given.configuration.get("name", "Main"), given.configuration.get("content", ""))
        editing.configure(call.sim.world, node, file)
    elif given.configuration is not UNSET:
        editing.configure(call.sim.world, node, given.configuration)


def delete_node(call: Call) -> None:
    """Delete a node that was wiped or never started, with its interfaces and links."""
    lab, node = call.node("lab_edit")
    editing.remove_node(call.sim.world, call.now, lab, node)


def node_state(call: Call) -> dict[str, str]:
    """Return the state of a node and its boot progress."""
    _, node = call.node()
    state = call.sim.world.state(node)
    return {"state": state, "progress": PROGRESS[state]}


def start_node(call: Call) -> None:
    """Start a node."""
    lab, node = call.node("lab_exec")
    call.sim.check_pool(call.user.id, lab, [node.id] if node.held is None else [])
    call.sim.world.start_node(call.now, lab, node)


def stop_node(call: Call) -> None:
    """Stop a node."""
    lab, node = call.node("lab_exec")
    call.sim.world.stop_node(call.now, lab, node)


def wipe_disks(call: Call) -> None:
    """Wipe a stopped node; other nodes of the lab may run."""
    lab, node = call.node("lab_exec")
    call.sim.world.wipe_node(call.now, lab, node)


def check_if_converged(call: Call) -> bool:
    """Return whether a node has converged: it is not in transition."""
    _, node = call.node()
    return settled(node)


def extract_configuration(call: Call) -> str:
    """Replace the stored configuration by the running one."""
    lab, node = call.node("lab_edit")
    world = call.sim.world
    world.check(NodeOp.EXTRACT, node)
    if not world.definition(node.node_definition).extracts:
        raise CmlError(E.NOT_EXTRACTABLE, id=node.id, state=node.state)
    editing.configure(world, node, shell.running_configuration(node))
    node.learned = []
    editing.touch(world, call.now, lab, "MODIFIED", "Node", node.id)
    return "Node configuration extracted"


def clone_image(call: Call) -> dict[str, Any]:
    """Make a new image definition from the disk of a stopped node."""
    _, node = call.node("lab_edit")
    call.sim.world.check(NodeOp.CLONE, node)
    definition = call.sim.world.definition(node.node_definition)
    image: dict[str, Any] = {
        "id": f"{image_id(definition)}-{call.sim.new_id()[:8]}",
        "node_definition_id": definition.id,
        "label": f"Clone of {node.label}",
        "description": "",
        "disk_image": f"{node.id}.qcow2",
        "read_only": False,
        "schema_version": "0.0.1",
    }
    call.sim.system.image_definitions[image["id"]] = image
    return image


def console_key(call: Call) -> str:
    """Return the key by which a web socket reaches a serial console."""
    _, node = call.node("lab_exec")
    line = _line(call.query.get("line", "0"))
    call.sim.world.check(NodeOp.CONSOLE, node, line=line)
    if line >= len(node.console_keys):
        raise CmlError(E.CONSOLE_NOT_FOUND, id=node.id, line=line)
    return node.console_keys[line]


def vnc_key(call: Call) -> str:
    """Return the key of a node's VNC server."""
    _, node = call.node("lab_exec")
    if node.vnc_key is None or call.sim.world.state(node) not in RUNNING:
        raise CmlError(E.VNC_NOT_FOUND, id=node.id)
    return node.vnc_key


def console_log(call: Call) -> str:
    """Return the history of a serial console; a stopped node still has it."""
    _, node = call.node()
    line = _line(call.path["line"])
    if line >= call.sim.world.definition(node.node_definition).serial_ports:
        raise CmlError(E.NO_SERIAL_PORT)
    lines = call.query.get("lines")
    return console.log(node, line, call.now, None if lines is None else _line(lines))


def _line(text: str) -> int:
    if not text.isdecimal():
        raise invalid("Input should be a valid integer", ("query", "line"), "int_parsing")
    return int(text)


def layer3_addresses(call: Call) -> dict[str, Any]:
    """Show the addresses of a node."""
    lab, node = call.node()
    if node.node_definition == "external_connector":
        raise CmlError(E.NO_L3_ADDRESSES)
    return views.layer3_json(call.sim, lab, node)


def clear_layer3_addresses(call: Call) -> None:
    """Forget snooped addresses; the simulator derives them, so they come back at once."""
    call.node("lab_exec")


def node_interfaces(call: Call) -> list[Any]:
    """List the ids of a node's interfaces, or with `data` the interfaces themselves."""
    lab, node = call.node()
    if not call.flag("data"):
        return list(node.interfaces)
    operational = bool(call.flag("operational"))
    return [
        views.interface_json(lab, node, interface, operational=operational) for interface in node.interfaces.values()
    ]


ROUTES = (
    Route("GET", "/nodes", list_all),
    Route("GET", "/labs/{lab}/nodes", list_nodes),
    Route("POST", "/labs/{lab}/nodes", add_node),
    Route("GET", "/labs/{lab}/nodes/{node}", get_node),
    Route("PATCH", "/labs/{lab}/nodes/{node}", change_node),
    Route("DELETE", "/labs/{lab}/nodes/{node}", delete_node),
    Route("GET", "/labs/{lab}/nodes/{node}/state", node_state),
    Route("PUT", "/labs/{lab}/nodes/{node}/state/start", start_node),
    Route("PUT", "/labs/{lab}/nodes/{node}/state/stop", stop_node),
    Route("PUT", "/labs/{lab}/nodes/{node}/wipe_disks", wipe_disks),
    Route("GET", "/labs/{lab}/nodes/{node}/check_if_converged", check_if_converged),
    Route("PUT", "/labs/{lab}/nodes/{node}/extract_configuration", extract_configuration),
    Route("PUT", "/labs/{lab}/nodes/{node}/clone_image", clone_image),
    Route("GET", "/labs/{lab}/nodes/{node}/keys/console", console_key),
    Route("GET", "/labs/{lab}/nodes/{node}/keys/vnc", vnc_key),
    Route("GET", "/labs/{lab}/nodes/{node}/consoles/{line}/log", console_log),
    Route("GET", "/labs/{lab}/nodes/{node}/layer3_addresses", layer3_addresses),
    Route("DELETE", "/labs/{lab}/nodes/{node}/layer3_addresses", clear_layer3_addresses),
    Route("GET", "/labs/{lab}/nodes/{node}/interfaces", node_interfaces),
)
