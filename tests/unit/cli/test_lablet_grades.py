"""The grade of each learner of a class that was collected."""

from typing import Any

import pytest

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.api.objects import Metadata
from vkprovider.cli.lablet.classes.grades import Grade, GradedEvent, _Involved, grade_of
from vkprovider.cli.shared.pods import LabletPod

ALICE = lablet_pod("a", notes={"vkprovider.io/username": "alice"}, uid="u")
FREE = lablet_pod("a", uid="u")


def ended(phase: str, reason: str, message: str = "") -> LabletPod:
    state: dict[str, Any] = {"terminated": {"reason": reason, "message": message}}
    return lablet_pod("a", uid="u", status={"phase": phase, "containerStatuses": [{"name": "lab", "state": state}]})


def event(name: str, version: int, message: str, uid: str = "u") -> GradedEvent:
    return GradedEvent(Metadata(name, resource_version=str(version)), message, _Involved(uid))


OLD = event("e1", 9, "passed, score 99 of 100")


@pytest.mark.parametrize(
    ("over", "after", "passed", "score"),
    [
        (ended("Succeeded", "Passed", "score 83 of 100: well done"), [OLD], "yes", "83"),
        (ended("Failed", "NotPassed", "score 8.5 of 100"), [OLD], "no", "8.5"),
        (ended("Succeeded", "Completed", "no grader"), [OLD], "", ""),
        (ended("Failed", "StoppedTooLong"), [OLD], "", ""),
        # back in its pool: an earlier learner's grade is not this one's
        (FREE, [OLD], "", ""),
        (FREE, [OLD, event("e2", 12, "passed, score 83 of 100: well done")], "yes", "83"),
        (FREE, [OLD, event("e2", 12, "not passed, score 4 of 10")], "no", "4"),
        (FREE, [event("e1", 10, "passed, score 99 of 100")], "yes", "99"),  # the same words, counted up
        (FREE, [OLD, event("e2", 12, "passed, score 5 of 9", uid="other")], "", ""),
        (FREE, [OLD, event("e3", 100, "passed, score 2 of 9"), event("e2", 99, "passed, score 1 of 9")], "yes", "2"),
        (None, [OLD, event("e2", 12, "not passed, without a score")], "no", ""),
    ],
)
def test_the_grade_of_a_learner(over: LabletPod | None, after: list[GradedEvent], passed: str, score: str) -> None:
    assert grade_of(ALICE, over, [OLD], after) == Grade("alice", passed, score, "a")
