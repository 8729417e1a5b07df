"""The next step of a user lab, case by case (R002-008, R002-018, R002-023, R002-033, R002-034, R002-054, R002-080)."""

from typing import Any

import pytest

from tests.unit.portal.pure.builders import COMPLETE, ENDING, FAILED, INSTALLATION, NOW, REQUEST, lab, pod
from vkprovider.lablet.reasons import Trouble
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import Metadata
from vkprovider.portal.pure import portalnames, record
from vkprovider.portal.pure.decide import (
    Assign,
    Complete,
    DeleteNamespace,
    DeletePod,
    End,
    Fail,
    Free,
    LabPlan,
    Look,
    Make,
    decide,
)
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.portalnames import UserLabReason
from vkprovider.portal.pure.record import LabOutcome, LabRequest
from vkprovider.portal.settings import PortalSettings

SETTINGS = PortalSettings(start_timeout_s=600, delete_timeout_s=300, idle_s=0, failed_s=3600)
WAIT = LabPlan()
DELETE_FAILED = LabOutcome(id="e1", kind="delete", phase="failed", at=NOW + 300)
DELETE_POD = LabPlan(DeletePod("pod-alice"))
END = NOW + 14_400


def plan(the_lab: UserLab, after_s: float = 1.0, settings: PortalSettings = SETTINGS, **known: Any) -> LabPlan:
    return decide(the_lab, NOW + after_s, settings, **known)


def reason(found: LabPlan) -> UserLabReason:
    assert isinstance(found.step, Fail | End)
    return found.step.reason


# A lab is made.


def test_nothing_is_made_before_a_look() -> None:
    assert plan(lab(REQUEST)) == LabPlan(Look())
    assert plan(lab(REQUEST), sealed=True) == LabPlan(Make(NOW + 1 + 14_400))


def test_a_lab_waits_for_its_place_in_the_queue() -> None:
    assert plan(lab(REQUEST)._replace(ahead=1), looked=True, sealed=True) == WAIT


def test_a_request_that_nobody_got_an_answer_to_is_removed() -> None:
    """R002-080: a Namespace without the Secret of its request."""
    assert plan(lab(REQUEST), looked=True, sealed=False) == LabPlan(DeleteNamespace())
    assert plan(lab(REQUEST), sealed=False) == LabPlan(Look())


def test_a_booting_lab_is_complete_when_its_pod_is_ready() -> None:
    assert plan(lab(REQUEST, the_pod=pod())) == LabPlan(wake_at=NOW + 600)
    assert plan(lab(REQUEST, the_pod=pod(ready=True))) == LabPlan(Complete())


def test_a_lab_that_does_not_start_in_time_has_failed() -> None:
    late = lab(REQUEST, the_pod=pod(reason="Booting", message="3 of 5 devices are booted"))
    assert plan(late, 599).wake_at == NOW + 600
    assert plan(late, 600, sealed=True) == LabPlan(Look()), "what is watched may be behind"
    told = "the lab was not ready within 10 min (Booting: 3 of 5 devices are booted)"
    assert plan(late, 600, looked=True, sealed=True) == LabPlan(Fail(UserLabReason.START_TIMED_OUT, told))
    assert plan(late._replace(pod=pod(ready=True)), 600, looked=True, sealed=True) == LabPlan(Complete())


def test_the_wait_in_the_queue_does_not_count() -> None:
    assert plan(lab(REQUEST, the_pod=pod(created_at=NOW + 5000)), 5100) == LabPlan(wake_at=NOW + 5600)


def test_a_refused_object_fails_the_lab() -> None:
    fault = Fault(Trouble.API_UNAVAILABLE, 'pods "nb-alice" is forbidden: exceeded quota')
    assert plan(lab(REQUEST), looked=True, sealed=True, refused=fault) == LabPlan(
        Fail(UserLabReason.POD_REFUSED, fault.message)
    )


def test_a_pod_that_fails_while_it_boots_fails_the_lab() -> None:
    failed = pod(phase="Failed", reason="LabRefused", message="the topology is wrong")
    assert plan(lab(REQUEST, the_pod=failed)) == LabPlan(
        Fail(UserLabReason.LAB_FAILED, "LabRefused: the topology is wrong")
    )
    assert reason(plan(lab(REQUEST, the_pod=pod(phase="Failed")))) == UserLabReason.LAB_FAILED


