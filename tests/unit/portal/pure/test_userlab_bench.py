"""When the workbench beside a lab is made and ended: the next step, and the lines of the story (R002-066, 081)."""

from typing import Any

import msgspec
import pytest

from tests.unit.portal.pure import builders
from tests.unit.portal.pure.builders import COMPLETE, ENDING, FAILED, NOW, REQUEST
from vkprovider.platform.objects import Condition, Container, Event, Metadata, Pod
from vkprovider.platform.times import iso
from vkprovider.portal.pure import portalnames, stream
from vkprovider.portal.pure.decide import (
    Complete,
    DeleteBench,
    DeleteNamespace,
    DeletePod,
    End,
    Fail,
    LabStep,
    Look,
    MakeBench,
    NoteProvisioned,
    decide,
)
from vkprovider.portal.pure.facts import UserLab
from vkprovider.portal.pure.record import BenchRequest, LabRequest, record_of
from vkprovider.portal.service.index import with_pod
from vkprovider.portal.settings import PortalSettings

ASKED = msgspec.structs.replace(REQUEST, bench=BenchRequest(name="pyats"))
END = NOW + 14_400


def bench(
    *, phase: str = "Running", inits: bool = False, noted: bool = False, request: str = "r1", deleted: bool = False
) -> Pod:
    made = builders.pod(phase=phase, request=request, deleted=deleted, ready=phase == "Running")
    notes = {portalnames.ANNOTATION_PROVISIONED: "true"} if noted else {}
    labels = {**made.metadata.labels, portalnames.LABEL_WORKBENCH: "true"}
    meta = msgspec.structs.replace(
        made.metadata, name="nb-alice-workbench", uid="bench", labels=labels, annotations=notes
    )
    spec = msgspec.structs.replace(made.spec, init_containers=[Container("provision")] if inits else [])
    return msgspec.structs.replace(made, metadata=meta, spec=spec)


def lab(*parts: Any, own: Pod | None, beside: Pod | None = None, request: LabRequest = ASKED) -> UserLab:
    record = record_of(builders.namespace("alice", request, *parts), builders.INSTALLATION)
    assert record is not None
    return with_pod(UserLab(record), [pod for pod in (beside, own) if pod is not None])


def step(found: UserLab, now: float = NOW, **more: Any) -> LabStep | None:
    return decide(found, now, PortalSettings(), sealed=True, **more).step


BOOTING, READY, OVER = (
    builders.pod(phase="Pending"),
    builders.pod(phase="Running", ready=True),
    builders.pod(phase="Succeeded"),
)
GONE = DeleteBench("bench")


def test_the_pod_of_a_workbench_is_not_that_of_the_lab() -> None:
    found = lab(COMPLETE, own=READY, beside=bench())
    assert (found.pod, found.bench) == (READY, bench())
    assert lab(own=None, beside=bench()).pod is None


@pytest.mark.parametrize(
    ("found", "now", "wanted"),
    [
        (lab(own=BOOTING), NOW, MakeBench()),  # while the devices boot
        (lab(own=READY), NOW, Complete()),
        (lab(COMPLETE, own=READY), NOW, MakeBench()),
        (lab(COMPLETE, own=READY, request=REQUEST), NOW, None),
        (lab(COMPLETE, own=READY, beside=bench()), NOW, None),
        (lab(COMPLETE, own=READY, beside=bench(phase="Pending")), NOW, None),
        (lab(COMPLETE, own=READY, beside=bench(phase="Failed")), NOW, GONE),  # evicted: made again
        (lab(COMPLETE, own=READY, beside=bench(deleted=True)), NOW, None),
        (lab(COMPLETE, own=READY, beside=bench(request="earlier")), NOW, GONE),
        (lab(COMPLETE, own=READY, beside=bench(), request=REQUEST), NOW, GONE),
        (lab(COMPLETE, own=READY, beside=bench(inits=True)), NOW, NoteProvisioned()),
        (lab(COMPLETE, own=READY, beside=bench(inits=True, phase="Pending")), NOW, None),
        (lab(COMPLETE, own=READY, beside=bench(inits=True, noted=True)), NOW, None),
        (lab(COMPLETE, own=READY, beside=bench()), END - 1, None),
        (lab(COMPLETE, own=READY, beside=bench()), END, GONE),  # before the lab is collected and graded
        (lab(COMPLETE, own=READY), END, None),
        (lab(COMPLETE, own=READY, beside=bench(deleted=True)), END, None),
        (lab(COMPLETE, ENDING, own=READY, beside=bench()), NOW, GONE),
        (lab(COMPLETE, ENDING, own=READY, beside=bench(deleted=True)), NOW, DeletePod("pod-alice")),
        (lab(COMPLETE, ENDING, own=None, beside=bench()), NOW, GONE),
        (lab(COMPLETE, ENDING, own=None, beside=bench(deleted=True)), NOW, DeleteNamespace()),
        (lab(FAILED, own=OVER, beside=bench()), NOW, GONE),
        (lab(FAILED, own=None, beside=bench()), NOW, GONE),
    ],
)
def test_the_next_step(found: UserLab, now: float, wanted: LabStep | None) -> None:
    assert step(found, now, looked=True) == wanted


def test_what_follows_from_an_absence_takes_a_look() -> None:
    assert step(lab(COMPLETE, own=READY)) == Look()


def test_the_time_must_be_certain_before_a_workbench_ends_by_it() -> None:
    found = lab(COMPLETE, own=READY, beside=bench())
    assert decide(found, END, PortalSettings(), sealed=True, sure=False).step is None
    assert decide(found, NOW, PortalSettings(), sealed=True).wake_at == END


def test_a_refused_workbench_waits_and_holds_nothing_up() -> None:
    plan = decide(lab(COMPLETE, own=READY), NOW, PortalSettings(), sealed=True, looked=True, bench_at=NOW + 60)
    assert (plan.step, plan.wake_at) == (None, NOW + 60)
    assert step(lab(own=READY), bench_at=NOW + 60) == Complete()


def test_the_end_of_the_lab_comes_first() -> None:
    assert isinstance(step(lab(COMPLETE, own=OVER, beside=bench()), looked=True), End)
    assert isinstance(step(lab(COMPLETE, own=None, beside=bench()), looked=True), Fail)


def event(name: str, reason: str, type_: str = "Warning") -> Event:
    meta = Metadata(name, uid=name, creation_timestamp=iso(NOW))
    return Event(meta, type_, reason, "0/1 nodes are available", last_timestamp=iso(NOW))


def test_its_state_is_told_in_the_story_of_the_lab_and_is_not_taken_for_the_lab_s() -> None:
    events = [event("nb-alice-workbench.1", "FailedScheduling"), event("nb-alice.1", "FailedMount")]
    conditions = [Condition("Ready", "True", last_transition_time=iso(NOW))]
    ready = msgspec.structs.replace(bench(), status=msgspec.structs.replace(bench().status, conditions=conditions))
    told = stream.tell(lab(own=BOOTING, beside=ready), events)
    texts = [line.text for line in told.lines]
    assert "Workbench: FailedScheduling: 0/1 nodes are available" in texts
    assert "FailedMount: 0/1 nodes are available" in texts
    assert "Workbench: it is ready" in texts
    assert told.progress < 20
