"""Further requests about a lab: events, counters, addresses, sharing, finding nodes."""

import dataclasses
from typing import Any

from vkpsim.cml.calls import Call, Route, Text
from vkpsim.cml.routes import views
from vkpsim.cml.routes.labs import Associations, associate, drawn, old_permissions
from vkpsim.cml.world import editing
from vkpsim.cml.world.model import Lab
from vkpsim.cml.world.states import RUNNING


def events(call: Call) -> list[dict[str, Any]]:
    """List the events of a lab."""
    return views.events_json(call.sim, call.lab().id)


def simulation_stats(call: Call) -> dict[str, Any]:
    """Show counters of running nodes and their links; the numbers grow with time and mean nothing."""
    lab = call.lab()
    nodes = {
        node.id: {
            "cpu_usage": 1.5,
            "block0_rd_bytes": int((call.now - node.boots[-1].started_at) * 4096),
            "block0_wr_bytes": int((call.now - node.boots[-1].started_at) * 1024),
        }
        for node in lab.nodes.values()
        if node.state in RUNNING
    }
    counters = {"readbytes": 0, "readpackets": 0, "writebytes": 0, "writepackets": 0, "drops": 0}
    return {"nodes": nodes, "links": {link.id: counters for link in lab.links.values() if link.state == "STARTED"}}


def layer3_addresses(call: Call) -> dict[str, Any]:
    """Show the addresses of all booted nodes."""
    lab = call.lab()
    found = {node.id: views.layer3_json(call.sim, lab, node) for node in lab.nodes.values()}
    return {node_id: addresses for node_id, addresses in found.items() if addresses["interfaces"]}


def clear_layer3_addresses(call: Call) -> None:
    """Forget snooped addresses; the simulator derives them, so they come back at once."""
    call.lab("lab_exec")


def lab_pools(call: Call) -> list[str]:
    """List the resource pools that the lab's nodes use."""
    return sorted({node.resource_pool for node in call.lab().nodes.values() if node.resource_pool})


def bootstrap(call: Call) -> None:
    """Write a day-0 configuration for every node that has none."""
    _bootstrap(call, call.lab("lab_edit"))


def build_configurations(call: Call) -> None:
    """Do the same for the lab of the query, as the client of 2.8 asks for it."""
    named = dataclasses.replace(call, path={"lab": call.query.get("lab_id", "")})
    _bootstrap(call, named.lab("lab_edit"))


def _bootstrap(call: Call, lab: Lab) -> None:
    for node in lab.nodes.values():
        definition = call.sim.world.definition(node.node_definition)
        if not node.configuration and definition.extracts:
            editing.configure(call.sim.world, node, f"hostname {node.label}\n")


def associations(call: Call) -> dict[str, Any]:
    """Show with whom the lab is shared."""
    lab = call.lab()
    return {
        "groups": [{"id": key, "permissions": granted} for key, granted in lab.group_permissions.items()],
        "users": [{"id": key, "permissions": granted} for key, granted in lab.user_permissions.items()],
    }


def change_associations(call: Call) -> dict[str, Any]:
    """Share the lab."""
    associate(call.lab("lab_admin"), call.read(Associations))
    return associations(call)


def lab_groups(call: Call) -> list[dict[str, str]]:
    """Show the groups of a lab in the old form."""
    groups: list[dict[str, str]] = drawn(call, call.lab())["groups"]
    return groups


def change_lab_groups(call: Call) -> list[dict[str, str]]:
    """Set the groups of a lab in the old form."""
    lab = call.lab("lab_admin")
    lab.group_permissions = {
        group["id"]: old_permissions(group.get("permission", "")) for group in call.read(list[dict[str, str]])
    }
    return lab_groups(call)


def connector_mappings(call: Call) -> list[dict[str, Any]]:
    """Show which bridge each key of the lab's external connectors stands for."""
    lab = call.lab()
    keys = {
        node.configuration[0].content if node.configuration else "NAT"
        for node in lab.nodes.values()
        if node.node_definition == "external_connector"
    }
    devices = {connector["label"]: connector["device_name"] for connector in call.sim.system.connectors.values()}
    known = {key: devices.get(key) for key in sorted(keys)} | lab.connector_mappings
    return [{"key": key, "device_name": device} for key, device in known.items()]


def change_connector_mappings(call: Call) -> list[dict[str, Any]]:
    """Set which bridge a key stands for."""
    lab = call.lab("lab_edit")
    for mapping in call.read(list[dict[str, str | None]]):
        lab.connector_mappings[str(mapping["key"])] = mapping.get("device_name")
    return connector_mappings(call)


def find_node(call: Call) -> str | Text:
    """Find a node by its label; JSON null if there is none."""
    for node in call.lab().nodes.values():
        if node.label == call.path["query"]:
            return node.id
    return Text("null", "application/json")


def find_tagged(call: Call) -> list[str]:
    """Find the nodes that have a tag."""
    return [node.id for node in call.lab().nodes.values() if call.path["query"] in node.tags]


ROUTES = (
    Route("GET", "/labs/{lab}/events", events),
    Route("GET", "/labs/{lab}/simulation_stats", simulation_stats),
    Route("GET", "/labs/{lab}/layer3_addresses", layer3_addresses),
    Route("DELETE", "/labs/{lab}/layer3_addresses", clear_layer3_addresses),
    Route("GET", "/labs/{lab}/resource_pools", lab_pools),
    Route("PUT", "/labs/{lab}/bootstrap", bootstrap),
    Route("GET", "/labs/{lab}/bootstrap", bootstrap),
    Route("GET", "/build_configurations", build_configurations),
    Route("GET", "/labs/{lab}/associations", associations),
    Route("PATCH", "/labs/{lab}/associations", change_associations),
    Route("GET", "/labs/{lab}/groups", lab_groups),
    Route("PUT", "/labs/{lab}/groups", change_lab_groups),
    Route("GET", "/labs/{lab}/connector_mappings", connector_mappings),
    Route("PATCH", "/labs/{lab}/connector_mappings", change_connector_mappings),
    Route("GET", "/labs/{lab}/find/node/label/{query}", find_node),
    Route("GET", "/labs/{lab}/find_all/node/tag/{query}", find_tagged),
)