def test_a_failed_lab_is_replaced_when_its_pod_is_gone() -> None:
    """R002-023."""
    again = LabRequest(id="r2", at=NOW, definition="netlab:1.0", duration_s=14_400, secrets=())
    assert plan(lab(again, the_pod=pod())) == DELETE_POD
    assert plan(lab(again, the_pod=pod(deleted=True))) == LabPlan(wake_at=NOW + 300)
    assert (
        reason(plan(lab(again, the_pod=pod(deleted=True)), 300, looked=True, sealed=True))
        == UserLabReason.DELETE_TIMED_OUT
    )
    assert plan(lab(again), looked=True, sealed=True) == LabPlan(Make(NOW + 1 + 14_400))


# A lab runs.


def test_a_running_lab_is_left_alone_until_its_end() -> None:
    for ready in (True, False):
        assert plan(lab(REQUEST, COMPLETE, the_pod=pod(ready=ready))) == LabPlan(wake_at=END + 300)
    assert plan(lab(REQUEST, COMPLETE, the_pod=pod(end=None))) == WAIT


@pytest.mark.parametrize(
    ("ended", "after_s", "why"),
    [
        (pod(phase="Succeeded"), 14_400, UserLabReason.TIME_OVER),
        (pod(phase="Failed", reason=Trouble.NOT_PASSED), 14_400, UserLabReason.TIME_OVER),
        (pod(phase="Failed", reason="WorkerUnreachable"), 14_400, UserLabReason.TIME_OVER),
        (pod(phase="Succeeded"), 60, UserLabReason.POD_ENDED),
        (pod(phase="Failed", reason=Trouble.NOT_PASSED), 60, UserLabReason.POD_ENDED),
        (pod(phase="Failed", reason="LabLost", message="it is gone"), 60, UserLabReason.LAB_FAILED),
    ],
)
def test_a_lab_ends_with_its_pod(ended: Any, after_s: float, why: UserLabReason) -> None:
    assert reason(plan(lab(REQUEST, COMPLETE, the_pod=ended), after_s)) == why


def test_nothing_ends_by_a_time_that_is_not_certain() -> None:
    running = lab(REQUEST, COMPLETE, the_pod=pod(ready=True))
    assert plan(running, 14_700, sure=False) == LabPlan(wake_at=NOW + 14_705)
    assert plan(running, 14_700, sure=False, looked=True, sealed=True) == LabPlan(wake_at=NOW + 14_705)


def test_a_lab_whose_time_is_over_is_ended_if_its_pod_does_not_end() -> None:
    running = lab(REQUEST, COMPLETE, the_pod=pod(ready=True))
    assert plan(running, 14_699) == LabPlan(wake_at=END + 300)
    assert plan(running, 14_700) == LabPlan(Look())
    assert plan(running, 14_700, looked=True, sealed=True) == LabPlan(End(UserLabReason.TIME_OVER))


def test_a_pod_that_somebody_deleted_fails_the_lab_after_a_look() -> None:
    assert plan(lab(REQUEST, COMPLETE)) == LabPlan(Look())
    assert reason(plan(lab(REQUEST, COMPLETE), looked=True, sealed=True)) == UserLabReason.POD_GONE


IDLE = PortalSettings(idle_s=900)


def test_a_lab_that_nobody_opens_goes_back_by_a_setting() -> None:
    running = lab(REQUEST, COMPLETE, the_pod=pod(ready=True))
    assert plan(running, 900) == LabPlan(wake_at=END + 300), "off by default"
    assert plan(running, 899, IDLE) == LabPlan(wake_at=NOW + 900)
    assert plan(running, 900, IDLE) == LabPlan(Look())
    assert plan(running, 900, IDLE, looked=True, sealed=True) == LabPlan(End(UserLabReason.NEVER_OPENED))
    opened = lab(REQUEST, COMPLETE, the_pod=pod(ready=True, last_activity="2026-01-31T12:01:00Z"))
    assert plan(opened, 900, IDLE) == LabPlan(wake_at=END + 300)
    assert plan(running._replace(exposed=True), 900, IDLE) == LabPlan(wake_at=END + 300)


def test_the_younger_of_two_labs_of_a_user_ends_after_a_look() -> None:
    """R002-008."""
    for parts in ((REQUEST,), (REQUEST, COMPLETE)):
        second = lab(*parts, the_pod=pod(ready=True))._replace(second=True)
        assert plan(second) == LabPlan(Look())
        assert plan(second, looked=True, sealed=True) == LabPlan(End(UserLabReason.SECOND_LAB))


# A lab is deleted.


