"""Nodes as the menu sees them: what a worker does not say is unknown, never missing (R002-074, C44)."""

from vkprovider.platform.objects import Metadata, Node, NodeCondition, NodeImage, NodeSpec, NodeStatus
from vkprovider.portal.service.choices import menu_node


def node(*images: str, ready: bool = True, cordoned: bool = False, environment: str = "") -> Node:
    condition = NodeCondition("Ready", "True" if ready else "False")
    shown = [NodeImage([image]) for image in images]
    labels = {"vkprovider.io/env": environment} if environment else {}
    spec = NodeSpec(unschedulable=cordoned)
    return Node(Metadata("vnode.a", labels=labels), spec, NodeStatus(conditions=[condition], images=shown))


def test_a_worker_has_the_image_definitions_that_its_node_lists() -> None:
    found = menu_node(node("cml/iosv-159-3-m3", "cml/alpine-3-19", "docker.io/library/nginx"))
    assert found.images == frozenset({"iosv-159-3-m3", "alpine-3-19"})
    assert (found.name, found.environment, found.comment) == ("vnode.a", "default", "")


def test_a_worker_that_lists_none_is_unknown() -> None:
    assert menu_node(node()).images is None
    assert menu_node(node("docker.io/library/nginx")).images is None


def test_a_node_that_takes_no_lab_says_why() -> None:
    assert menu_node(node(ready=False)).comment == "not ready"
    assert menu_node(node(cordoned=True)).comment == "cordoned"
    assert menu_node(node(environment="exam")).environment == "exam"
