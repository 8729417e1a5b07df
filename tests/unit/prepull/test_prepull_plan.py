"""Which images Nodes are to hold, which lack them, and what is done about it (R002-067, 069)."""

from typing import Any

import kubernetes_validate
import pytest

from vkprovider.platform.objects import Metadata, Node, NodeCondition, NodeImage, NodeSpec, NodeStatus, Taint
from vkprovider.portal.pure.config import ImagesConfig
from vkprovider.portal.pure.nodeimages import ImageName, OrdinaryNode, ordinary_node
from vkprovider.prepull.plan import PullPod, chosen_tags, plan, pod_body, pull_pod

D1, D2 = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
LAB = ImageName("quay.io", "team/lab", "recommended", D2)
TOOL = ImageName.parse("quay.io/team/tool:1")
READY = [NodeCondition("Ready", "True")]


def has(name: str, *images: tuple[str, ...], why: str = "") -> OrdinaryNode:
    return OrdinaryNode(name, tuple(frozenset(each) for each in images), why)


def pod(node: str, image: str, *, pulled: bool = False, failing: str = "") -> PullPod:
    return PullPod(f"{node}-pod", "uid", node, image, pulled, failing)


def test_tags_are_those_of_the_menu() -> None:
    weeklies = [f"w_2026_{week}" for week in (9, 10, 11)]
    tags = ["recommended", "r23_0", "r22_0", "exp_x", "latest", "w_2020_1", "d_2026_01_02", *weeklies]
    config = ImagesConfig(num_releases=1, num_weeklies=2, num_dailies=0, pins=("w_2020_1",))
    assert chosen_tags(tags, config) == ["r23_0", "w_2026_11", "w_2026_10", "w_2020_1", "recommended"]


def test_a_cycle_filters_and_an_alias_is_no_image_of_its_own() -> None:
    tags = ["w_2026_11_c26.1", "w_2026_12_c27.1", "latest_weekly"]
    config = ImagesConfig(cycle=26, num_weeklies=3, alias_tags=("latest_weekly",))
    assert chosen_tags(tags, config) == ["w_2026_11_c26.1"]


@pytest.mark.parametrize(
    ("image", "names", "holds"),
    [
        (LAB, ("quay.io/team/lab:recommended", f"quay.io/team/lab@{D2}"), True),
        (LAB, (f"quay.io/team/lab@{D2}",), True),
        (LAB, ("quay.io/team/lab:recommended", f"quay.io/team/lab@{D1}"), False),  # the tag was moved
        (LAB, ("quay.io/team/lab:recommended",), True),  # imported from an archive: no digest is known
        (TOOL, ("quay.io/team/tool:1", f"quay.io/team/tool@{D1}"), True),
        (TOOL, ("quay.io/team/tool:2",), False),
    ],
)
def test_a_node_holds_what_has_the_digest_that_the_tag_has_now(
    image: ImageName, names: tuple[str, ...], *, holds: bool
) -> None:
    assert has("n1", names).holds(image) is holds


def test_few_nodes_pull_at_once_and_each_one_image() -> None:
    nodes = [has("n1"), has("n2"), has("n3"), has("off", why="cordoned")]
    first = plan([LAB, TOOL], nodes, [], 2)
    assert first.create == (("n1", LAB), ("n2", LAB))
    assert first.missing == {LAB.tagged: ("n1", "n2", "n3"), TOOL.tagged: ("n1", "n2", "n3")}
    both = [pod("n1", LAB.digested), pod("n2", LAB.digested)]
    assert plan([LAB, TOOL], nodes, both, 2).create == ()
    there = [has("n1", (LAB.digested,)), *nodes[1:]]
    after = plan([LAB, TOOL], there, both, 2)
    assert after.delete == (both[0],)
    assert after.create == (("n3", LAB),)


