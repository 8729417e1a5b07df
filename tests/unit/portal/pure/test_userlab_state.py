"""The state of a user lab (R002-015), which requests it allows (R002-022, R002-023, R002-031), and the queue."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.portal.pure.builders import COMPLETE, ENDING, FAILED, NOW, REQUEST, lab, pod
from vkprovider.portal.pure import facts, portalnames
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.pure.record import LabOutcome, LabRequest

DELETE_FAILED = LabOutcome(id="e1", kind="delete", phase="failed", at=NOW)
OTHER = LabRequest(id="r2", at=NOW, definition="netlab:1.0")


@pytest.mark.parametrize(
    ("parts", "deleted", "status", "refusal"),
    [
        ([REQUEST], False, "pending", Grounds.OPERATION_IN_PROGRESS),
        ([REQUEST, COMPLETE], False, "running", Grounds.LAB_EXISTS),
        ([REQUEST, FAILED], False, "failed", None),
        ([OTHER, FAILED], False, "pending", Grounds.OPERATION_IN_PROGRESS),
        ([REQUEST, ENDING], False, "terminating", Grounds.OPERATION_IN_PROGRESS),
        ([REQUEST, COMPLETE, ENDING], False, "terminating", Grounds.OPERATION_IN_PROGRESS),
        ([REQUEST, FAILED, ENDING], False, "terminating", Grounds.OPERATION_IN_PROGRESS),
        ([REQUEST, ENDING, DELETE_FAILED], False, "failed", None),
        ([REQUEST, ENDING, DELETE_FAILED], True, "failed", Grounds.OPERATION_IN_PROGRESS),
        ([REQUEST], True, "terminating", Grounds.OPERATION_IN_PROGRESS),
        ([REQUEST, COMPLETE], True, "terminating", Grounds.OPERATION_IN_PROGRESS),
        ([REQUEST, FAILED], True, "terminating", Grounds.OPERATION_IN_PROGRESS),
        ([], False, "failed", None),
    ],
)
def test_the_state_follows_from_the_record(parts: Any, deleted: bool, status: str, refusal: Grounds | None) -> None:  # noqa: FBT001 (a column of the table)
    found = lab(*parts, deleted=deleted)
    assert facts.status_of(found) == status
    why = facts.may_create(found)
    assert (why.grounds if why is not None else None) is refusal
    assert facts.presence_of(found) == "missing"
    assert facts.presence_of(found._replace(pod=pod())) == "present"


def test_a_user_without_a_lab_may_have_one() -> None:
    assert facts.may_create(None) is None
    assert facts.unknown("nobody") == (Grounds.UNKNOWN_USER, "user 'nobody' has no lab", ("path", "username"))


def test_who_has_a_lab_is_told_who_can_end_it() -> None:
    """It is not the user."""
    why = facts.may_create(lab(REQUEST, COMPLETE))
    assert why is not None
    assert why.msg.startswith("user 'alice' has a lab")
    assert "a hub or a teacher of its class" in why.msg


def test_a_damaged_request_can_be_replaced() -> None:
    damaged = lab(COMPLETE, annotations={portalnames.ANNOTATION_REQUEST: "{"}, the_pod=pod())
    assert facts.status_of(damaged) == "failed"
    assert facts.may_create(damaged) is None


def pending(number: int, *, at: int = NOW, the_pod: Any = None, user: str = "alice", second: bool = False) -> UserLab:
    found = lab(LabRequest(id="r1", at=at, definition="netlab:1.0"), the_pod=the_pod)
    taken = found.record._replace(uid=f"uid-{number}", user=user)
    return found._replace(record=taken, second=second)


def test_labs_start_in_the_order_of_their_requests() -> None:
    labs = [pending(1, at=NOW + 2), pending(2, at=NOW + 1), pending(3, at=NOW + 1), pending(4, the_pod=pod())]
    assert facts.places(labs, 1) == {"uid-2": 1, "uid-3": 2, "uid-1": 3}
    assert facts.places(labs, 3) == {"uid-2": 0, "uid-3": 0, "uid-1": 1}


def test_only_what_starts_takes_a_place() -> None:
    others = [
        lab(REQUEST, COMPLETE, the_pod=pod()),
        lab(REQUEST, FAILED),
        lab(REQUEST, ENDING),
        lab(REQUEST, deleted=True),
        pending(9, second=True),
        pending(8, the_pod=pod(ready=True)),
        pending(7, the_pod=pod(phase="Failed")),
    ]
    assert facts.places([*others, pending(1)], 1) == {"uid-1": 0}


def test_a_lab_that_waits_for_the_pod_before_has_a_place() -> None:
    assert facts.places([pending(1, the_pod=pod(request="r0"))], 1) == {"uid-1": 0}


def test_warm_labs_start_after_all_others() -> None:
    early = pending(1, at=NOW - 100, user="")
    early = early._replace(record=early.record._replace(family="netlab"))
    assert early.record.warm
    assert facts.places([early, pending(2)], 1) == {"uid-2": 0, "uid-1": 1}
    booting = early._replace(pod=pod(""))
    assert facts.places([booting, pending(2)], 1) == {"uid-2": 1}


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12), st.integers(1, 5))
def test_never_more_labs_start_than_may(found: list[tuple[int, bool]], starts_max: int) -> None:
    labs = [pending(n, at=NOW + at, the_pod=pod() if booting else None) for n, (at, booting) in enumerate(found)]
    starting = sum(booting for _, booting in found)
    places = facts.places(labs, starts_max)
    waiting = len(found) - starting
    assert len(places) == waiting
    now = list(places.values()).count(0)
    assert now == min(waiting, max(0, starts_max - starting))
    assert sorted(places.values())[now:] == list(range(1, 1 + waiting - now))


def test_of_several_labs_of_a_user_the_one_that_was_made_stays() -> None:
    early, late = (lab(REQUEST).record._replace(created_at=at, uid=f"uid-{at}") for at in (1.0, 2.0))
    made = lab(REQUEST, COMPLETE).record._replace(created_at=3.0, uid="uid-3")
    going = lab(REQUEST, COMPLETE, deleted=True).record._replace(created_at=0.0, uid="uid-0")
    assert sorted([going, late, made, early], key=facts.precedence) == [made, early, late, going]
