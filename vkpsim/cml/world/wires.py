"""The states of links and interfaces, which follow from those of nodes. Pure."""

from vkpsim.cml.world.model import Lab, Link, Node
from vkpsim.cml.world.states import RUNNING, WireState


def carries(lab: Lab, link: Link) -> bool:
    """Return whether both ends of a link run."""
    return all(lab.nodes[end].state in RUNNING for end in (link.node_a, link.node_b))


def links_of(lab: Lab, node: Node) -> list[Link]:
    """List the links that end at a node."""
    return [link for link in lab.links.values() if node.id in {link.node_a, link.node_b}]


def connect(lab: Lab, node: Node) -> None:
    """Start the interfaces of a node that was launched, and its links to nodes that run."""
    for interface in node.interfaces.values():
        interface.state = WireState.STARTED
    for link in links_of(lab, node):
        if carries(lab, link):
            link.state = WireState.STARTED


def disconnect(lab: Lab, node: Node, state: WireState) -> None:
    """Set the state of the interfaces and links of a stopped or wiped node."""
    for interface in node.interfaces.values():
        interface.state = state
    for link in links_of(lab, node):
        link.state = state
