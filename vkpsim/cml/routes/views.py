"""CML's JSON of labs, nodes, interfaces and links. Pure."""

import zlib
from datetime import UTC, datetime
from typing import Any, Final

from vkpsim.cml.simulation import Simulation
from vkpsim.cml.world.definitions import image_id
from vkpsim.cml.world.model import Interface, Lab, Link, Node
from vkpsim.cml.world.states import PROGRESS, WireState
from vkpsim.cml.world.wires import links_of

_OF_A_RUN: Final = frozenset(
    {
        *("lab_id", "state", "boot_progress", "operational", "serial_consoles", "vnc_key", "compute_id"),
        *("pinned_compute_id", "resource_pool", "iol_app_id", "link_capture_key"),
    }
)
"""Keys of a node or link that a topology does not have."""


def stamp(at: float) -> str:
    """Write a time as CML does: `2025-12-06T11:11:28+00:00`."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def lab_json(sim: Simulation, lab: Lab, permissions: list[str]) -> dict[str, Any]:
    """Render a lab without its elements."""
    owner = sim.accounts.users.get(lab.owner)
    drawn = {
        "id": lab.id,
        "created": stamp(lab.created),
        "modified": stamp(lab.modified),
        "lab_title": lab.title,
        "lab_description": lab.description,
        "lab_notes": lab.notes,
        "owner": lab.owner,
        "owner_username": owner.username if owner else "",
        "owner_fullname": owner.fullname if owner else "",
        "state": lab.state,
        "node_count": len(lab.nodes),
        "link_count": len(lab.links),
        "groups": [
            {"id": group, "permission": "read_write" if "lab_edit" in granted else "read_only"}
            for group, granted in lab.group_permissions.items()
        ],
        "effective_permissions": permissions,
    }
    if sim.at_least(2, 10):
        drawn["autostart"] = {"enabled": False, "priority": None, "delay": None, **lab.autostart}
        drawn["node_staging"] = {
            "enabled": False,
            "start_remaining": True,
            "abort_on_failure": False,
            **lab.node_staging,
        }
    return drawn


def node_json(
    sim: Simulation, node: Node, *, operational: bool = False, exclude_configurations: bool | None = None
) -> dict[str, Any]:
    """Render a node.

    Args:
        sim: The controller.
        node: The node.
        operational: Whether to fill `operational`.
        exclude_configurations: True leaves the configuration out, False gives all files, None the main file's text.
    """
    world = sim.world
    state = world.state(node)
    consoles = [
        {"console_key": key, "label": f"Serial{line}", "device_number": line}
        for line, key in enumerate(node.console_keys)
    ]
    compute = world.host.id if node.placed else None
    drawn: dict[str, Any] = {
        "id": node.id,
        "lab_id": node.lab,
        "label": node.label,
        "x": node.x,
        "y": node.y,
        "node_definition": node.node_definition,
        "image_definition": node.image_definition,
        "ram": node.ram,
        "cpus": node.cpus,
        "cpu_limit": node.cpu_limit,
        "data_volume": node.data_volume,
        "boot_disk_size": node.boot_disk_size,
        "hide_links": node.hide_links,
        "tags": node.tags,
        "parameters": node.parameters,
        "state": state,
        "boot_progress": PROGRESS[state],
        "pinned_compute_id": node.pinned_compute_id,
        "operational": None,
        "serial_consoles": consoles,
        "vnc_key": node.vnc_key,
        "compute_id": compute,
        "resource_pool": node.resource_pool,
        "iol_app_id": None,
    }
    if exclude_configurations is None:
        drawn["configuration"] = node.configuration[0].content if node.configuration else None
    elif not exclude_configurations:
        drawn["configuration"] = node.configuration
    if operational and node.placed:
        definition = world.definition(node.node_definition)
        drawn["operational"] = {
            "boot_disk_size": node.boot_disk_size,
            "cpu_limit": 100 if node.cpu_limit is None else node.cpu_limit,
            "cpus": definition.cpus if node.cpus is None else node.cpus,
            "data_volume": node.data_volume,
            "ram": definition.ram_mib if node.ram is None else node.ram,
            "compute_id": compute,
            "image_definition": node.image_definition or image_id(definition),
            "vnc_key": node.vnc_key,
            "resource_pool": node.resource_pool,
            "iol_app_id": None,
            "serial_consoles": consoles,
        }
    if sim.at_least(2, 10):
        drawn["priority"] = node.priority
        drawn["pyats"] = node.pyats or {"username": None, "password": None, "enable_password": None}
    return drawn


def mac_of(node: Node, interface: Interface) -> str:
    """Return the MAC address of an interface; a wiped node gets new ones."""
    drawn = zlib.crc32(f"{interface.id}/{node.wipes}".encode()) & 0xFFFFFF
    return interface.mac_address or f"52:54:00:{drawn >> 16:02x}:{drawn >> 8 & 255:02x}:{drawn & 255:02x}"


def interface_json(lab: Lab, node: Node, interface: Interface, *, operational: bool = False) -> dict[str, Any]:
    """Render an interface."""
    drawn: dict[str, Any] = {
        "id": interface.id,
        "lab_id": lab.id,
        "node": node.id,
        "label": interface.label,
        "slot": interface.slot,
        "type": interface.type,
        "mac_address": interface.mac_address,
        "is_connected": interface.link is not None,
        "state": interface.state,
    }
    if operational:
        drawn["operational"] = None
        if node.placed:
            plugged = interface.state is WireState.STARTED
            port = 10000 + zlib.crc32(interface.id.encode()) % 40000
            drawn["operational"] = {
                "device_name": f"tap{interface.id[:8]}" if plugged else None,
                "mac_address": mac_of(node, interface),
                "src_udp_port": port if plugged else None,
                "dst_udp_port": port + 1 if plugged else None,
            }
    return drawn


def link_json(lab: Lab, link: Link) -> dict[str, Any]:
    """Render a link."""
    return {
        "id": link.id,
        "lab_id": lab.id,
        "label": link.label,
        "state": link.state,
        "link_capture_key": link.capture.key if link.capture and link.capture.stopped_at is None else "",
        "interface_a": link.a,
        "interface_b": link.b,
        "node_a": link.node_a,
        "node_b": link.node_b,
    }


def topology_json(sim: Simulation, lab: Lab, *, exclude_configurations: bool | None) -> dict[str, Any]:
    """Render a lab with all its elements, by their real ids: what a topology file has, and nothing of a run.

    Cisco's client sets each key of a node as an attribute, or takes it as an argument: that of 2.8 knows no
    `operational`, that of 2.9 needs an object there, and all before 2.10 lose an interface that names its node. Every
    client needs `interfaces` in every node, and both kinds of annotations together.
    """
    header: dict[str, Any] = {
        "version": sim.topology_versions[-1],
        "title": lab.title,
        "description": lab.description,
        "notes": lab.notes,
        "owner": lab.owner,
    }
    if sim.at_least(2, 10):
        header["node_staging"] = lab.node_staging
    return {
        "lab": header,
        "nodes": [
            _node_in_topology(node_json(sim, node, exclude_configurations=exclude_configurations), node)
            for node in lab.nodes.values()
        ],
        "links": [_link_in_topology(lab, link) for link in lab.links.values()],
        "annotations": list(lab.annotations.values()),
        "smart_annotations": list(lab.smart_annotations.values()),
    }


def _node_in_topology(drawn: dict[str, Any], node: Node) -> dict[str, Any]:
    interfaces = [_interface_in_topology(interface) for interface in node.interfaces.values()]
    return {key: value for key, value in drawn.items() if key not in _OF_A_RUN} | {"interfaces": interfaces}


def _interface_in_topology(interface: Interface) -> dict[str, Any]:
    slot = {} if interface.slot is None else {"slot": interface.slot}
    drawn = {"id": interface.id, "label": interface.label, "type": interface.type}
    return drawn | slot | {"mac_address": interface.mac_address}


def _link_in_topology(lab: Lab, link: Link) -> dict[str, Any]:
    drawn = {key: value for key, value in link_json(lab, link).items() if key not in _OF_A_RUN}
    return drawn | ({"conditioning": link.condition} if link.condition else {})


def events_json(sim: Simulation, lab_id: str) -> list[dict[str, Any]]:
    """Render the events of a lab, oldest first."""
    return [{**event, "timestamp": stamp(event["timestamp"])} for event in sim.world.events.of(lab_id)]


def element_states_json(sim: Simulation, lab: Lab) -> dict[str, dict[str, str]]:
    """Render the states of all elements; the client treats a missing element as deleted."""
    return {
        "nodes": {node.id: sim.world.state(node) for node in lab.nodes.values()},
        "links": {link.id: link.state for link in lab.links.values()},
        "interfaces": {interface.id: interface.state for interface in lab.interfaces()},
    }


def layer3_json(sim: Simulation, lab: Lab, node: Node) -> dict[str, Any]:
    """Render the addresses of a booted node; the NAT network's, as the simulator has no other. A bridge has none.

    Example:
        `{"name": "r1", "interfaces": {"52:54:…": {"id": "…", "label": "eth0", "ip4": ["192.168.255.10"], "ip6": []}}}`
    """
    interfaces = {}
    if PROGRESS[sim.world.state(node)] == "Booted" and sim.world.definition(node.node_definition).driver != "NONE":
        for interface in node.interfaces.values():
            if interface.slot is None or interface.link is None:
                continue
            ip4 = f"192.168.255.{2 + zlib.crc32(interface.id.encode()) % 250}"
            interfaces[mac_of(node, interface)] = {
                "id": interface.id,
                "label": interface.label,
                "ip4": [ip4] if _reaches_nat(lab, lab.links[interface.link], node) else [],
                "ip6": [],
            }
    return {"name": node.label, "interfaces": interfaces}


def _reaches_nat(lab: Lab, link: Link, node: Node) -> bool:
    """Return whether a link leads to the NAT network: directly, or through unmanaged switches."""
    seen, ahead = {node.id}, [link]
    while ahead:
        crossed = ahead.pop()
        ends = {crossed.node_a, crossed.node_b} - seen
        seen |= ends
        for peer in (lab.nodes[end] for end in ends):
            if crossed.state is not WireState.STARTED:
                continue
            config = peer.configuration[0].content if peer.configuration else "NAT"
            if peer.node_definition == "external_connector" and config in {"NAT", "virbr0"}:
                return True
            if peer.node_definition == "unmanaged_switch":
                ahead += links_of(lab, peer)
    return False
