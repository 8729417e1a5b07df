"""Changes of a lab's topology: importing, adding and removing nodes, interfaces, links and tags. Pure."""

import itertools
from collections.abc import Container
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from vkpsim.cml.errors import CmlError, E, invalid
from vkpsim.cml.world.model import ConfigFile, Interface, Lab, Link, Node
from vkpsim.cml.world.rules import NodeOp
from vkpsim.cml.world.states import WireState
from vkpsim.cml.world.topology import Configuration, Topology, files_of
from vkpsim.cml.world.wires import carries
from vkpsim.cml.world.world import World

_SMART_DEFAULTS: Final[dict[str, Any]] = {
    "is_on": True,
    "padding": 35,
    "tag_offset_x": 0,
    "tag_offset_y": 0,
    "tag_size": 14,
    "group_distance": 400,
    "thickness": 1,
    "border_style": "",
    "fill_color": "#00000080",
    "border_color": "#00000080",
    "z_index": 1,
}


def new_lab(world: World, now: float, owner: str, title: str | None, **fields: Any) -> Lab:
    """Create an empty lab; titles need not be unique."""
    title = title or datetime.fromtimestamp(now, UTC).strftime("Lab at %a %H:%M %p")
    lab = Lab(id=world.new_id(), owner=owner, created=now, modified=now, title=title, **fields)
    world.labs[lab.id] = lab
    world.events.record(now, lab, "CREATED", "Lab", lab.id)
    return lab


def import_topology(world: World, now: float, owner: str, topology: Topology, title: str | None) -> Lab:
    """Create a lab from a topology file; all ids are new."""
    header = topology.lab
    lab = new_lab(world, now, owner, title or header.title, description=header.description, notes=header.notes)
    lab.node_staging = header.node_staging or {}
    ports: dict[tuple[str, str], Interface] = {}
    given = {part.label for part in topology.nodes if part.label is not None}
    for part in topology.nodes:
        definition = world.definition(part.node_definition)
        taken = given | {node.label for node in lab.nodes.values()}
        node = Node(
            id=world.new_id(),
            lab=lab.id,
            label=part.label if part.label is not None else free_label(taken, part.node_definition),
            node_definition=part.node_definition,
            x=part.x or 0,
            y=part.y or 0,
            image_definition=part.image_definition,
            ram=part.ram,
            cpus=part.cpus,
            cpu_limit=part.cpu_limit,
            data_volume=part.data_volume,
            boot_disk_size=part.boot_disk_size,
            hide_links=part.hide_links,
            tags=part.tags,
            parameters=part.parameters,
            priority=part.priority,
            pyats=part.pyats,
        )
        configure(world, node, files_of(part.configuration))
        lab.nodes[node.id] = node
        for port in part.interfaces:
            label = port.label or ("Loopback0" if port.slot is None else definition.port(port.slot))
            ports[part.id, port.id] = _plug(world, lab, node, label, port.slot, port.type, port.mac_address)
    for wire in topology.links:
        link = join(world, now, lab, ports[wire.n1, wire.i1], ports[wire.n2, wire.i2], wire.label)
        link.condition = msgspec.to_builtins(wire.conditioning)
    lab.annotations = {
        annotation_id: {**annotation, "id": annotation_id}
        for annotation_id, annotation in ((world.new_id(), annotation) for annotation in topology.annotations)
    }
    refresh_smart_annotations(world, lab, {str(given.get("tag")): given for given in topology.smart_annotations})
    return lab


def add_node(world: World, now: float, lab: Lab, node: Node, *, populate: bool) -> Node:
    """Add a node, with the default interfaces of its definition if `populate`.

    Raises:
        CmlError: The label is taken, or the definition unknown.
    """
    if node.node_definition not in world.definitions:
        raise invalid(f"Unknown node definition: {node.node_definition}", ("body", "node_definition"))
    check_label(lab, node, node.label)
    lab.nodes[node.id] = node
    definition = world.definition(node.node_definition)
    if populate:
        if definition.loopback:
            _plug(world, lab, node, "Loopback0", None, "loopback", None)
        for slot in range(definition.ports):
            _plug(world, lab, node, definition.port(slot), slot, "physical", None)
    touch(world, now, lab, "CREATED", "Node", node.id)
    refresh_smart_annotations(world, lab)
    return node


def remove_node(world: World, now: float, lab: Lab, node: Node) -> None:
    """Remove a node with its interfaces and links.

    Raises:
        CmlError: It is not wiped.
    """
    world.check(NodeOp.DELETE, node)
    for interface in list(node.interfaces.values()):
        _unplug(world, now, lab, node, interface)
    del lab.nodes[node.id]
    touch(world, now, lab, "DELETED", "Node", node.id)
    refresh_smart_annotations(world, lab)


def free_label(taken: Container[str], definition: str) -> str:
    """Return the label that CML gives a node without one: that of its node definition with a number."""
    return next(label for number in itertools.count() if (label := f"{definition}-{number}") not in taken)


