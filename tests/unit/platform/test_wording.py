"""Numbers and their nouns."""

import pytest

from vkprovider.platform.messages import count, in_utf8


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


def test_a_file_of_another_encoding_is_named_with_what_to_do() -> None:
    text = "lab: Z\u00fcrich"
    assert in_utf8(text.encode()) == in_utf8(text.encode("utf-8-sig")) == text
    for encoding, said in (("utf-16", "UTF-16"), ("latin-1", "ISO-8859-1")):
        with pytest.raises(ValueError, match=rf"not UTF-8, probably {said}: convert it \(iconv -f {said}"):
            in_utf8(text.encode(encoding))
