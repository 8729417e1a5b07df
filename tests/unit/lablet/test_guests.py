"""Who shares a lablet with its learner, as the annotation of its Pod names them."""

import pytest

from vkprovider.lablet.guests import GuestMode, fault_of_guests, guests_in, guests_note
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.names import ANNOTATION_GUESTS
from vkprovider.platform.objects import Metadata


def test_what_is_written_is_read() -> None:
    guests = {"eve": GuestMode.TYPE, "bob@example.com": GuestMode.WATCH}
    text = guests_note(guests)
    assert text == '{"bob@example.com":"watch","eve":"type"}'
    assert guests_in({ANNOTATION_GUESTS: text}) == guests
    assert guests_note({}) is None


@pytest.mark.parametrize(
    "text",
    [
        "bob",
        '["bob"]',
        '{"bob":"own"}',
        '{"":"watch"}',
        '{" bob":"watch"}',
        '{"b\\nob":"watch"}',
        '{"a":"watch","b":"watch","c":"watch","d":"watch"}',
        f'{{"{"x" * 257}":"type"}}',
    ],
)
def test_what_cannot_be_read_names_nobody_and_is_a_fault_of_the_pod(text: str) -> None:
    notes = {ANNOTATION_GUESTS: text}
    assert guests_in(notes) == {}
    assert "guests does not name up to 3 guests" in fault_of_guests(notes)
    assert inputs_of(Metadata("one", annotations=notes)).faults == (fault_of_guests(notes),)


@pytest.mark.parametrize("text", ["", "{}", '{"bob":"type"}'])
def test_what_can_be_read_is_none(text: str) -> None:
    assert inputs_of(Metadata("one", annotations={ANNOTATION_GUESTS: text})).faults == ()
