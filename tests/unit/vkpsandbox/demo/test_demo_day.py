"""The demo of a class: its commands are those of the page, and whatever is not as it should be is found."""

import json
import re

import pytest

from tests.support import docs
from vkpsandbox.demo.classroom import ITEM, NAMES, Classroom, answer_of, unlike, verdict_on
from vkpsandbox.demo.day import DAY, GRANT, POINTS, WHY
from vkpsim.lds.grading import Check, Grader, GradeRequest, Lablet, Response

PAGE = "docs/class.md"
NOTE = "vkprovider.io/"


def test_the_page_has_the_commands_of_the_demo_in_their_order() -> None:
    """One of an admin, and at most ten of the instructor."""
    typed = [
        (block.heading, re.sub(r"\s+#.*", "", line)) for block in docs.blocks(PAGE) for line in block.text.splitlines()
    ]
    *day, (last, _) = typed
    assert day == [("The namespace", GRANT), *((step.section, step.command) for step in DAY)]
    assert len(DAY) <= 10
    assert list(WHY) == list(dict.fromkeys(section for section, _ in day))
    assert last == "The next class"


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"alice": 1, "bob": 2}, []),
        ({"alice": 1}, ["bob: none instead of 2"]),
        ({"alice": 1, "bob": 3, "carol": 4}, ["bob: 3 instead of 2", "carol: 4 instead of none"]),
    ],
)
def test_what_differs_is_found(found: dict[str, int], says: list[str]) -> None:
    assert unlike({"alice": 1, "bob": 2}, found) == says


def test_what_the_pods_of_learners_say() -> None:
    notes = {f"{NOTE}lab-id": "lab-1", f"{NOTE}timeslot-end": "2026-01-31T16:00:00Z"}
    pod = {"metadata": {"uid": "1", "annotations": notes}}
    bare = {"metadata": {"uid": "2", "annotations": {}}}
    room = Classroom(free=[], given={"alice": pod, "bob": bare}, replicas=0, wipes={})
    assert room.uids == {"alice": "1", "bob": "2"}
    assert room.labs == {"alice": "lab-1"}
    assert {learner: str(end) for learner, end in room.ends.items()} == {"alice": "2026-01-31 16:00:00+00:00"}
    assert room.states == {}


def test_the_grader_says_of_each_learner_what_the_demo_expects() -> None:
    """Some pass and some do not, so that a table of the wrong learners is seen to be wrong."""
    checks = tuple(Check(**each) for each in json.loads(POINTS.read_text()))
    grader = Grader("checks", checks)
    told = {}
    for learner in NAMES:
        request = GradeRequest(
            grading_id=learner,
            lablet=Lablet(uid=learner, name=learner, namespace="friday"),
            responses=[Response(item=ITEM, answer=answer_of(learner))],
            configurations={"h0": "hostname h0\n"},
        )
        verdict = grader.grade(request)
        told[learner] = f"{'yes' if verdict.passed else 'no'} {verdict.score:g}"
    assert told == {learner: verdict_on(learner) for learner in NAMES}
    assert len(set(told.values())) == 2
