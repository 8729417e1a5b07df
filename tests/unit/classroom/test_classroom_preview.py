"""What an instructor reads of a list before anything is given."""

import pytest

from tests.unit.classroom.test_classroom_ledger import COLLECTED, pod, pool
from vkprovider.classroom.pods import Assignment, LabletPod
from vkprovider.classroom.preview import GivingPreview, preview_of

FREE = [pod("a"), pod("b")]


def look(pods: list[LabletPod], *learners: str, replicas: int = 2, refill: bool = False) -> GivingPreview:
    return preview_of(pool(replicas=replicas), pods, [Assignment(each) for each in learners], refill=refill)


@pytest.mark.parametrize(
    ("pods", "learners", "replicas", "says", "add"),
    [
        (FREE, ("ann", "ben"), 2, "2 names, 2 free: everybody has one then", 0),
        (FREE, ("ann", "ben", "carl", "dan"), 2, "4 names, 2 free: 2 lack one: add 2", 2),
        (FREE, ("ann", "ben", "carl"), 3, "3 names, 2 free: 1 lacks one until more of the pool are ready", 0),
        (FREE, ("ann", "ben", "carl", "dan"), 3, "4 names, 2 free: 2 lack one: add 1", 1),
        ([*FREE, pod("c", "ann")], ("ann", "ben"), 2, "2 names, 2 free: 1 has one already, everybody has one then", 0),
        ([pod("c", "ann")], ("ann",), 0, "1 name, 0 free: 1 has one already, nothing changes", 0),
        ([*FREE, pod("c", "ann", notes=COLLECTED)], ("ann", "ben"), 2, "2 names, 2 free: everybody has one then", 0),
        ([], ("ann",), 0, "1 name, 0 free: 1 lacks one: add 1", 1),
        ([pod("a", ready=False)], ("ann",), 1, "1 name, 0 free: 1 lacks one until more of the pool are ready", 0),
    ],
)
def test_the_numbers(pods: list[LabletPod], learners: tuple[str, ...], replicas: int, says: str, add: int) -> None:
    found = look(pods, *learners, replicas=replicas)
    assert (found.summary, found.add, found.number) == (says, add, len(learners))


def test_a_pool_that_makes_new_ones_is_waited_for() -> None:
    assert look(FREE, "ann", "ben", "carl", refill=True).add == 0
    assert look([], "ann", replicas=0, refill=True).add == 1, "it makes none"


def test_names_that_differ_in_case_only_are_told() -> None:
    assert look(FREE, "bob", "Bob").alike == (("bob", "Bob"),)
    taken = [*FREE, pod("c", "Bob")]
    assert look(taken, "bob").alike == (("Bob", "bob"),)
    assert look(taken, "Bob").alike == (), "the one who has it"


def test_names_for_people_are_told() -> None:
    wishes = [Assignment("ann", shown="Ann A."), Assignment("ben", shown="B, Ben")]
    found = preview_of(pool(replicas=1), [pod("a"), pod("c", "ann")], wishes, refill=False)
    assert found.lines("friday")[1:] == ["has one: ann (Ann A.; c)", "gets one: ben (B, Ben)"]
    alone = preview_of(pool(replicas=0), [pod("c", "ann")], wishes[:1], refill=False)
    assert alone.summary == "1 name, 0 free: 1 has one already, names change"


def test_why_those_of_the_pool_are_not_free() -> None:
    found = look([pod("a", ready=False)], "ann", replicas=1)
    assert found.lines("friday") == [found.summary, "lacks one: ann", "not free: pod/a is not Ready"]
    assert look(FREE, "ann").why == ""
    assert look([*FREE, pod("c", ready=False)], "ann", "ben", "carl", replicas=3).why == "pod/c is not Ready"
