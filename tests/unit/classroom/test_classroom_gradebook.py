"""Grades as the gradebooks of Moodle and Canvas import them."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkprovider.classroom.gradebook import GradebookError, LearningSystem, gradebook
from vkprovider.classroom.grades import LearnerGrade

MOODLE = LearningSystem.MOODLE


def grade(
    learner: str, definition: str, at: str, *, passed: bool | None = None, message: str = "", shown: str = ""
) -> LearnerGrade:
    said = {True: "yes", False: "no", None: ""}[passed]
    return LearnerGrade(learner, said, "", "p-1", at=at, message=message, definition=definition, shown=shown)


ANNA = grade("alice", "netlab", "2027-03-01", passed=True, message="score 83 of 100: well done", shown="Müller, Anna")
BOB = grade("bob", "netlab", "2027-03-01", passed=False, message="score 4.5 of 20", shown="Ångström, Bob")
NONE = grade("carol", "netlab", "2027-03-01")


def test_moodle_has_grade_and_feedback_of_each_lab() -> None:
    assert gradebook([ANNA, BOB, NONE], LearningSystem.MOODLE) == (
        "Username,netlab,netlab (feedback)\nbob,22.5,score 4.5 of 20\nalice,83,score 83 of 100: well done\n"
    ), "by last name; nothing for whom nobody graded"


def test_canvas_has_its_five_columns_and_the_points_that_are_possible() -> None:
    assert gradebook([ANNA, BOB], LearningSystem.CANVAS, points=20, column="Lab 1 (4711)") == (
        "Student,ID,SIS User ID,SIS Login ID,Section,Lab 1 (4711)\n"
        "Points Possible,,,,,20\n"
        '"Ångström, Bob",,,bob,,4.5\n'
        '"Müller, Anna",,,alice,,16.6\n'
    )


@pytest.mark.parametrize(
    ("passed", "message", "points"),
    [
        (True, "", "50"),
        (False, "no router answers", "0"),
        (True, "score 1 of 3", "16.67"),
        (True, "score 5 of 0", "50"),
        (True, "well done: score 83 of 100", "50"),
    ],
)
def test_a_verdict_in_points(passed: bool, message: str, points: str) -> None:  # noqa: FBT001 (as it is said)
    rows = list(
        csv.reader(io.StringIO(gradebook([grade("a", "n", "1", passed=passed, message=message)], MOODLE, points=50)))
    )
    assert rows[1][:2] == ["a", points]


def test_the_last_grade_of_a_lab_counts_and_each_lab_has_a_column() -> None:
    again = grade("alice", "netlab", "2027-03-08", passed=True, message="score 9 of 10")
    later = grade("alice", "netlab", "2027-03-09")
    other = grade("bob", "exam", "2027-03-02", passed=True)
    rows = list(csv.reader(io.StringIO(gradebook([again, ANNA, later, other], LearningSystem.CANVAS))))
    assert rows[0][5:] == ["exam", "netlab"]
    assert {row[3]: row[5:] for row in rows[2:]} == {"alice": ["", "90"], "bob": ["100", ""]}


def test_what_cannot_be_written_is_said() -> None:
    with pytest.raises(GradebookError, match="there are no grades"):
        gradebook([NONE], LearningSystem.MOODLE)
    with pytest.raises(GradebookError, match="several labs, exam, netlab"):
        gradebook([ANNA, grade("bob", "exam", "1", passed=True)], LearningSystem.CANVAS, column="Lab 1")


def test_no_cell_is_a_formula() -> None:
    evil = grade("mallory", "netlab", "1", passed=True, message="=HYPERLINK(1)", shown="=cmd|' /C calc'!A0")
    for system in LearningSystem:
        text = gradebook([evil], system)
        assert not re.search(r'(^|[,"])=', text, re.MULTILINE), text


names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)


@given(st.lists(st.tuples(names, st.sampled_from(["a", "b"]), st.booleans(), st.text(max_size=20)), min_size=1))
def test_a_file_has_a_row_for_each_learner_as_wide_as_its_heading(drawn: list[tuple[str, str, bool, str]]) -> None:
    grades = [grade(who, lab, "1", passed=passed, message=said) for who, lab, passed, said in drawn]
    for system in LearningSystem:
        head, *rows = csv.reader(io.StringIO(gradebook(grades, system)))
        assert all(len(row) == len(head) for row in rows)
        assert len(rows) - (system is LearningSystem.CANVAS) == len({each.learner for each in grades})
