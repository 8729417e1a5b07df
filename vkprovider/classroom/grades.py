"""Grades of a class, of what learners have left. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from vkprovider.classroom.roster import sheet
from vkprovider.lablet.archives import ArchiveEntry
from vkprovider.lablet.shownname import tidied
from vkprovider.lablet.standing import score_in
from vkprovider.lablet.standings import Standing
from vkprovider.platform.times import iso

PASSED: Final = "yes"
NOT_PASSED: Final = "no"
PASSED_BY: Final[Mapping[Standing, str]] = {Standing.PASSED: PASSED, Standing.NOT_PASSED: NOT_PASSED}
"""Whether a learner passed, by how a lablet stands that has ended; without an entry nobody has graded it."""


class LearnerGrade(msgspec.Struct, frozen=True):
    """A learner's grade; what is unknown is empty.

    Attributes:
        learner: Whose.
        passed: `yes` or `no`; "" if nobody has graded it.
        score: As the grader gave it.
        name: Of the Pod.
        at: When the work was collected.
        message: Of the grader.
        definition: The LabletDefinition.
        version: Of its content.
        id: Of what the learner left, for `kubectl lablet configs`.
        shown: The name by which people know the learner.
    """

    learner: str
    passed: str
    score: str
    name: str
    at: str = ""
    message: str = ""
    definition: str = ""
    version: str = ""
    id: str = ""
    shown: str = ""


def grade_in(entry: ArchiveEntry) -> LearnerGrade:
    """Return the grade of what a learner left."""
    verdict = entry.grade
    return LearnerGrade(
        learner=entry.learner,
        passed="" if verdict is None else PASSED if verdict.passed else NOT_PASSED,
        score=score_in(verdict.message) if verdict is not None else "",
        name=entry.pod,
        at=iso(entry.at),
        message=verdict.message if verdict is not None else "",
        definition=entry.definition,
        version=entry.version,
        id=entry.id,
        shown=tidied(entry.shown),
    )


HEADINGS: Final = ("learner", "name", "passed", "score", "when", "lablet", "definition", "version", "message")
"""Of the columns of grades as CSV."""


def as_csv(grades: Iterable[LearnerGrade]) -> str:
    """Return grades as CSV for a spreadsheet."""
    cells = (
        (
            each.learner,
            each.shown,
            each.passed,
            each.score,
            each.at,
            each.name,
            each.definition,
            each.version,
            each.message,
        )
        for each in grades
    )
    return sheet(HEADINGS, cells)
