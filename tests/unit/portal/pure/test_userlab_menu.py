"""The menu: what users may ask for, and what they get (R002-050…052, R002-068…071)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.portal.pure.menus import definition, menu, sized
from vkprovider.portal.pure.config import Amounts, LabQuota
from vkprovider.portal.pure.menu import LabChoice, Menu, VersionKind, menu_order, resolve, version_of
from vkprovider.portal.pure.options import Grounds, ImageBy, LabWish, Rejection

SCIPLAT = ["w_2022_37", "w_2022_36", "w_2022_35", "d_2022_09_14", "d_2022_09_13", "r24_0_0", "r23_0_2", "exp_w_x"]


def got(the_menu: Menu, by: ImageBy, image: str, size: str = "", quota: LabQuota | None = None) -> LabChoice:
    found = resolve(the_menu, LabWish(by, image, size), quota or LabQuota())
    assert isinstance(found, LabChoice), found
    return found


def why(the_menu: Menu, by: ImageBy, image: str, size: str = "", quota: LabQuota | None = None) -> Rejection:
    found = resolve(the_menu, LabWish(by, image, size), quota or LabQuota())
    assert isinstance(found, Rejection), found
    return found


@pytest.mark.parametrize(
    ("tag", "kind", "cycle", "name"),
    [
        ("r21_0_1", VersionKind.RELEASE, None, "Release 21.0.1"),
        ("1.2.0", VersionKind.RELEASE, None, "Release 1.2.0"),
        ("v2", VersionKind.RELEASE, None, "Release 2"),
        ("r21_0_0_rc1", VersionKind.CANDIDATE, None, "Release candidate 21.0.0-rc1"),
        ("1.2.0-rc2", VersionKind.CANDIDATE, None, "Release candidate 1.2.0-rc2"),
        ("w_2022_37", VersionKind.WEEKLY, None, "Weekly 2022_37"),
        ("d_2022_09_14", VersionKind.DAILY, None, "Daily 2022_09_14"),
        ("w_2022_37_c0026.003", VersionKind.WEEKLY, 26, "Weekly 2022_37 (cycle 0026, build 003)"),
        ("r1_0_c0026", VersionKind.RELEASE, 26, "Release 1.0 (cycle 0026)"),
        ("w_2022_37_amd64", VersionKind.WEEKLY, None, "Weekly 2022_37 [amd64]"),
        ("exp_new-kernel", VersionKind.EXPERIMENTAL, None, "Experimental new-kernel"),
        ("recommended", VersionKind.OTHER, None, "recommended"),
        ("2024-fall", VersionKind.RELEASE, None, "Release 2024 [fall]"),
    ],
)
def test_versions_are_named_by_their_conventions(tag: str, kind: VersionKind, cycle: int | None, name: str) -> None:
    """R002-070."""
    found = version_of(tag)
    assert (found.kind, found.cycle, found.name) == (kind, cycle, name)


def test_the_newest_version_of_a_kind_comes_first() -> None:
    tags = ["1.9.0", "1.10.0", "1.10", "w_2021_52", "w_2022_2", "w_2022_10", "1.10.1_c0001", "1.10.1", "latest"]
    found = sorted(map(version_of, tags), key=menu_order)
    assert [each.tag for each in found] == [
        *("1.10.1_c0001", "1.10.1", "1.10.0", "1.10", "1.9.0"),
        *("w_2022_10", "w_2022_2", "w_2021_52", "latest"),
    ]


tags = st.text("rwdvexpc_.-0123456789", max_size=40) | st.from_regex(
    r"(r|v|w_|d_)?\d{1,3}([._]\d{1,3}){0,3}(_rc\d)?(_c\d{4}(\.\d{3})?)?", fullmatch=True
)


@given(tags, tags)
def test_any_two_versions_have_an_order(tag: str, other: str) -> None:
    found, second = version_of(tag), version_of(other)
    assert (found.tag, second.tag) == (tag, other)
    before, after = menu_order(found) < menu_order(second), menu_order(second) < menu_order(found)
    assert (before, after) in ({(False, False)} if tag == other else {(True, False), (False, True)})


def test_definitions_of_a_family_are_one_image_in_sizes() -> None:
    found = menu(*sized("netlab", "1.1", "1.0"), definition("", "small", "9.9"))
    assert [image.reference for image in found.images] == ["netlab:1.1", "netlab:1.0"]
    assert list(found.images[0].sizes) == ["small", "medium", "large"]
    large = found.images[1].sizes["large"]
    assert (large.pod_image, large.digest) == ("netlab-large:1.0", "sha256:netlab-large-1.0")
    assert large.amounts == Amounts(4000, 12 * 2**30)


def test_a_definition_without_a_size_has_the_usual_one() -> None:
    assert list(menu(definition("netlab", "", "1.0")).images[0].sizes) == ["small"]
    assert list(menu(definition("netlab", "", "1.0"), defaultSize="large").images[0].sizes) == ["large"]


def test_a_size_of_an_own_name_comes_after_the_others() -> None:
    found = menu(definition("netlab", "huge", "1.0"), *sized("netlab", "1.0"))
    assert list(found.images[0].sizes) == ["small", "medium", "large", "huge"]


def test_of_two_definitions_with_one_size_the_first_by_name_counts() -> None:
    two = [definition("netlab", "small", "1.0", name="b"), definition("netlab", "small", "1.0", name="a")]
    assert menu(*two).images[0].sizes["small"].definition == "a"
    assert menu(*reversed(two)) == menu(*two)


def test_the_current_version_is_the_recommended_one() -> None:
    found = menu(*[definition("netlab", size, "2.0", "1.0", current="1.0") for size in ("small", "large")])
    assert [(image.version.tag, image.aliases) for image in found.images] == [
        ("1.0", ("recommended", "latest")),
        ("2.0", ()),
    ]
    for by, image in ((ImageBy.TYPE, "recommended"), (ImageBy.TAG, "latest"), (ImageBy.REFERENCE, "netlab:latest")):
        assert got(found, by, image).lab.pod_image == "netlab-small:1.0"


def test_a_version_with_the_recommended_name_is_the_recommended_one() -> None:
    """R002-070: the tag that recommendedTag names comes first."""
    images = {"recommendedTag": "recommended_c0026"}
    found = menu(definition("netlab", "small", "1.0", "recommended_c0026"), images=images)
    assert [image.version.tag for image in found.images] == ["recommended_c0026", "1.0"]
    assert got(found, ImageBy.TYPE, "recommended").lab.version == "recommended_c0026"


@pytest.mark.parametrize(
    ("image_type", "tag"),
    [("latest-weekly", "w_2022_37"), ("latest-daily", "d_2022_09_14"), ("latest-release", "r24_0_0")],
)
def test_an_image_type_is_the_newest_of_its_kind(image_type: str, tag: str) -> None:
    """R002-051."""
    assert got(menu(*sized("sciplat", *SCIPLAT)), ImageBy.TYPE, image_type).image.version.tag == tag


def test_a_request_needs_no_more_than_an_image_and_a_size() -> None:
    """R002-050, R002-052."""
    found = menu(*sized("sciplat", *SCIPLAT))
    assert got(found, ImageBy.TYPE, "recommended", "medium").lab.pod_image == "sciplat-medium:w_2022_37"
    assert got(found, ImageBy.TAG, "r23_0_2", "large").lab.pod_image == "sciplat-large:r23_0_2"
    assert got(found, ImageBy.REFERENCE, "sciplat:d_2022_09_13").size == "small"


def test_tags_and_types_mean_the_usual_family() -> None:
    labs = [*sized("beta", "1.0"), *sized("alpha", "2.0")]
    assert got(menu(*labs), ImageBy.TYPE, "recommended").image.reference == "alpha:2.0"
    usual = menu(*labs, images={"family": "beta"})
    assert got(usual, ImageBy.TYPE, "recommended").image.reference == "beta:1.0"
    assert why(usual, ImageBy.TAG, "2.0").grounds is Grounds.UNKNOWN_IMAGE
    assert got(usual, ImageBy.REFERENCE, "alpha:2.0").image.reference == "alpha:2.0"
    assert usual.images[0].family == "beta"


def test_a_size_of_another_version_is_found_by_an_alias() -> None:
    found = menu(definition("netlab", "small", "1.0"), definition("netlab", "large", "2.0"))
    assert got(found, ImageBy.TYPE, "recommended", "small").lab.pod_image == "netlab-small:1.0"
    assert got(found, ImageBy.TAG, "latest", "large").lab.pod_image == "netlab-large:2.0"


@pytest.mark.parametrize(
    ("by", "image", "size", "grounds", "loc", "told"),
    [
        (ImageBy.TAG, "9.9", "", Grounds.UNKNOWN_IMAGE, "image_tag", "there is no image '9.9'; there is 1.0"),
        (ImageBy.REFERENCE, "netlab:9.9", "", Grounds.UNKNOWN_IMAGE, "image_list", "there is netlab:1.0"),
        (ImageBy.REFERENCE, "other:1.0", "", Grounds.UNKNOWN_IMAGE, "image_list", "there is netlab:1.0"),
        (ImageBy.TYPE, "latest-daily", "", Grounds.UNKNOWN_IMAGE, "image_type", "no image of type latest-daily"),
        (ImageBy.TAG, "1.0", "huge", Grounds.INVALID_LAB_SIZE, "size", "has no size 'huge'; there is small, medium"),
    ],
)
def test_what_is_not_on_the_menu_is_refused(
    by: ImageBy, image: str, size: str, grounds: Grounds, loc: str, told: str
) -> None:
    found = why(menu(*sized("netlab", "1.0")), by, image, size)
    assert (found.grounds, found.loc) == (grounds, ("body", "options", loc))
    if by is not ImageBy.TYPE:
        assert told in found.msg


def test_a_lab_beyond_the_quota_is_refused_with_what_would_fit() -> None:
    found = menu(*sized("netlab", "1.0"))
    refused = why(found, ImageBy.TAG, "1.0", "large", LabQuota(2000))
    assert (refused.grounds, refused.loc) == (Grounds.INSUFFICIENT_QUOTA, ("body", "options", "size"))
    assert refused.msg == "size large of netlab:1.0 is more than your quota allows; it would fit as small, medium"
    none = why(found, ImageBy.TAG, "1.0", "large", LabQuota(100))
    assert none.msg == "size large of netlab:1.0 is more than your quota allows; no size of it fits"
    assert why(found, ImageBy.TAG, "1.0", "", LabQuota(spawn=False)).grounds is Grounds.PERMISSION_DENIED
    assert got(found, ImageBy.TAG, "1.0", "medium", LabQuota(2000)).lab.pod_image == "netlab-medium:1.0"


def test_a_user_gets_only_what_the_user_may_use() -> None:
    found = menu(*sized("netlab", "1.0"), *sized("secret", "1.0")).only({"netlab-small"})
    assert [image.reference for image in found.images] == ["netlab:1.0"]
    assert list(found.images[0].sizes) == ["small"]
    assert why(found, ImageBy.REFERENCE, "secret:1.0").msg == "there is no image 'secret:1.0'; there is netlab:1.0"
    nothing = found.only(set())
    assert why(nothing, ImageBy.TYPE, "recommended").grounds is Grounds.UNKNOWN_IMAGE
    assert "none that you may use" in why(nothing, ImageBy.TAG, "1.0").msg


@pytest.mark.parametrize(
    ("images", "shown"),
    [
        ({}, "w_2022_37 r24_0_0 w_2022_36 d_2022_09_14 d_2022_09_13"),
        ({"numReleases": 0, "numWeeklies": 1, "numDailies": 1}, "w_2022_37 d_2022_09_14"),
        ({"numWeeklies": 0, "numDailies": 0, "pins": ["r23_0_2", "gone"]}, "w_2022_37 r24_0_0 r23_0_2"),
        ({"numWeeklies": 1, "aliasTags": ["w_2022_37"], "numReleases": 0, "numDailies": 0}, "w_2022_37 w_2022_36"),
    ],
)
def test_the_newest_of_each_kind_and_pins_stand_outside_the_dropdown(images: dict[str, Any], shown: str) -> None:
    """R002-069."""
    found = menu(*sized("sciplat", *SCIPLAT), images=images)
    assert [image.version.tag for image in found.featured()] == shown.split()


OF_CYCLES = ["w_2022_38", "w_2022_37_c0026.001", "w_2022_36_c0026.002", "w_2022_35_c0025.001"]
CYCLE = {"cycle": 26, "recommendedTag": "recommended_c0026"}


def test_the_newest_of_a_cycle_are_featured_beside_the_recommended_one() -> None:
    """R002-069."""
    found = menu(*sized("sal", *OF_CYCLES), images=CYCLE)
    assert got(found, ImageBy.TYPE, "latest-weekly").image.version.tag == "w_2022_37_c0026.001"
    assert [image.version.tag for image in found.featured()] == OF_CYCLES[:3]


def test_a_cycle_hides_what_is_not_of_it() -> None:
    """R002-069: all but the recommended one, w_2022_38."""
    found = menu(*sized("sal", *OF_CYCLES), images=CYCLE)
    shown = {image.version.tag for image in (*found.featured(), *found.listed)}
    assert shown == set(OF_CYCLES[:3])
    assert why(found, ImageBy.TAG, "w_2022_35_c0025.001").grounds is Grounds.UNKNOWN_IMAGE


def test_aliases_are_no_images_of_their_own() -> None:
    """R002-069."""
    found = menu(*sized("sal", "w_2022_38", "latest_weekly"), images={"aliasTags": ["latest_weekly"]})
    assert [image.version.tag for image in found.listed] == ["w_2022_38"]
    assert got(found, ImageBy.TAG, "latest_weekly").lab.version == "latest_weekly"


def test_definitions_without_content_or_about_to_go_are_not_on_the_menu() -> None:
    assert menu(definition("netlab", "small")) == menu()
    assert menu().family == ""
    assert why(menu(), ImageBy.TYPE, "recommended").grounds is Grounds.UNKNOWN_IMAGE
