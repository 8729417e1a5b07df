"""What an instructor tells the learner of a lablet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.lablet import names
from vkprovider.lablet.inputs import CHARS_MAX, InstructorMessage, annotation_for, inputs_of, message_of
from vkprovider.platform.objects import Metadata

NOW = 1769860800


def written(text: str) -> dict[str, str]:
    return {name: value for name, value in annotation_for(text, NOW).items() if value is not None}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("We go on at 14:00.", "We go on at 14:00."),
        (" two\r\nlines\t here ", "two lines here"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("x" * 600, "x" * CHARS_MAX),
        ("a\x1b[2Jb", "a\N{REPLACEMENT CHARACTER}[2Jb"),
    ],
)
def test_what_is_written_is_shown(text: str, shown: str) -> None:
    assert message_of(written(text)) == InstructorMessage(NOW, shown)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_one_removes_what_is_there(text: str) -> None:
    assert annotation_for(text, NOW) == {names.ANNOTATION_MESSAGE: None}
    assert message_of({names.ANNOTATION_MESSAGE: text}) is None


def test_one_that_kubectl_wrote() -> None:
    assert message_of({names.ANNOTATION_MESSAGE: "hello there"}) == InstructorMessage(None, "hello there")
    assert message_of({names.ANNOTATION_MESSAGE: "2026-01-31T12:00:00Z"}) is None
    assert message_of({}) is None


@given(st.text(), st.integers(0, 2**33))
def test_any_text_is_one_line_that_the_provider_knows(text: str, now: int) -> None:
    notes = {name: value for name, value in annotation_for(text, now).items() if value is not None}
    assert inputs_of(Metadata("", annotations=notes)).faults == ()
    message = message_of(notes)
    assert message is None or (message.at == now and message.text.isprintable() and len(message.text) <= CHARS_MAX)
