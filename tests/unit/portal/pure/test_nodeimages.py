"""Where the image of a workbench is, and what is kept of a Node to say so."""

import pytest

from vkprovider.platform.objects import Metadata, Node, NodeCondition, NodeImage, NodeSpec, NodeStatus
from vkprovider.portal.pure.nodeimages import BenchImage, bench_image, keeping_images
from vkprovider.portal.pure.workbench import WorkbenchConfig

IMAGE = "quay.io/team/workbench:1.4"
CONFIG = WorkbenchConfig.model_validate({"image": IMAGE, "nodeSelector": {"pool": "lab"}})
OTHER = NodeImage(["quay.io/team/workbench-old:1.4", "quay.io/team/workbench-old@sha256:" + "0" * 64])
HELD = NodeImage(["quay.io/team/workbench@sha256:" + "1" * 64, IMAGE])


def node(name: str, *images: NodeImage, cordoned: bool = False, pool: str = "lab", os: str = "linux") -> Node:
    status = NodeStatus(conditions=[NodeCondition("Ready", "True")], images=list(images))
    labels = {"kubernetes.io/os": os, "pool": pool}
    return Node(Metadata(name, labels=labels), spec=NodeSpec(unschedulable=cordoned), status=status)


def test_nodes_that_may_run_a_workbench_hold_it_or_not() -> None:
    nodes = [
        node("d", OTHER),
        node("a", OTHER, HELD),
        node("full", *[OTHER] * 50),
        node("cordoned", HELD, cordoned=True),
        node("elsewhere", HELD, pool="other"),
        node("windows", HELD, os="windows"),
    ]
    expected = BenchImage("pyats", IMAGE, on=("a",), missing=("d",), unknown=("full",))
    assert bench_image("pyats", CONFIG, nodes) == expected
    kept = [keeping_images([IMAGE])(each) for each in nodes]
    assert bench_image("pyats", CONFIG, kept) == expected
    assert [len(each.status.images) for each in kept] == [0, 1, 50, 1, 1, 1]


def test_a_name_that_is_none_is_nowhere() -> None:
    odd = WorkbenchConfig.model_validate({"image": "Registry/UPPER"})
    assert bench_image("odd", odd, [node("a", HELD)]) == BenchImage("odd", "Registry/UPPER")
    assert keeping_images(["Registry/UPPER"])(node("a", HELD)).status.images == []


@pytest.mark.parametrize(
    ("on", "missing", "unknown", "words"),
    [
        ("ab", "", "", "with a workbench"),
        ("a", "bc", "", "with a workbench, ready on 1 of 3 nodes"),
        ("", "b", "", "with a workbench, which is loaded first"),
        ("", "b", "c", "with a workbench"),
        ("", "", "", "with a workbench"),
    ],
)
def test_the_menu_says_what_is_known(on: str, missing: str, unknown: str, words: str) -> None:
    assert BenchImage("pyats", IMAGE, tuple(on), tuple(missing), tuple(unknown)).words == words
