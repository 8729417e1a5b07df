"""Internal facts of the controller by category, for administrators."""

from collections.abc import Callable
from typing import Any, Final

from vkpsim.cml.calls import Call, Route
from vkpsim.cml.errors import CmlError, E
from vkpsim.cml.routes import views
from vkpsim.cml.routes.accounts import list_users
from vkpsim.cml.routes.definitions import image_ids_by_node_definition
from vkpsim.cml.world.model import Lab, Node

_QUEUED: Final = (
    *("label", "node_definition", "image_definition", "ram", "cpus", "cpu_limit", "data_volume", "boot_disk_size"),
    *("hide_links", "tags", "parameters", "pinned_compute_id", "x", "y"),
)


def licensing(call: Call) -> dict[str, Any]:
    """Show how many licensed nodes may run, and how many do."""
    host = call.sim.world.host
    started = host.used.licences
    return {"quota": host.total.licences, "started": started, "user_quota": None, "user_started": started}


def node_launch_queue(call: Call) -> list[dict[str, Any]]:
    """List the nodes that wait for a licence, CPU or memory."""
    return [
        {"id": node.id, "lab_id": node.lab, **{name: getattr(node, name) for name in _QUEUED}}
        for node in call.sim.world.queued()
    ]


def labs(call: Call) -> dict[str, Any]:
    """Show all labs with the states of their elements."""
    return {lab.id: _lab(call, lab) for lab in call.sim.world.labs.values()}


def _lab(call: Call, lab: Lab) -> dict[str, Any]:
    return {
        "created": views.stamp(lab.created),
        "allocated": lab.state == "STARTED",
        "nodes": {node.id: _node(call, node) for node in lab.nodes.values()},
        "links": {
            link.id: {"state": link.state, "interface_a": link.a, "interface_b": link.b} for link in lab.links.values()
        },
        "interfaces": {
            interface.id: {"label": interface.label, "state": interface.state, "node": interface.node}
            | ({} if interface.slot is None else {"slot": interface.slot})
            for interface in lab.interfaces()
        },
    }


def _node(call: Call, node: Node) -> dict[str, Any]:
    """Render a node with the seconds that its last run spent in each state."""
    times = {"QUEUED": 0, "STARTED": 0, "BOOTED": 0}
    if node.boots:
        boot = node.boots[-1]
        end = call.now if boot.ended_at is None else boot.ended_at
        times["STARTED"] = int(min(end, boot.booted_at) - boot.started_at)
        times["BOOTED"] = int(max(0.0, end - boot.booted_at))
    return {"label": node.label, "state": call.sim.world.state(node), "state_times": times}


def lab_events(call: Call) -> dict[str, Any]:
    """Show the events of all labs."""
    return {lab_id: views.events_json(call.sim, lab_id) for lab_id in call.sim.world.labs}


def node_definitions(call: Call) -> list[dict[str, Any]]:
    """List the node definitions with their images."""
    return [{"id": name, "images": images} for name, images in image_ids_by_node_definition(call).items()]


def startup_scheduler(call: Call) -> dict[str, bool]:
    """Show what the controller has loaded."""
    ready = call.sim.world.host.connected
    loaded = dict.fromkeys(("licensing_loaded", "core_driver_connected", "node_definitions_loaded"), True)
    return {**loaded, "lld_connected": ready, "lld_synced": ready, "system_ready": ready}


def nothing(_call: Call) -> dict[str, Any]:
    """Show nothing: the simulator has no such facts."""
    return {}


CATEGORIES: Final[dict[str, Callable[[Call], Any]]] = {
    "computes": nothing,
    "lab_events": lab_events,
    "labs": labs,
    "licensing": licensing,
    "node_definitions": node_definitions,
    "node_launch_queue": node_launch_queue,
    "services": nothing,
    "startup_scheduler": startup_scheduler,
    "user_list": list_users,
}


def diagnostics(call: Call) -> Any:
    """Show the facts of one category."""
    call.require_admin()
    category = CATEGORIES.get(call.path["category"])
    if category is None:
        raise CmlError(E.NO_SUCH_PATH)
    return category(call)


def all_diagnostics(call: Call) -> dict[str, Any]:
    """Show the facts of all categories, as the client of 2.8 asks for them."""
    call.require_admin()
    return {name: category(call) for name, category in CATEGORIES.items()}


ROUTES = (
    Route("GET", "/diagnostics", all_diagnostics),
    Route("GET", "/diagnostics/{category}", diagnostics),
)
