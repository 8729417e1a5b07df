"""The grade of each learner of a class that was collected."""

from typing import Any

import pytest

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.handedin import grade_of
from vkprovider.lablet.archives import ArchiveEntry, Verdict

ALICE = lablet_pod("a", notes={"vkprovider.io/username": "alice"}, uid="u")
FREE = lablet_pod("a", uid="u")


def ended(phase: str, reason: str, message: str = "") -> LabletPod:
    state: dict[str, Any] = {"terminated": {"reason": reason, "message": message}}
    return lablet_pod("a", uid="u", status={"phase": phase, "containerStatuses": [{"name": "lab", "state": state}]})


PASSED, FAILED = (
    Verdict(passed=True, message="score 83 of 100: well done"),
    Verdict(passed=False, message="score 4 of 10"),
)


def entry(at: int, grade: Verdict | None, *, id_: str = "u", learner: str = "alice") -> ArchiveEntry:
    return ArchiveEntry(id_, "team", "a", at, learner, grade=grade)


OLD = entry(9, Verdict(passed=True, message="score 99 of 100"))


@pytest.mark.parametrize(
    ("over", "after", "passed", "score"),
    [
        (ended("Succeeded", "Passed", "score 83 of 100: well done"), [OLD], "yes", "83"),
        (ended("Failed", "NotPassed", "score 8.5 of 100"), [OLD], "no", "8.5"),
        (ended("Succeeded", "Completed", "no grader"), [OLD], "", ""),
        (ended("Failed", "StoppedTooLong"), [OLD], "", ""),
        # back in its pool: an earlier grade is not this one
        (FREE, [OLD], "", ""),
        (FREE, [], "", ""),
        (FREE, [entry(12, PASSED), entry(9, OLD.grade, id_="u-9")], "yes", "83"),
        (FREE, [entry(9, OLD.grade, id_="u-9")], "", ""),
        (FREE, [entry(12, FAILED)], "no", "4"),
        (FREE, [entry(12, None)], "", ""),
        (FREE, [entry(12, PASSED, id_="other")], "", ""),
        (FREE, [entry(12, PASSED, learner="bob")], "", ""),
        (FREE, [entry(12, FAILED), entry(14, PASSED, id_="u-14")], "yes", "83"),
        (None, [entry(12, Verdict(passed=False, message="without a score"))], "no", ""),
    ],
)
def test_the_grade_of_a_learner(over: LabletPod | None, after: list[ArchiveEntry], passed: str, score: str) -> None:
    found = grade_of(ALICE, over, [OLD], after)
    assert (found.learner, found.passed, found.score, found.name) == ("alice", passed, score, "a")
