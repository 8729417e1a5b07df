"""Grades of a class as the gradebooks of Moodle and Canvas import them. Pure.

    Moodle, "Import grades, CSV file" (https://docs.moodle.org/en/Grade_import): columns of any names, which the
    import asks about: one identifies the user, others are grades and feedback. An import of feedback without a grade
    takes the grade away, so each learner has both or neither.

        Username,netlab,netlab (feedback)
        alice,83,score 83 of 100: well done

    Canvas, "Import" of the gradebook (`lib/gradebook_importer.rb` of canvas-lms): these five columns in this order,
    then a column for each assignment, by its title or as `Title (ID)`; a second row says how many points are possible,
    and a title that there is not becomes an assignment. An empty ID is looked up by the login.

        Student,ID,SIS User ID,SIS Login ID,Section,netlab
        Points Possible,,,,,100
        "Müller, Anna",,,alice,,83

An empty cell changes nothing in either of them.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from vkprovider.classroom.grades import PASSED, LearnerGrade
from vkprovider.classroom.roster import sheet
from vkprovider.lablet.shownname import by_last_name

POINTS: Final = 100.0
"""How many points a passed lab is worth, and those that a score is counted in."""
_SCORE: Final = re.compile(r"score (\d+(?:\.\d+)?) of (\d+(?:\.\d+)?)")
_CANVAS: Final = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_DIGITS: Final = 2
"""As many as Canvas shows, and compares."""


class GradebookError(ValueError):
    """Grades cannot be written so; the text says why."""


class LearningSystem(StrEnum):
    """Whose gradebook it is."""

    MOODLE = "moodle"
    CANVAS = "canvas"


def _points(grade: LearnerGrade, possible: float) -> str:
    """Return the points of a graded lab, of those that are possible: a score is scaled, a verdict is all or none."""
    said = _SCORE.match(grade.message)
    if said is not None and float(said[2]) > 0:
        return _number(float(said[1]) / float(said[2]) * possible)
    return _number(possible if grade.passed == PASSED else 0.0)


def _number(value: float) -> str:
    return f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".")


def gradebook(
    grades: Iterable[LearnerGrade], system: LearningSystem, *, points: float = POINTS, column: str = ""
) -> str:
    """Return a CSV file that a learning system imports: a row for each learner, a column for each definition.

    Of several grades of one learner for one lab the last that somebody graded counts.

    Args:
        grades: In any order.
        system: Which one.
        points: How many are possible.
        column: What the column is called, if there is one definition; "": as the definition.

    Raises:
        GradebookError: A column is named for several definitions, or there is nothing to write.
    """
    last: dict[tuple[str, str], LearnerGrade] = {}
    for grade in sorted(grades, key=lambda each: each.at):
        if grade.passed:
            last[grade.learner, grade.definition] = grade
    if not last:
        raise GradebookError("there are no grades: nobody has graded what these learners left")
    titles = sorted({definition for _, definition in last})
    if column and len(titles) > 1:
        raise GradebookError(f"these are grades for several labs, {', '.join(titles)}; one column cannot have them")
    shown = {grade.learner: grade.shown for grade in last.values()}
    learners = sorted(shown, key=lambda each: by_last_name(each, shown[each]))
    headings = {title: column or title for title in titles}
    rows = [(each, shown[each] or each, [last.get((each, title)) for title in titles]) for each in learners]
    if system is LearningSystem.CANVAS:
        return _canvas(headings.values(), rows, points)
    return _moodle(headings.values(), rows, points)


_Row = tuple[str, str, Sequence[LearnerGrade | None]]
"""The learner, the name for people, and the grade in each column."""


def _canvas(titles: Iterable[str], rows: Iterable[_Row], points: float) -> str:
    names = list(titles)
    possible = ["Points Possible", "", "", "", "", *[_number(points) for _ in names]]
    body = [[shown, "", "", learner, "", *_cells(grades, points)] for learner, shown, grades in rows]
    return sheet([*_CANVAS, *names], [possible, *body])


def _moodle(titles: Iterable[str], rows: Iterable[_Row], points: float) -> str:
    headings = ["Username"]
    for title in titles:
        headings += [title, f"{title} (feedback)"]
    body = []
    for learner, _, grades in rows:
        cells = [learner]
        for grade in grades:
            cells += ["", ""] if grade is None else [_points(grade, points), grade.message]
        body.append(cells)
    return sheet(headings, body)


def _cells(grades: Iterable[LearnerGrade | None], points: float) -> list[str]:
    return ["" if grade is None else _points(grade, points) for grade in grades]
