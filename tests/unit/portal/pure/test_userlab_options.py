"""The body of a request for a lab (R002-020, R002-021, R002-050, R002-051)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.portal.pure import options
from vkprovider.portal.pure.options import Grounds, ImageBy, LabWish, Rejection


def wanted(body: object, *, one_image: bool = False) -> LabWish:
    found = options.parse(body, one_image=one_image)
    assert isinstance(found, LabWish), found
    return found


def rejected(body: object, *, one_image: bool = False) -> list[Rejection]:
    found = options.parse(body, one_image=one_image)
    assert isinstance(found, list)
    assert found
    return found


PLAIN = {"enable_debug": True, "image_list": "netlab:w_2022_37", "reset_user_env": False, "size": "large"}
LISTED = {"enable_debug": ["true"], "image_list": ["netlab:w_2022_37"], "reset_user_env": ["false"], "size": ["large"]}


@pytest.mark.parametrize("given_options", [PLAIN, LISTED, {**PLAIN, "size": ["Large"], "enable_debug": "true"}])
def test_values_are_plain_or_lists_of_one_text(given_options: dict[str, Any]) -> None:
    """R002-021."""
    env = {"JUPYTERHUB_API_URL": "http://hub:8081"}
    found = wanted({"options": given_options, "env": env})
    assert found == LabWish(ImageBy.REFERENCE, "netlab:w_2022_37", "large", enable_debug=True, env=env)
    assert found.options == PLAIN


def test_numbers_are_texts_in_a_form() -> None:
    found = wanted({"options": {"image_tag": ["1.0"], "duration": ["7200"], "class": ["team"]}})
    assert (found.duration_s, found.class_, found.size) == (7200, "team", "")
    assert found.options == {
        "enable_debug": False,
        "image_tag": "1.0",
        "reset_user_env": False,
        "duration": 7200,
        "class": "team",
    }


@pytest.mark.parametrize(
    ("images", "by", "image"),
    [
        ({"image_type": "recommended"}, ImageBy.TYPE, "recommended"),
        ({"image_class": "latest-daily"}, ImageBy.TYPE, "latest-daily"),
        ({"image_type": "latest-weekly", "image_tag": "w_2022_37"}, ImageBy.TAG, "w_2022_37"),
        ({"image_tag": "x", "image_list": "netlab:1.0"}, ImageBy.REFERENCE, "netlab:1.0"),
        ({"image_list": options.USE_DROPDOWN, "image_dropdown": "netlab:2.0"}, ImageBy.REFERENCE, "netlab:2.0"),
        ({"image_list": "netlab:1.0", "image_dropdown": "netlab:2.0"}, ImageBy.REFERENCE, "netlab:1.0"),
    ],
)
def test_the_most_particular_name_of_the_image_counts(images: dict[str, str], by: ImageBy, image: str) -> None:
    """R002-051: image_tag takes precedence over image_type."""
    found = wanted({"options": images})
    assert (found.by, found.image) == (by, image)


def test_nublado_takes_one_name_of_the_image() -> None:
    body = {"options": {"image_class": "recommended", "image_tag": "x"}}
    [why] = rejected(body, one_image=True)
    assert why == Rejection(
        Grounds.INVALID_BODY, "only one of image_tag and image_type may be set", ("body", "options")
    )
    both = {"options": {"image_list": options.USE_DROPDOWN, "image_dropdown": "netlab:2.0"}}
    assert wanted(both, one_image=True).image == "netlab:2.0"


@pytest.mark.parametrize(
    ("body", "loc", "told"),
    [
        (None, ("body",), "body is no object of JSON"),
        ([], ("body",), "body is no object of JSON"),
        ({}, ("body", "options"), "options is missing: a request has options"),
        ({"options": []}, ("body", "options"), "options is no object of JSON"),
        ({"options": {}}, ("body", "options"), "name the image"),
        ({"options": {"size": "large"}}, ("body", "options"), "name the image"),
        ({"options": {"image_list": options.USE_DROPDOWN}}, ("body", "options"), "name the image"),
        ({"options": {"image_tag": ["a", "b"]}}, ("body", "options"), "image_tag has 2 values"),
        ({"options": {"image_tag": []}}, ("body", "options"), "image_tag has 0 values"),
        ({"options": {"image_tag": ""}}, ("body", "options", "image_tag"), "at least 1"),
        ({"options": {"image_tag": "a b"}}, ("body", "options", "image_tag"), "pattern"),
        ({"options": {"image_tag": "a\n"}}, ("body", "options", "image_tag"), "pattern"),
        ({"options": {"image_tag": "x" * 513}}, ("body", "options", "image_tag"), "512"),
        ({"options": {"image_tag": 5}}, ("body", "options", "image_tag"), "string"),
        ({"options": {"image_type": "newest"}}, ("body", "options", "image_type"), "latest-weekly"),
        ({"options": {"image_tag": "x", "sise": "large"}}, ("body", "options", "sise"), "there is no sise here"),
        ({"options": {"image_tag": "x", "enable_debug": "yes"}}, ("body", "options", "enable_debug"), "boolean"),
        ({"options": {"image_tag": "x", "enable_debug": 1}}, ("body", "options", "enable_debug"), "boolean"),
        ({"options": {"image_tag": "x", "duration": "soon"}}, ("body", "options", "duration"), "integer"),
        ({"options": {"image_tag": "x", "duration": -1}}, ("body", "options", "duration"), "greater"),
        ({"options": {"image_tag": "x", "class": "A b"}}, ("body", "options", "class"), "pattern"),
        ({"options": {"image_tag": "x"}, "env": {"a b": ""}}, ("body", "env"), "'a b' cannot be the name"),
        ({"options": {"image_tag": "x", "parameter.A": [1, 2]}}, ("body", "options"), "has 2 values"),
        ({"options": {"image_tag": "x", "parameter.A": None}}, ("body", "options"), "text, a whole number, true"),
        ({"options": {"image_tag": "x"}, "env": {"A": 1}}, ("body", "env", "A"), "string"),
        ({"options": {"image_tag": "x"}, "env": {"A": "s3cret\0"}}, ("body", "env"), "the value of A"),
        ({"options": {"image_tag": "x"}, "env": {"A": "\ud800"}}, ("body", "env"), "the value of A"),
        ({"options": {"image_tag": "x"}, "env": {"A": "x" * 300_000}}, ("body", "env"), "300001 bytes"),
        ({"options": {"image_tag": "x"}, "env": {f"A{n}": "" for n in range(201)}}, ("body", "env"), "too many"),
        ({"options": {"image_tag": "x"}, "more": 1}, ("body", "more"), "there is no more here"),
        ({"options": {"image_tag": "x", "{0}": ""}}, ("body", "options", "{0}"), "there is no {0} here"),
        ({"options": {"image_tag": "x"}, "env": {"{a}": ""}}, ("body", "env"), "'{a}' cannot be the name"),
    ],
)
def test_a_body_that_is_wrong_is_refused_where_it_is_wrong(body: object, loc: tuple[str, ...], told: str) -> None:
    [why] = rejected(body)
    assert (why.grounds, why.loc) == (Grounds.INVALID_BODY, loc)
    assert told in why.msg
    assert "s3cret" not in why.msg


def test_every_fault_is_named() -> None:
    found = rejected({"options": {"image_tag": "", "size": 1}, "env": {"A": 1}})
    assert sorted(why.loc for why in found) == [
        ("body", "env", "A"),
        ("body", "options", "image_tag"),
        ("body", "options", "size"),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["image_list", "image_tag", "image_type", "image_class", "size", "enable_debug", "duration"])


@given(st.one_of(JSON, st.fixed_dictionaries({"options": st.dictionaries(KEYS, JSON), "env": JSON})))
def test_any_json_is_understood_or_refused(body: object) -> None:
    found = options.parse(body)
    if isinstance(found, LabWish):
        json.dumps(found.options)
        assert found.image.isascii()
        assert all(name.isascii() for name in found.env)
    else:
        assert found
        assert all(why.loc[0] == "body" for why in found)
