"""Numbers and their nouns."""

import pytest

from vkprovider.platform.messages import count


@pytest.mark.parametrize(
    ("number", "words", "text"),
    [
        (0, ("lablet",), "0 lablets"),
        (1, ("lablet",), "1 lablet"),
        (2, ("lablet",), "2 lablets"),
        (1, ("TCP port",), "1 TCP port"),
        (3, ("policy", "policies"), "3 policies"),
        (2, ("not checked", "not checked"), "2 not checked"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, words: tuple[str, ...], text: str) -> None:
    assert count(number, *words) == text
