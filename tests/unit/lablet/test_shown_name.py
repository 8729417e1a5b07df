"""The name by which people know a learner: what is kept of it, who has one, and the order that it makes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.classroom.pods import Assignment
from vkprovider.classroom.roster import read_roster
from vkprovider.lablet import names
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.shownname import SHOWN_CHARS_MAX, by_last_name, name_in, shown_in, spoken, tidied, with_name
from vkprovider.platform.objects import Metadata


@given(st.text(max_size=300))
def test_what_is_kept_is_one_line_that_can_be_printed(text: str) -> None:
    kept = tidied(text)
    assert kept.isprintable()
    assert len(kept) <= SHOWN_CHARS_MAX
    assert kept == kept.strip()
    assert tidied(kept) == kept
    assert inputs_of(Metadata("", annotations=Assignment("anna", shown=kept).annotations())).faults == ()
    assert name_in({names.ANNOTATION_SHOWN_NAME: text}) == kept, "who writes annotations by hand is read alike"


@pytest.mark.parametrize("shown", ["a" * (SHOWN_CHARS_MAX + 1), "An\x1b[2Jna", "Anna\u202e"])
def test_what_is_not_shown_as_it_is_written_is_reported(shown: str) -> None:
    [fault] = inputs_of(Metadata("", annotations={names.ANNOTATION_SHOWN_NAME: shown})).faults
    assert fault == "vkprovider.io/shown-name is not a name of at most 128 printable characters"


def test_who_has_no_lablet_has_no_name() -> None:
    note = {names.ANNOTATION_SHOWN_NAME: "Müller, Anna"}
    assert shown_in(lablet_pod("warm-1", notes=note)) == "", "it is the last learner's"
    assert shown_in(lablet_pod("warm-1", notes={**note, names.ANNOTATION_USERNAME: "anna"})) == "Müller, Anna"
    assert (with_name("anna", "Müller, Anna"), with_name("anna", "")) == ("anna (Müller, Anna)", "anna")


LISTED = [
    "Äbel, Zoe",
    "Anna Berg",
    "Berg, Bert",
    "de la Cruz, Eva",
    "Émile Dupont",
    "ma",
    "MÜLLER, Anna",
    "van Aken, Jo",
]
"""In the order of the last names, each with its first letters as the user."""


@pytest.mark.parametrize("turned", [False, True])
def test_people_stand_by_their_last_names(*, turned: bool) -> None:
    people = [("ma", "") if shown == "ma" else (shown[:2].casefold(), shown) for shown in LISTED]
    mixed = people[::-1] if turned else sorted(people)
    assert sorted(mixed, key=lambda one: by_last_name(*one)) == people


@pytest.mark.parametrize(
    ("shown", "said"),
    [("Müller, Anna", "Anna Müller"), ("Anna Müller", "Anna Müller"), ("Madonna", "Madonna"), ("王小明", "王小明")],
)
def test_a_name_is_said_with_the_first_name_first(shown: str, said: str) -> None:
    assert spoken(shown) == said
    assert by_last_name("u", shown) == by_last_name("u", said)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("username,name\nanna,Anna  Müller\n", "Anna Müller"),
        ('username,name\nanna,"Anna\nMüller"\n', "Anna Müller"),
        ("username,name\nanna,\u200e\u202aAnna Mu\u0308ller\u202c\n", "Anna Müller"),
        ("Vorname;Nachname;Anmeldename\nAnna;Müller;anna\n", "Müller, Anna"),
        ("First name,Last name,Username\nAnna,,anna\n", "Anna"),
        (f"username,name\nanna,{'x' * 300}\n", "x" * SHOWN_CHARS_MAX),
        ("username,seat\nanna,4\n", ""),
    ],
)
def test_a_list_brings_it_along(text: str, shown: str) -> None:
    [learner] = read_roster(text, "a list").learners
    assert (learner.user, learner.shown) == ("anna", shown)
