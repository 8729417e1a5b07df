"""The grades of a class: of lablets that have ended and are still there, and of what learners of before have left."""

from collections.abc import Iterable, Sequence

import msgspec

from vkprovider.classroom.grades import PASSED_BY, LearnerGrade, grade_in
from vkprovider.lablet.archives import ArchiveEntry
from vkprovider.lablet.shownname import by_last_name, tidied
from vkprovider.portal.pure.classes import Row


def grades_of(rows: Iterable[Row], entries: Sequence[ArchiveEntry]) -> list[LearnerGrade]:
    """Return the grades of a class by learner, the newest first.

    A lablet that has ended says how; where its learner has left something, that has the same grade and says more.

    Args:
        rows: Of the lablets that are there.
        entries: What learners of the namespace have left.
    """
    found = {(each.id, each.learner): grade_in(each) for each in entries if each.learner}
    for row in rows:
        if (passed := PASSED_BY.get(row.standing, "")) and row.learner:
            key = row.uid, row.learner
            found[key] = _with(found.get(key), row, passed)
    grades = sorted(found.values(), key=lambda each: each.at, reverse=True)
    shown = {each.learner: each.shown for each in reversed(grades) if each.shown}
    return sorted(grades, key=lambda each: by_last_name(each.learner, shown.get(each.learner, "")))


def _with(kept: LearnerGrade | None, row: Row, passed: str) -> LearnerGrade:
    """Return the grade that a lablet shows, beside what is kept of the same learner in it."""
    if kept is None:
        return LearnerGrade(row.learner, passed, row.score, row.pod, message=row.why, shown=row.shown)
    if kept.passed:
        return kept
    return msgspec.structs.replace(kept, passed=passed, score=row.score, message=row.why)


def learners_of(entries: Iterable[ArchiveEntry]) -> list[str]:
    """Return the names of the learners who have left something, by last name, each as people know them."""
    shown: dict[str, str] = {}
    for each in sorted(entries, key=lambda each: each.at):
        if each.learner:
            shown[each.learner] = tidied(each.shown) or shown.get(each.learner, "")
    return [name or learner for learner, name in sorted(shown.items(), key=lambda each: by_last_name(*each))]