@pytest.mark.parametrize(
    "parts", [(REQUEST, ENDING), (REQUEST, COMPLETE, ENDING), (REQUEST, FAILED, ENDING), (ENDING,)]
)
def test_the_pod_goes_before_the_namespace(parts: Any) -> None:
    """R002-054."""
    assert plan(lab(*parts, the_pod=pod(ready=True))) == DELETE_POD
    assert plan(lab(*parts, the_pod=pod(deleted=True))) == LabPlan(wake_at=NOW + 300)
    assert plan(lab(*parts)) == LabPlan(Look())
    assert plan(lab(*parts), looked=True, sealed=False) == LabPlan(DeleteNamespace())
    assert plan(lab(*parts, deleted=True)) == LabPlan(wake_at=NOW + 300)


def test_a_deletion_that_does_not_end_has_failed_and_goes_on() -> None:
    """R002-034."""
    stuck = lab(REQUEST, ENDING, the_pod=pod(deleted=True, reason="WorkerUnreachable", message="no answer"))
    told = "the lab was not gone within 5 min (WorkerUnreachable: no answer)"
    assert plan(stuck, 300, looked=True, sealed=True) == LabPlan(Fail(UserLabReason.DELETE_TIMED_OUT, told))
    assert plan(lab(REQUEST, ENDING, DELETE_FAILED, the_pod=pod(deleted=True)), 400) == WAIT
    assert plan(lab(REQUEST, ENDING, DELETE_FAILED), 400, looked=True, sealed=True) == LabPlan(DeleteNamespace())
    assert (
        reason(plan(lab(REQUEST, ENDING, deleted=True), 300, looked=True, sealed=True))
        == UserLabReason.DELETE_TIMED_OUT
    )


def test_a_failed_lab_is_kept_without_its_pod_and_then_removed() -> None:
    """R002-018."""
    assert plan(lab(REQUEST, FAILED, the_pod=pod())) == DELETE_POD
    assert plan(lab(REQUEST, FAILED, the_pod=pod(deleted=True))) == LabPlan(wake_at=NOW + 3600)
    ended = lab(REQUEST, FAILED, the_pod=pod(phase="Failed"))
    assert plan(ended) == LabPlan(wake_at=NOW + 3600), "it explains why"
    assert plan(ended, 3600) == DELETE_POD
    assert plan(lab(REQUEST, FAILED), 3600) == LabPlan(Look())
    assert plan(lab(REQUEST, FAILED), 3600, looked=True, sealed=True) == LabPlan(DeleteNamespace())


# What is not ours is left alone.


def test_a_namespace_that_another_program_deletes_is_left_alone() -> None:
    for parts in ((REQUEST,), (REQUEST, COMPLETE), (REQUEST, FAILED)):
        assert plan(lab(*parts, deleted=True, the_pod=pod()), 10**6, looked=True, sealed=True) == WAIT


@pytest.mark.parametrize(
    "name", [portalnames.ANNOTATION_REQUEST, portalnames.ANNOTATION_ENDING, portalnames.ANNOTATION_OPERATION]
)
@pytest.mark.parametrize("the_pod", [None, pod(), pod(phase="Failed"), pod(phase="Succeeded")])
def test_nothing_is_decided_from_a_damaged_record(name: str, the_pod: Any) -> None:
    damaged = lab(REQUEST, COMPLETE, annotations={name: "{"}, the_pod=the_pod)
    assert plan(damaged, 10**6, looked=True, sealed=True) == WAIT
    assert plan(damaged, 10**6, looked=True, sealed=False) == WAIT


def test_a_damaged_outcome_is_written_again() -> None:
    damaged = lab(REQUEST, annotations={portalnames.ANNOTATION_OPERATION: "{"}, the_pod=pod(ready=True))
    assert plan(damaged) == LabPlan(Complete())


def test_a_damaged_lab_can_be_deleted() -> None:
    damaged = lab(ENDING, annotations={portalnames.ANNOTATION_REQUEST: "{"}, the_pod=pod())
    assert plan(damaged) == DELETE_POD


def test_a_lab_of_nobody_is_left_alone() -> None:
    changed = lab(REQUEST, ENDING, annotations={portalnames.ANNOTATION_USER: "mallory"}, the_pod=pod())
    assert plan(changed, 10**6, looked=True, sealed=False) == WAIT


# Warm labs.


def warm(*parts: Any, the_pod: Any = None, taken_by: str = "", **facts: Any) -> UserLab:
    labels = record.warm_labels_for(INSTALLATION, "netlab")
    notes: dict[str, str] = {}
    for part in parts:
        notes |= record.annotation(part)
    if taken_by:
        labels |= record.labels_for(INSTALLATION, taken_by)
        notes[portalnames.ANNOTATION_USER] = taken_by
    found = record.record_of(Metadata("nublado-warm-00000000ff", labels=labels, annotations=notes), INSTALLATION)
    assert found is not None
    return UserLab(found, the_pod, exposed=False, **facts)