def check_label(lab: Lab, node: Node, label: str) -> None:
    """Check that no other node of the lab has a label.

    Raises:
        CmlError: Another node has it.
    """
    if any(other.label == label and other.id != node.id for other in lab.nodes.values()):
        raise CmlError(E.NODE_LABEL_TAKEN, label=label)


def configure(world: World, node: Node, given: Configuration | ConfigFile) -> None:
    """Set the configuration of a node: the main file as text, one file, or all files."""
    main = world.definition(node.node_definition).config_name or "Main"
    if given is None:
        node.configuration = []
    elif isinstance(given, str):
        name = node.configuration[0].name if node.configuration else main
        node.configuration = [ConfigFile(name, given), *node.configuration[1:]]
    elif isinstance(given, ConfigFile):
        files = {file.name: file for file in node.configuration}
        name = (node.configuration[0].name if node.configuration else main) if given.name == "Main" else given.name
        files[name] = ConfigFile(name, given.content)
        node.configuration = list(files.values())
    else:
        node.configuration = [ConfigFile(main if file.name == "Main" else file.name, file.content) for file in given]


def add_interfaces(world: World, now: float, lab: Lab, node: Node, slot: int | None) -> list[Interface]:
    """Add the next free interface, or with a slot all that are missing up to it.

    Raises:
        CmlError: The node was started and not wiped since, or has no more slots.
    """
    world.check(NodeOp.INTERFACES, node)
    definition = world.definition(node.node_definition)
    used = {interface.slot for interface in node.interfaces.values()}
    wanted = [next(n for n in range(len(used) + 1) if n not in used)] if slot is None else range(slot + 1)
    if max(wanted) >= definition.max_ports:
        raise CmlError(E.INTERFACE_LIMIT, id=node.id)
    added = [_plug(world, lab, node, definition.port(n), n, "physical", None) for n in wanted if n not in used]
    for interface in added:
        touch(world, now, lab, "CREATED", "Interface", interface.id)
    return added


def remove_interface(world: World, now: float, lab: Lab, interface: Interface) -> None:
    """Remove an interface with its link.

    Raises:
        CmlError: Its node was started and not wiped since.
    """
    node = lab.nodes[interface.node]
    world.check(NodeOp.INTERFACES, node)
    _unplug(world, now, lab, node, interface)


def join(world: World, now: float, lab: Lab, a: Interface, b: Interface, label: str | None = None) -> Link:
    """Link two interfaces.

    Raises:
        CmlError: One of them has a link already.
    """
    for interface in (a, b):
        if interface.link is not None or a is b:
            raise CmlError(E.INTERFACE_IN_USE, id=interface.id)
    node_a, node_b = lab.nodes[a.node], lab.nodes[b.node]
    link = Link(
        id=world.new_id(),
        label=label or f"{node_a.label}-{a.label}<->{node_b.label}-{b.label}",
        a=a.id,
        b=b.id,
        node_a=a.node,
        node_b=b.node,
    )
    if carries(lab, link):
        link.state = WireState.STARTED
    a.link = b.link = link.id
    lab.links[link.id] = link
    touch(world, now, lab, "CREATED", "Link", link.id)
    return link


def cut(world: World, now: float, lab: Lab, link: Link) -> None:
    """Remove a link; its interfaces stay."""
    for interface_id in (link.a, link.b):
        interface = lab.interface(interface_id)
        if interface is not None:
            interface.link = None
    del lab.links[link.id]
    touch(world, now, lab, "DELETED", "Link", link.id)


def refresh_smart_annotations(world: World, lab: Lab, given: dict[str, dict[str, Any]] | None = None) -> None:
    """Keep one smart annotation per distinct tag of the lab's nodes, as CML does."""
    present = {str(annotation["tag"]): annotation for annotation in lab.smart_annotations.values()}
    kept: dict[str, dict[str, Any]] = {}
    for tag in dict.fromkeys(tag for node in lab.nodes.values() for tag in node.tags):
        annotation = present.get(tag)
        if annotation is None:
            annotation = {**_SMART_DEFAULTS, "label": tag, **(given or {}).get(tag, {}), "tag": tag}
            annotation["id"] = world.new_id()
        kept[str(annotation["id"])] = annotation
    lab.smart_annotations = kept


def touch(world: World, now: float, lab: Lab, event: str, element: str, element_id: str) -> None:
    """Record a change of a lab."""
    lab.modified = now
    world.events.record(now, lab, event, element, element_id)


def _plug(
    world: World, lab: Lab, node: Node, label: str, slot: int | None, kind: str, mac_address: str | None
) -> Interface:
    interface = Interface(id=world.new_id(), node=node.id, label=label, slot=slot, type=kind, mac_address=mac_address)
    node.interfaces[interface.id] = interface
    lab.interface_nodes[interface.id] = node.id
    return interface


def _unplug(world: World, now: float, lab: Lab, node: Node, interface: Interface) -> None:
    if interface.link is not None:
        cut(world, now, lab, lab.links[interface.link])
    del node.interfaces[interface.id]
    del lab.interface_nodes[interface.id]
    touch(world, now, lab, "DELETED", "Interface", interface.id)
