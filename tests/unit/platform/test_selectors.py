"""Label selectors mean what they mean to the API server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.platform.selectors import Selector

FRIDAY = {"class": "friday", "room": "a", "example.com/seat": "4", "empty": ""}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "class=friday",
        "class==friday",
        " class = friday , room=a",
        "class!=monday",
        "missing!=x",
        "class in (monday, friday)",
        "class in (monday,friday),room in (a)",
        "class notin (monday)",
        "missing notin (x)",
        "class",
        "!missing",
        "example.com/seat=4",
        "empty=",
    ],
)
def test_selects(text: str) -> None:
    assert Selector.parsed(text).accepts(FRIDAY)


@pytest.mark.parametrize(
    "text",
    [
        "class=monday",
        "class=friday,room=b",
        "class!=friday",
        "class in (monday)",
        "class notin (friday)",
        "missing",
        "!class",
        "missing=x",
        "missing in (x)",
        "empty=x",
    ],
)
def test_does_not_select(text: str) -> None:
    assert not Selector.parsed(text).accepts(FRIDAY)


@pytest.mark.parametrize(
    "text", ["=", ",", "class=friday,", "class=a b", "class in friday", "class in (a", "!", "a>5", "-a", "x" * 1025]
)
def test_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"label selector|requirement"):
        Selector.parsed(text)


@given(st.text("ab=!,() in", max_size=30), st.dictionaries(st.sampled_from("ab"), st.sampled_from(["", "a", "b"])))
def test_any_text_is_a_selector_or_refused(text: str, labels: dict[str, str]) -> None:
    try:
        found = Selector.parsed(text)
    except ValueError:
        return
    assert found.accepts(labels) in {True, False}