def test_a_warm_lab_has_no_end_and_waits() -> None:
    assert plan(warm(REQUEST)) == LabPlan(Make(None))
    assert plan(warm(REQUEST, ahead=3)) == WAIT
    assert plan(warm(REQUEST, the_pod=pod("", end=None))) == LabPlan(wake_at=NOW + 600)
    assert plan(warm(REQUEST, the_pod=pod("", end=None, ready=True)), 10**6) == WAIT


def test_a_warm_lab_that_fails_is_not_made_again_at_once() -> None:
    late = warm(REQUEST, the_pod=pod("", end=None))
    assert reason(plan(late, 600, looked=True, sealed=True)) == UserLabReason.START_TIMED_OUT
    ended = warm(REQUEST, the_pod=pod("", phase="Failed"))
    assert reason(plan(ended)) == UserLabReason.LAB_FAILED
    assert plan(warm(REQUEST, FAILED), 3599) == LabPlan(wake_at=NOW + 3600)


TAKEN = LabRequest(id="r2", at=NOW, definition="netlab:1.0", duration_s=14_400, secrets=())


def test_a_taken_lab_gets_its_warm_pod() -> None:
    taken = warm(TAKEN, taken_by="alice", the_pod=pod("", end=None, ready=True))
    assert plan(taken) == LabPlan(Look())
    assert plan(taken, sealed=True) == LabPlan(Assign(NOW + 1 + 14_400))
    assert plan(taken, looked=True, sealed=False) == LabPlan(DeletePod("pod-warm")), "nobody got an answer"
    assert plan(warm(TAKEN, taken_by="alice", the_pod=pod(request="r2", ready=True))) == LabPlan(Complete())


def test_a_taken_lab_whose_warm_pod_is_gone_gets_another() -> None:
    assert plan(warm(TAKEN, taken_by="alice"), sealed=True) == LabPlan(Make(NOW + 1 + 14_400))
    assert plan(warm(TAKEN, taken_by="alice", the_pod=pod("", phase="Failed"))) == LabPlan(DeletePod("pod-warm"))
    assert plan(warm(TAKEN, taken_by="alice", the_pod=pod("", deleted=True))).step is None


# Others who may write on the Pod.

HELD = ("vkprovider.io/own", "x.example/stuck", "foregroundDeletion")


@pytest.mark.parametrize(
    "parts",
    [
        {"parts": (REQUEST, COMPLETE, ENDING)},
        {"parts": (REQUEST, COMPLETE, ENDING, DELETE_FAILED)},
        {"parts": (REQUEST, COMPLETE, ENDING), "deleted": True},
        {"parts": (REQUEST, COMPLETE), "deleted": True},
        {"parts": (REQUEST, FAILED)},
    ],
)
def test_a_pod_without_a_lab_is_not_held_by_others_for_longer_than_five_minutes(parts: dict[str, Any]) -> None:
    the_lab = lab(*parts["parts"], the_pod=pod(deleted=True, finalizers=HELD), deleted=parts.get("deleted", False))
    assert the_lab.strange_finalizers == HELD[1:]
    early = plan(the_lab, 299)
    assert not isinstance(early.step, Free)
    assert early.wake_at == NOW + 300
    late: dict[str, Any] = {"looked": True, "sealed": True}
    assert isinstance(plan(the_lab, 300).step, Look), "what is watched may be behind"
    found = plan(the_lab, 300, **late)
    assert found == LabPlan(Free("pod-alice")) or isinstance(found.step, Fail), (
        "that the deletion is late is told first"
    )
    assert not isinstance(plan(the_lab, 300, sure=False, **late).step, Free)
    for kept in (
        pod(deleted=True, finalizers=HELD, grace_s=30),  # its lab is not gone
        pod(deleted=True, finalizers=HELD[:1]),
        pod(deleted=True),
        pod(finalizers=HELD),
    ):
        assert not isinstance(plan(the_lab._replace(pod=kept), 4000, **late).step, Free)


@pytest.mark.parametrize("end", [None, NOW + 10 * 365 * 86_400])
def test_no_end_that_is_written_on_a_pod_is_later_than_the_longest_time(end: int | None) -> None:
    endless = lab(REQUEST, COMPLETE, the_pod=pod(end=end, ready=True))._replace(longest_s=43_200)
    assert endless.end_at == NOW + 43_200
    assert plan(endless) == LabPlan(wake_at=NOW + 43_500)
    assert reason(plan(endless, 43_500, looked=True)) == UserLabReason.TIME_OVER
    assert lab(REQUEST, the_pod=pod(end=NOW + 60))._replace(longest_s=43_200).end_at == NOW + 60
