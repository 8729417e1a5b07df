"""Warm labs: which one is taken, and how many wait."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.portal.pure.builders import ENDING, FAILED, INSTALLATION, NOW, pod
from tests.unit.portal.pure.menus import menu, sized
from vkprovider.platform.objects import Metadata
from vkprovider.platform.times import iso
from vkprovider.portal.pure import leading, record
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.portalnames import warm_key
from vkprovider.portal.pure.record import LabRequest

WANTED = {"netlab": ("netlab-small:1.1", 2)}


def lab(
    number: int,
    *parts: Any,
    image: str = "netlab-small:1.1",
    family: str = "netlab",
    ready_at: int | None = NOW,
    deleted: bool = False,
    annotations: dict[str, str] | None = None,
    **the_pod: Any,
) -> UserLab:
    notes = record.annotation(LabRequest(id=f"w{number}", at=NOW, definition=image))
    for part in parts:
        notes |= record.annotation(part)
    meta = Metadata(
        f"nublado-{warm_key(number)}",
        uid=f"uid-{number}",
        creation_timestamp=iso(NOW + number),
        deletion_timestamp=iso(NOW) if deleted else None,
        labels=record.warm_labels_for(INSTALLATION, family),
        annotations=notes | (annotations or {}),
    )
    found = record.record_of(meta, INSTALLATION)
    assert found is not None
    ready = pod("", request=f"w{number}", end=None, ready=ready_at is not None, ready_at=ready_at or NOW, **the_pod)
    return UserLab(found, ready)


def test_the_one_that_waits_longest_is_taken_first() -> None:
    labs = [lab(1, ready_at=NOW + 5), lab(2, ready_at=NOW), lab(3, ready_at=NOW)]
    assert leading.takeable(labs, "netlab-small:1.1") == [labs[1], labs[2], labs[0]]


@pytest.mark.parametrize(
    "unfit",
    [
        lab(1, ready_at=None),
        lab(1, image="netlab-small:1.0"),
        lab(1, ENDING),
        lab(1, deleted=True),
        lab(1, phase="Succeeded"),
        lab(1, record.LabOutcome(id="w1", kind="create", phase="failed", at=NOW)),
        lab(1, annotations={"vkprovider.io/operation": "{"}),
        lab(1)._replace(pod=None),
        lab(1)._replace(pod=pod("", request="w1", ready=True, deleted=True)),
        lab(1)._replace(pod=pod(request="r1", ready=True)),
    ],
)
def test_only_a_ready_one_of_the_wanted_version_is_taken(unfit: UserLab) -> None:
    assert leading.takeable([unfit], "netlab-small:1.1") == []


def test_a_lab_that_has_a_user_is_not_taken_again() -> None:
    taken = lab(1)
    taken = taken._replace(record=taken.record._replace(user="alice", key="alice"))
    assert leading.takeable([taken], "netlab-small:1.1") == []
    assert leading.warm_plan([taken], WANTED) == leading.WarmPlan({"netlab": ("netlab-small:1.1", 2)}, ())


def test_the_recommended_version_waits_in_the_usual_size() -> None:
    found = menu(*sized("netlab", "1.1", "1.0"), *sized("other", "3.0"), warm={"netlab": 2, "other": 1, "gone": 1})
    assert leading.warm_images(found) == {"netlab": ("netlab-small:1.1", 2), "other": ("other-small:3.0", 1)}
    large = menu(*sized("netlab", "1.1"), warm={"netlab": 2}, defaultSize="large")
    assert leading.warm_images(large) == {"netlab": ("netlab-large:1.1", 2)}
    assert leading.warm_images(menu(*sized("netlab", "1.1"), warm={"netlab": 0})) == {}


def test_what_lacks_is_made_and_what_is_too_much_ends() -> None:
    assert leading.warm_plan([], WANTED).make == WANTED
    one, two, three = lab(1), lab(2), lab(3)
    assert leading.warm_plan([one], WANTED) == leading.WarmPlan({"netlab": ("netlab-small:1.1", 1)}, ())
    assert leading.warm_plan([three, one, two], WANTED) == leading.WarmPlan({}, (three,))
    booting = lab(0, ready_at=None)
    assert leading.warm_plan([booting, one, two], WANTED) == leading.WarmPlan({}, (booting,))


def test_labs_of_an_old_version_or_family_end() -> None:
    old, other = lab(1, image="netlab-small:1.0"), lab(2, family="gone")
    found = leading.warm_plan([old, other], WANTED)
    assert found.end == (old, other)
    assert found.make == WANTED


def test_what_fails_is_not_tried_without_a_pause() -> None:
    failed = lab(1, FAILED)
    assert leading.warm_plan([failed, lab(2)], WANTED) == leading.WarmPlan({}, ())
    assert leading.warm_plan([failed, lab(2), lab(3)], WANTED).end == (failed,)


def test_what_is_damaged_or_ends_is_left_alone() -> None:
    labs = [lab(1, annotations={"vkprovider.io/request": "{"}), lab(2, ENDING), lab(3, deleted=True)]
    assert leading.warm_plan(labs, {}) == leading.WarmPlan({}, ())


IMAGES = st.sampled_from(["netlab-small:1.1", "netlab-small:1.0"])
LABS = st.lists(st.tuples(IMAGES, st.booleans()), max_size=8)


@given(LABS, st.integers(1, 4))
def test_a_plan_that_was_carried_out_plans_nothing_more(found: list[tuple[str, bool]], number: int) -> None:
    labs = [lab(n, image=image, ready_at=NOW if ready else None) for n, (image, ready) in enumerate(found)]
    wanted = {"netlab": ("netlab-small:1.1", number)}
    first = leading.warm_plan(labs, wanted)
    kept = [each for each in labs if each not in first.end]
    made = [lab(100 + n) for n in range(first.make.get("netlab", ("", 0))[1])]
    assert len(kept) + len(made) == number
    assert leading.warm_plan([*kept, *made], wanted) == leading.WarmPlan({}, ())
