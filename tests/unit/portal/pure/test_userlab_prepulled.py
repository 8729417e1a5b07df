"""What workers have for labs (R002-071…075), and what a form offers (R002-035)."""

from typing import Any

import pytest

from tests.unit.portal.pure.menus import definition, menu, node, sized
from vkprovider.portal.pure.config import LabQuota
from vkprovider.portal.pure.form import (
    FormEntry,
    MenuNode,
    images_answer,
    offer,
    outside_dropdown,
    prepulled,
    prepulls_answer,
)

NETLAB = menu(*sized("netlab", "1.1", "1.0"))
CURRENT, OLD = NETLAB.images


@pytest.mark.parametrize(
    ("nodes", "is_there"),
    [
        ([node("a", "iosv-159", "more"), node("b", "iosv-159")], True),
        ([node("a", "iosv-159"), node("b", "asav-9")], False),
        ([node("a", "iosv-159"), node("b", known=False)], None),
        ([node("a", "asav-9"), node("b", known=False)], False),
        ([node("a", known=False)], None),
        ([], None),
        ([node("a", "iosv-159"), node("b", comment="it is cordoned")], True),
        ([node("a", "iosv-159"), node("b", environment="exam")], True),
        ([node("b", environment="exam")], None),
    ],
)
def test_unknown_is_never_missing(nodes: list[MenuNode], is_there: bool | None) -> None:  # noqa: FBT001 (a column of the table)
    assert prepulled(CURRENT, nodes) is is_there
    assert prepulled(OLD, nodes) is None, "nobody lists the devices of an old version"


def test_what_a_worker_lacks_stands_in_the_dropdown_alone() -> None:
    """R002-071."""
    found = menu(*sized("netlab", "1.1", "1.0"), images={"pins": ["1.0"]})
    assert [image.version.tag for image in outside_dropdown(found, [node("a", "iosv-159")])] == ["1.1", "1.0"]
    assert [image.version.tag for image in outside_dropdown(found, [node("a")])] == ["1.0"]


def test_the_images_of_each_type_come_first() -> None:
    """R002-072, R002-073."""
    found = images_answer(menu(*sized("netlab", "w_2022_37", "1.0")), [node("a", "iosv-159")])
    assert list(found) == ["recommended", "latest-weekly", "latest-daily", "latest-release", "all"]
    weekly: dict[str, Any] = {
        "reference": "netlab:w_2022_37",
        "tag": "w_2022_37",
        "name": "netlab: Weekly 2022_37",
        "digest": "sha256:netlab-small-w_2022_37",
        "aliases": ["recommended", "latest"],
        "prepulled": True,
    }
    assert found["recommended"] == found["latest-weekly"] == weekly
    assert found["latest-daily"] is None
    assert found["latest-release"]["prepulled"] is None
    assert [image["tag"] for image in found["all"]] == ["w_2022_37", "1.0"]


def test_prepulls_say_where_images_are_and_where_they_lack() -> None:
    """R002-074, R002-075."""
    both = menu(*sized("netlab", "1.1"), definition("exam", "small", "2.0", devices=("asav-9",)))
    nodes = [node("a", "iosv-159", "asav-9"), node("b", "iosv-159"), node("c", comment="it is not Ready")]
    found = prepulls_answer(both, nodes)
    assert found["config"]["recommended_tag"] == "recommended"
    assert found["config"]["num_weeklies"] == 2
    [pending] = found["images"]["pending"]
    assert (pending["reference"], pending["nodes"], pending["missing"]) == ("exam:2.0", ["a"], ["b"])
    [there] = found["images"]["prepulled"]
    assert (there["reference"], there["nodes"]) == ("netlab:1.1", ["a", "b"])
    assert found["images"]["unknown"] == []
    assert found["nodes"] == [
        {"name": "a", "eligible": True, "cached": ["exam:2.0", "netlab:1.1"]},
        {"name": "b", "eligible": True, "cached": ["netlab:1.1"]},
        {"name": "c", "eligible": False, "comment": "it is not Ready", "cached": []},
    ]


def test_prepulls_say_unknown_where_a_worker_does_not_say() -> None:
    found = prepulls_answer(menu(*sized("netlab", "1.1")), [node("a", known=False), node("b", "iosv-159")])
    assert found["images"]["pending"] == found["images"]["prepulled"] == []
    [unknown] = found["images"]["unknown"]
    assert (unknown["reference"], unknown["nodes"]) == ("netlab:1.1", ["b"])
    assert [each["cached"] for each in found["nodes"]] == [None, ["netlab:1.1"]]


def test_a_form_offers_what_fits() -> None:
    """R002-035: forms may differ per user."""
    found = offer(NETLAB, LabQuota(2000), [node("a", "iosv-159")])
    assert found.images == (FormEntry("netlab:1.1", "netlab: Release 1.1", usual=True),)
    assert [entry.value for entry in found.others] == ["netlab:1.1", "netlab:1.0"]
    assert found.sizes == (
        FormEntry("small", "small (1 CPU, 2Gi)", usual=True),
        FormEntry("medium", "medium (2 CPUs, 6Gi)"),
    )
    assert not found.unavailable


@pytest.mark.parametrize(
    ("quota", "may_use", "told"),
    [
        (LabQuota(spawn=False), {"netlab-small"}, "Your quota allows no lab."),
        (LabQuota(100), {"netlab-small"}, "Your quota allows no lab of any size."),
        (LabQuota(), set(), "There is no lab that you may use."),
    ],
)
def test_a_form_says_why_there_is_no_lab(quota: LabQuota, may_use: set[str], told: str) -> None:
    found = offer(NETLAB.only(may_use), quota, [])
    assert found.unavailable == told
    assert not found.images


def test_a_form_always_has_an_image_outside_the_dropdown() -> None:
    found = offer(NETLAB, LabQuota(), [node("a")])
    assert [entry.value for entry in found.images] == ["netlab:1.1"]
