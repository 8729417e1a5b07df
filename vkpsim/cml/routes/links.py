"""Interfaces, and links with their conditions and captures."""

from typing import Annotated, Any, Final

import msgspec

from vkpsim.cml import packets
from vkpsim.cml.calls import Binary, Call, Route
from vkpsim.cml.errors import CmlError, E
from vkpsim.cml.routes import views
from vkpsim.cml.world import editing
from vkpsim.cml.world.model import Capture, Interface, Lab, Link
from vkpsim.cml.world.rules import NodeOp
from vkpsim.cml.world.states import RUNNING, WireState
from vkpsim.cml.world.topology import Condition
from vkpsim.cml.world.wires import carries

DOUBLED: Final = "//api/v0"
"""Cisco's client 2.10.1 writes the base path twice in front of `/pcap`."""


class NewInterface(msgspec.Struct, forbid_unknown_fields=True):
    """A request for an interface; without a slot, for the next free one."""

    node: str
    slot: Annotated[int, msgspec.Meta(ge=0, le=128)] | None = None
    mac_address: str | None = None


class InterfaceChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of an interface that can be changed."""

    mac_address: str | None = None


class NewLink(msgspec.Struct, forbid_unknown_fields=True):
    """A request for a link."""

    src_int: str
    dst_int: str


def add_interface(call: Call) -> Any:
    """Add an interface; with a slot, all that are missing up to it, as a list."""
    lab = call.lab("lab_edit")
    given = call.read(NewInterface)
    node = call.sim.world.node(lab.id, given.node)
    added = editing.add_interfaces(call.sim.world, call.now, lab, node, given.slot)
    for interface in added:
        interface.mac_address = given.mac_address
    drawn = [views.interface_json(lab, node, interface) for interface in added]
    return drawn[0] if given.slot is None else drawn


def list_interfaces(call: Call) -> list[dict[str, Any]]:
    """Show all interfaces of a lab."""
    lab = call.lab()
    return [
        views.interface_json(lab, node, interface, operational=True)
        for node in lab.nodes.values()
        for interface in node.interfaces.values()
    ]


def get_interface(call: Call) -> dict[str, Any]:
    """Show an interface."""
    lab, interface = call.interface()
    operational = bool(call.flag("operational"))
    return views.interface_json(lab, lab.nodes[interface.node], interface, operational=operational)


def change_interface(call: Call) -> str:
    """Set the MAC address of an interface."""
    lab, interface = call.interface("lab_edit")
    call.sim.world.check(NodeOp.INTERFACES, lab.nodes[interface.node])
    interface.mac_address = call.read(InterfaceChange).mac_address
    editing.touch(call.sim.world, call.now, lab, "MODIFIED", "Interface", interface.id)
    return interface.id


def delete_interface(call: Call) -> None:
    """Remove an interface with its link."""
    lab, interface = call.interface("lab_edit")
    editing.remove_interface(call.sim.world, call.now, lab, interface)


def interface_state(call: Call) -> dict[str, str]:
    """Return the state of an interface."""
    _, interface = call.interface()
    return {"label": interface.label, "state": interface.state}


def start_interface(call: Call) -> None:
    """Plug in the interface of a running node."""
    lab, interface = call.interface("lab_exec")
    if lab.nodes[interface.node].state in RUNNING:
        interface.state = WireState.STARTED


def stop_interface(call: Call) -> None:
    """Unplug an interface."""
    _, interface = call.interface("lab_exec")
    if interface.state is WireState.STARTED:
        interface.state = WireState.STOPPED


def add_link(call: Call) -> dict[str, str]:
    """Link two free interfaces, also in a running lab."""
    lab = call.lab("lab_edit")
    given = call.read(NewLink)
    a, b = _end(lab, given.src_int), _end(lab, given.dst_int)
    link = editing.join(call.sim.world, call.now, lab, a, b)
    return {"id": link.id, "label": link.label}


def _end(lab: Lab, interface_id: str) -> Interface:
    interface = lab.interface(interface_id)
    if interface is None:
        raise CmlError(E.INTERFACE_NOT_FOUND, id=interface_id)
    return interface


def list_links(call: Call) -> list[Any]:
    """List the ids of a lab's links, or with `data` the links themselves."""
    lab = call.lab()
    return [views.link_json(lab, link) for link in lab.links.values()] if call.flag("data") else list(lab.links)


def get_link(call: Call) -> dict[str, Any]:
    """Show a link."""
    return views.link_json(*call.link())


def delete_link(call: Call) -> None:
    """Remove a link; its interfaces stay."""
    lab, link = call.link("lab_edit")
    editing.cut(call.sim.world, call.now, lab, link)


def link_state(call: Call) -> dict[str, str]:
    """Return the state of a link."""
    return {"state": call.link()[1].state}


def link_converged(call: Call) -> bool:
    """Return whether a link has converged: always true."""
    call.link()
    return True


def start_link(call: Call) -> None:
    """Connect a link whose nodes run."""
    lab, link = call.link("lab_exec")
    if carries(lab, link):
        link.state = WireState.STARTED


def stop_link(call: Call) -> None:
    """Disconnect a link."""
    _, link = call.link("lab_exec")
    if link.state is WireState.STARTED:
        link.state = WireState.STOPPED


def get_condition(call: Call) -> dict[str, Any]:
    """Show a link's condition: what it does to its packets; `{}` if nothing."""
    return call.link()[1].condition or {}


def change_condition(call: Call) -> dict[str, Any]:
    """Set a link's condition, for example `{"bandwidth": 2000, "latency": 50, "loss": 5.1}`."""
    _, link = call.link("lab_edit")
    given = msgspec.to_builtins(call.read(Condition))
    link.condition = {**(link.condition or {}), **given}
    return link.condition


