"""`$(NAME)` in the value of a variable, against a plain reading of Kubernetes' rules."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vkprovider.labs.pure.lablet.environment.sources import expand

VALUES = {"A": "a", "B": "$(A)", "": "nameless", "A B": "spaced", "x(y": "odd"}
texts = st.text(st.sampled_from("$()AB x(y\nä"), max_size=30)


def expanded(text: str) -> str:
    """Expand a text one character at a time, as k8s.io/kubernetes/third_party/forked/golang/expansion does."""
    result, at = "", 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            result, at = result + text[at], at + 1
        elif text[at + 1] == "$":
            result, at = f"{result}$", at + 2
        elif text[at + 1] != "(" or ")" not in text[at:]:
            result, at = result + text[at : at + 2], at + 2
        else:
            name = text[at + 2 : text.index(")", at)]
            result, at = result + VALUES.get(name, f"$({name})"), at + len(name) + 3
    return result


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("$(A)", "a"),
        ("x$(A)$(A)y", "xaay"),
        ("$(B)", "$(A)"),
        ("$(C)", "$(C)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$$$$(A)", "$$(A)"),
        ("$$", "$"),
        ("$", "$"),
        ("$A ${A} $[A] (A)", "$A ${A} $[A] (A)"),
        ("$(A", "$(A"),
        ("$(A$(A)", "$(A$(A)"),
        ("$()", "nameless"),
        ("$(A B)", "spaced"),
        ("$(x(y)", "odd"),
        ("$((A))", "$((A))"),
        ("\\$(A)", "\\a"),
        ("a$", "a$"),
        ("$)$(A)", "$)a"),
        ("$(A)$(", "a$("),
        ("", ""),
    ],
)
def test_syntax(text: str, read: str) -> None:
    assert expand(text, VALUES, chars_max=100) == read
    assert expanded(text) == read


@given(texts)
@example("$(A$$(A)")
def test_every_text_is_expanded_as_kubernetes_does(text: str) -> None:
    assert expand(text, VALUES, chars_max=1000) == expanded(text)


@given(texts, st.integers(0, 40))
def test_a_text_is_as_long_as_allowed_or_refused(text: str, chars_max: int) -> None:
    wanted = expanded(text)
    if len(wanted) <= chars_max:
        assert expand(text, VALUES, chars_max=chars_max) == wanted
    else:
        with pytest.raises(ValueError, match="more than"):
            expand(text, VALUES, chars_max=chars_max)


@pytest.mark.parametrize("hostile", ["$(" * 300_000, "$$" * 300_000, "$(a" * 200_000])
def test_hostile_text_is_expanded_at_once(hostile: str) -> None:
    """In quadratic time each of them would take minutes."""
    assert len(expand(hostile, {}, chars_max=10**6)) in {len(hostile), len(hostile) // 2}