def test_a_pull_that_fails_holds_up_no_other_node_and_is_told() -> None:
    failing = pod("n1", LAB.digested, failing="ErrImagePull: denied")
    found = plan([LAB, TOOL], [has("n1"), has("n2")], [failing], 1)
    assert found.failing == {(LAB.tagged, "n1"): "ErrImagePull: denied"}
    assert found.create == (("n2", LAB),)
    assert found.delete == ()


def test_a_node_that_tells_of_some_images_only_pulls_once() -> None:
    full = has("n1", *((f"quay.io/x:{number}",) for number in range(50)))
    assert plan([TOOL], [full], [], 2).create == (("n1", TOOL),)
    pulled = pod("n1", TOOL.tagged, pulled=True)
    found = plan([TOOL], [full], [pulled], 2)
    assert (found.create, found.delete, found.missing) == ((), (pulled,), {TOOL.tagged: ()})
    assert plan([TOOL], [full], [], 2, {("n1", TOOL.tagged)}).create == ()


def test_pods_of_what_nobody_wants_any_more_go() -> None:
    old = pod("n1", "quay.io/team/old:1")
    assert plan([TOOL], [has("n1")], [old], 2).delete == (old,)


@pytest.mark.parametrize(
    ("spec", "labels", "conditions", "ineligible"),
    [
        (NodeSpec(), {"pool": "a"}, READY, ""),
        (NodeSpec(unschedulable=True), {"pool": "a"}, READY, "cordoned"),
        (NodeSpec(taints=[Taint("dedicated", "NoSchedule")]), {"pool": "a"}, READY, "taint dedicated"),
        (NodeSpec(taints=[Taint("dedicated", "PreferNoSchedule")]), {"pool": "a"}, READY, ""),
        (NodeSpec(), {"pool": "a"}, [NodeCondition("Ready", "Unknown")], "not Ready"),
        (NodeSpec(), {"pool": "a"}, [], "not Ready"),
        (NodeSpec(), {"pool": "b"}, READY, None),
        (NodeSpec(), {"pool": "a", "vkprovider.io/component": "vnode"}, READY, None),
    ],
)
def test_which_nodes_pull(
    spec: NodeSpec, labels: dict[str, str], conditions: list[NodeCondition], ineligible: str | None
) -> None:
    node = Node(Metadata("n1", labels=labels), spec, NodeStatus(conditions, images=[NodeImage(["a:1", "a@x"])]))
    found = ordinary_node(node, {"pool": "a"})
    assert (found and found.ineligible) == ineligible
    if found is not None:
        assert found.images == (frozenset({"a:1", "a@x"}),)


@pytest.mark.parametrize("secret", ["", "pull"])
def test_a_pod_is_found_again_by_what_it_says(secret: str) -> None:
    body = pod_body("n1", LAB, secret)
    kubernetes_validate.validate(body, "1.30", strict=True)
    assert body["spec"].get("imagePullSecrets") == ([{"name": "pull"}] if secret else None)
    assert (
        pod_body("n2", LAB)["metadata"]["name"] != body["metadata"]["name"] != pod_body("n1", TOOL)["metadata"]["name"]
    )
    body["metadata"]["uid"] = "u"
    assert pull_pod(body) == PullPod(body["metadata"]["name"], "u", "n1", LAB.digested)


@pytest.mark.parametrize(
    ("status", "pulled", "failing"),
    [
        ({"phase": "Pending"}, False, ""),
        ({"phase": "Succeeded"}, True, ""),
        ({"phase": "Failed", "containerStatuses": [{"imageID": "sha256:1", "state": {}}]}, True, ""),
        ({"phase": "Failed", "message": "Evicted"}, False, "Evicted"),
        (
            {
                "phase": "Pending",
                "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no"}}}],
            },
            False,
            "ErrImagePull: no",
        ),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]},
            False,
            "",
        ),
    ],
)
def test_what_a_kubelet_says_of_a_pull(status: dict[str, Any], failing: str, *, pulled: bool) -> None:
    body = pod_body("n1", TOOL)
    body["metadata"]["uid"] = "u"
    found = pull_pod({**body, "status": status})
    assert (found.pulled, found.failing) == (pulled, failing)
