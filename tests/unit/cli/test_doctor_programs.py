"""What the doctor says of the Pods of a program: how many are there, and what keeps the others away."""

from typing import Any

import msgspec
import pytest

from vkprovider.doctor.findings import Level
from vkprovider.doctor.programs import ProgramPod, ProgramWorkload, check_available, variables_of
from vkprovider.platform.objects import Metadata, Secret

ABOUT = "Deployment/vkp/vkprovider-portal"
META = {"name": "vkprovider-portal", "namespace": "vkp"}


def workload(replicas: int, available: int) -> ProgramWorkload:
    status = {"availableReplicas": available}
    return msgspec.convert({"metadata": META, "spec": {"replicas": replicas}, "status": status}, ProgramWorkload)


def pod(**status: Any) -> ProgramPod:
    return msgspec.convert({"metadata": {"name": "portal-1"}, "status": status}, ProgramPod)


def waiting(reason: str, message: str = "", **more: Any) -> ProgramPod:
    state = {"waiting": {"reason": reason, "message": message}}
    return pod(containerStatuses=[{"name": "portal", "state": state, **more}])


def test_a_program_with_all_its_pods_is_fine() -> None:
    assert check_available(ABOUT, workload(2, 2), [], "nobody gets a page") == []


@pytest.mark.parametrize(("there", "level"), [(0, Level.FAULT), (1, Level.NOTE)])
def test_missing_pods_are_a_fault_if_none_is_left(there: int, level: Level) -> None:
    [found] = check_available(ABOUT, workload(2, there), [], "nobody gets a page")
    assert (found.level, found.object, found.reason) == (level, ABOUT, "ProgramUnavailable")
    assert found.message.startswith(f"{there} of 2 Pods ")
    assert ("nobody gets a page" in found.message) is (level is Level.FAULT)


def test_a_program_that_is_scaled_to_nothing_is_told_how_to_come_back() -> None:
    [found] = check_available(ABOUT, workload(0, 0), [], "nobody gets a page")
    assert (found.level, found.message) == (Level.NOTE, "it is scaled to 0: nobody gets a page")
    assert found.remedy == "kubectl -n vkp scale deployment/vkprovider-portal --replicas=2"


@pytest.mark.parametrize(
    ("one", "says", "remedy"),
    [
        (waiting("ImagePullBackOff", "Back-off pulling vkprovider:0.2"), "ImagePullBackOff: Back-off", "`images` of"),
        (waiting("InvalidImageName"), "; portal-1: InvalidImageName", "`image.repository`"),
        (
            waiting("CrashLoopBackOff", "back-off 5m0s", lastState={"terminated": {"exitCode": 1}}),
            "CrashLoopBackOff (exit code 1): back-off 5m0s",
            "kubectl -n vkp logs --tail=20",
        ),
        (waiting("CreateContainerConfigError", "no key"), "CreateContainerConfigError: no key", "kubectl -n vkp logs"),
        (
            pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}]),
            "Unschedulable: 0/1",
            "kubectl -n vkp describe pods",
        ),
        (waiting("ContainerCreating"), "nobody gets a page", "describe pods -l app.kubernetes.io/name=vkp"),
    ],
)
def test_what_keeps_a_pod_away_is_said_with_what_to_do(one: ProgramPod, says: str, remedy: str) -> None:
    [found] = check_available(ABOUT, workload(2, 0), [pod(), one], "nobody gets a page")
    assert says in found.message
    assert remedy in found.remedy


def test_settings_of_a_secret_are_its_upper_case_keys() -> None:
    secret = Secret(Metadata("s"), {"VKPROVIDER_A": b"one\n", "note.txt": b"no"})
    assert variables_of(secret) == {"VKPROVIDER_A": "one"}
    assert variables_of(None) == {}