def delete_condition(call: Call) -> None:
    """Remove a link's condition."""
    _, link = call.link("lab_edit")
    if link.condition is None:
        raise CmlError(E.NO_CONDITION, id=link.id)
    link.condition = None


def start_capture(call: Call) -> dict[str, Any]:
    """Start a packet capture; an earlier one of the link is gone."""
    _, link = call.link("lab_exec")
    config = {"encap": "ethernet", "maxpackets": 50, "maxtime": 60, **call.read(dict[str, Any])}
    key = call.sim.new_id()
    link.capture = Capture(key=key, config={**config, "link_capture_key": key}, started_at=call.now)
    return link.capture.config


def _capture(call: Call) -> Capture:
    _, link = call.link()
    if link.capture is None:
        raise CmlError(E.CAPTURE_NOT_FOUND, id=link.id)
    return link.capture


def stop_capture(call: Call) -> dict[str, Any]:
    """Stop a packet capture."""
    capture = _capture(call)
    if capture.stopped_at is None:
        capture.stopped_at = call.now
    return capture.config


def capture_status(call: Call) -> dict[str, Any]:
    """Show a packet capture; `{}` if none runs: CML's schema says that all is empty then."""
    lab, link = call.link()
    found = _packets(call, lab, link)
    if link.capture is None or not packets.runs(link.capture, len(found), call.now):
        return {}
    started = views.stamp(link.capture.started_at).replace("+00:00", "Z")
    return {"config": link.capture.config, "starttime": started, "packetscaptured": len(found)}


def capture_key(call: Call) -> str:
    """Return the key of a packet capture."""
    return _capture(call).key


def _packets(call: Call, lab: Lab, link: Link) -> list[packets.Packet]:
    if link.capture is None:
        return []
    ends = [(lab.nodes[node], end) for node, end in ((link.node_a, link.a), (link.node_b, link.b))]
    first, second = (bytes.fromhex(views.mac_of(node, node.interfaces[end]).replace(":", "")) for node, end in ends)
    return packets.captured(link.capture, (first, second), carries=link.state is WireState.STARTED, now=call.now)


def _captured(call: Call) -> list[packets.Packet]:
    """Return the packets of the capture that a path names, by its key or its link."""
    key = call.path["key"]
    for lab in call.visible_labs():
        for link in lab.links.values():
            if link.capture is not None and key in {link.id, link.capture.key}:
                return _packets(call, lab, link)
    raise CmlError(E.CAPTURE_NOT_FOUND, id=key)


def pcap_file(call: Call) -> Binary:
    """Return the packets that are captured until now as a file."""
    return Binary(packets.pcap(_captured(call)), "application/vnd.tcpdump.pcap")


def pcap_packets(call: Call) -> list[Any]:
    """List the packets of a capture."""
    return [packets.shown(each) for each in _captured(call)]


def pcap_packet(call: Call) -> dict[str, Any]:
    """Show one packet, by its number."""
    for each in _captured(call):
        if str(each.number) == call.path["packet"]:
            return {**packets.shown(each), "hex": each.frame.hex()}
    raise CmlError(E.CAPTURE_NOT_FOUND, id=call.path["packet"])


ROUTES = (
    Route("GET", "/labs/{lab}/interfaces", list_interfaces),
    Route("POST", "/labs/{lab}/interfaces", add_interface),
    Route("GET", "/labs/{lab}/interfaces/{interface}", get_interface),
    Route("PATCH", "/labs/{lab}/interfaces/{interface}", change_interface),
    Route("DELETE", "/labs/{lab}/interfaces/{interface}", delete_interface),
    Route("GET", "/labs/{lab}/interfaces/{interface}/state", interface_state),
    Route("PUT", "/labs/{lab}/interfaces/{interface}/state/start", start_interface),
    Route("PUT", "/labs/{lab}/interfaces/{interface}/state/stop", stop_interface),
    Route("GET", "/labs/{lab}/links", list_links),
    Route("POST", "/labs/{lab}/links", add_link),
    Route("GET", "/labs/{lab}/links/{link}", get_link),
    Route("DELETE", "/labs/{lab}/links/{link}", delete_link),
    Route("GET", "/labs/{lab}/links/{link}/state", link_state),
    Route("GET", "/labs/{lab}/links/{link}/check_if_converged", link_converged),
    Route("PUT", "/labs/{lab}/links/{link}/state/start", start_link),
    Route("PUT", "/labs/{lab}/links/{link}/state/stop", stop_link),
    Route("GET", "/labs/{lab}/links/{link}/condition", get_condition),
    Route("PATCH", "/labs/{lab}/links/{link}/condition", change_condition),
    Route("DELETE", "/labs/{lab}/links/{link}/condition", delete_condition),
    Route("PUT", "/labs/{lab}/links/{link}/capture/start", start_capture),
    Route("PUT", "/labs/{lab}/links/{link}/capture/stop", stop_capture),
    Route("GET", "/labs/{lab}/links/{link}/capture/status", capture_status),
    Route("GET", "/labs/{lab}/links/{link}/capture/key", capture_key),
    *(
        Route("GET", prefix + path, handler)
        for prefix in ("", DOUBLED)
        for path, handler in (
            ("/pcap/{key}", pcap_file),
            ("/pcap/{key}/packets", pcap_packets),
            ("/pcap/{key}/packet/{packet}", pcap_packet),
            ("/pcap/{key}/packets/{packet}", pcap_packet),
        )
    ),
)
