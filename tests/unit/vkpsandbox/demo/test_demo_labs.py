"""The demo's comparison of pods and labs: whatever differs is found."""

from typing import Any

import pytest

from vkpsandbox.demo.labs import Lab, differences, is_ready, why_not_ready

UIDS = ["11111111-2222-3333-4444-555555555555", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"]
PODS = [{"metadata": {"uid": uid}, "spec": {"nodeName": f"vnode.worker-{n}"}} for n, uid in enumerate(UIDS, 1)]


def lab(uid: str, worker: str, state: str = "STARTED") -> Lab:
    return Lab(worker, f"netlab-0a1b2c3d-{uid}", state, "h0 BOOTED")


RIGHT = [lab(UIDS[0], "worker-1"), lab(UIDS[1], "worker-2")]


def test_one_lab_per_pod_is_right() -> None:
    assert differences(PODS, RIGHT) == []


@pytest.mark.parametrize(
    ("labs", "wrong"),
    [
        ([], "has 0 labs"),
        (RIGHT[:1], "has 0 labs"),
        ([*RIGHT, lab(UIDS[0], "worker-1")], "has 2 labs"),
        ([*RIGHT, Lab("worker-1", "somebody's", "STARTED", "")], "lab somebody's on worker-1 belongs to no pod"),
        ([RIGHT[0], lab(UIDS[1], "worker-1")], "is on worker-1, its pod on vnode.worker-2"),
        ([RIGHT[0], lab(UIDS[1], "worker-2", "STOPPED")], "on worker-2 is STOPPED"),
    ],
)
def test_differences_are_found(labs: list[Lab], wrong: str) -> None:
    assert wrong in "; ".join(differences(PODS, labs))


def pod(status: dict[str, Any]) -> dict[str, Any]:
    return {"status": status}


@pytest.mark.parametrize(
    ("status", "ready", "why"),
    [
        ({"conditions": [{"type": "Ready", "status": "True"}]}, True, ""),
        (
            {
                "conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [{"state": {"waiting": {"reason": "LabQueued", "message": "no licences"}}}],
            },
            False,
            "(LabQueued: no licences)",
        ),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]},
            False,
            "(0/3 nodes)",
        ),
        ({"phase": "Pending"}, False, "(Pending)"),
    ],
)
def test_a_pod_says_why_it_is_not_ready(status: dict[str, Any], ready: bool, why: str) -> None:  # noqa: FBT001 (a table)
    assert is_ready(pod(status)) == ready
    assert ready or why_not_ready(pod(status)) == why
