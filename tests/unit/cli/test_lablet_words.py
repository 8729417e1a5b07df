"""How a lablet stands, in plain words, by what its Pod shows."""

from typing import Any

import msgspec
import pytest

from tests.unit.cli.lablet_pod import lablet_pod
from vkprovider.classroom.pods import LabletPod
from vkprovider.cli.lablet.commands.looking import list_lablets
from vkprovider.cli.lablet.lists import SORTS
from vkprovider.lablet.standing import since_of, standing_of, words_of
from vkprovider.lablet.standings import Standing

AT, LATER = "2026-01-31T11:00:00Z", "2026-01-31T11:30:00Z"


def pod(
    state: str = "",
    user: str = "",
    *,
    waiting: str = "",
    terminated: str = "",
    message: str = "",
    last: str = "",
    phase: str = "Running",
    ready: bool = False,
    because: str = "",
    deleted: bool = False,
    bound: bool = True,
) -> LabletPod:
    """Make a Pod; `waiting`, `terminated`: reason of its container; `last`: why that last ended."""
    shown: dict[str, Any] = {"running": {}}
    if waiting:
        shown = {"waiting": {"reason": waiting, "message": message}}
    if terminated:
        shown = {"terminated": {"reason": terminated, "message": message, "finishedAt": LATER}}
    container = {"name": "lab", "state": shown, "lastState": {"terminated": {"reason": last}} if last else {}}
    conditions = [
        {"type": "Ready", "status": str(ready), "reason": because, "message": because, "lastTransitionTime": AT},
        {"type": "vkprovider.io/SessionStarted", "status": "True", "lastTransitionTime": LATER},
    ]
    notes = {"vkprovider.io/state": state, **({"vkprovider.io/username": user} if user else {})}
    made = lablet_pod(
        notes=notes,
        status={"phase": phase, "conditions": conditions, "containerStatuses": [container]},
        deletionTimestamp=LATER if deleted else None,
    )
    return made if not bound else _bound(made)


def _bound(made: LabletPod) -> LabletPod:
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, node_name="vnode.cml-1"))


OK: dict[str, Any] = {"ready": True}
PENDING: dict[str, Any] = {"phase": "Pending"}
PASSED: dict[str, Any] = {"phase": "Succeeded", "terminated": "Passed"}


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        # on its way
        (pod("", bound=False, **PENDING), "waiting"),
        (pod("", "alice", bound=False, **PENDING, because="Unschedulable"), "waiting"),
        (pod("SCHEDULED", **PENDING, waiting="AllocatingPorts"), "booting"),
        (pod("INSTANTIATING", "alice", **PENDING, waiting="StartingNodes"), "booting"),
        (pod("INSTANTIATING", "alice", **PENDING, waiting="LabQueued"), "booting"),
        (pod("INSTANTIATING", "alice", **PENDING, waiting="ProvisioningSession"), "booting"),
        (pod("INSTANTIATING", **PENDING, waiting="WorkerNotReady"), "booting"),
        (pod("SCHEDULED", **PENDING, waiting="UnknownVersion"), "needs help"),
        (pod("INSTANTIATING", "alice", **PENDING, waiting="ImportRefused"), "needs help"),
        (pod("INSTANTIATING", "alice", **PENDING, waiting="CrashLoopBackOff"), "needs help"),
        # in use
        (pod("READY", **OK), "free"),
        (pod("READY", "alice", **OK), "ready"),
        (pod("RUNNING", "alice", **OK), "working"),
        (pod("RUNNING", "alice", **OK, last="DeviceStopped"), "working"),
        (pod("STOPPED", "alice", waiting="LabStopped"), "stopped"),
        # in repair: what a learner worked in is not "instantiating"
        (pod("INSTANTIATING", "alice", waiting="Recovering"), "repairing"),
        (pod("INSTANTIATING", "alice", waiting="StartingNodes", last="DeviceStopped"), "repairing"),
        (pod("INSTANTIATING", "alice", waiting="LabQueued", last="DeviceStopped"), "repairing"),
        (pod("INSTANTIATING", "alice", waiting="ComputeDisconnected"), "repairing"),
        (pod("INSTANTIATING", waiting="Recovering"), "repairing"),
        (pod("INSTANTIATING", waiting="StartingNodes", last="DeviceStopped"), "booting"),
        (pod("INSTANTIATING", "alice", waiting="NeedsAttention"), "needs help"),
        (pod("INSTANTIATING", "alice", waiting="LDSRefused"), "needs help"),
        # asked for
        (pod("INSTANTIATING", "alice", waiting="Resetting"), "booting"),
        (pod("INSTANTIATING", "alice", waiting="StartingNodes", last="Reset"), "booting"),
        (pod("INSTANTIATING", "alice", waiting="StartingNodes"), "booting"),
        (pod("INSTANTIATING", waiting="RenewingContent"), "booting"),
        # the worker is silent: containers stay as they were
        (pod("RUNNING", "alice", because="WorkerUnreachable"), "unreachable"),
        (pod("READY", because="WorkerUnreachable"), "unreachable"),
        # at its end
        (pod("COLLECTING", "alice", **OK), "handed in"),
        (pod("GRADING", "alice", **OK), "handed in"),
        (pod("STOPPING", "alice", waiting="CleaningUp"), "handed in"),
        (pod("STOPPING", waiting="CleaningUp"), "ending"),
        (pod("INSTANTIATING", waiting="ReturningToPool"), "returning"),
        (pod("READY", "alice", **OK, deleted=True), "ending"),
        # over
        (pod("TERMINATED", "alice", **PASSED, message="score 83 of 100: good"), "passed 83"),
        (pod("TERMINATED", "alice", **PASSED, message="score 8.5 of 10"), "passed 8.5"),
        (pod("TERMINATED", "alice", **PASSED, message="well done"), "passed"),
        (pod("FAILED", "alice", terminated="NotPassed", message="score 0 of 100", phase="Failed"), "not passed 0"),
        (pod("TERMINATED", "alice", terminated="Completed", message="score 7 of 9", phase="Succeeded"), "handed in"),
        (pod("FAILED", "alice", terminated="StoppedTooLong", phase="Failed"), "failed"),
        (pod("FAILED", "alice", **PASSED, message="score 83 of 100", deleted=True), "passed 83"),
    ],
)  # fmt: skip
def test_how_a_lablet_stands(shown: LabletPod, words: str) -> None:
    assert words_of(*standing_of(shown)) == words


@pytest.mark.parametrize(
    ("shown", "since"),
    [
        (pod("RUNNING", "alice", **OK), LATER),
        (pod("READY", **OK), AT),
        (pod("READY", "alice", **OK), AT),
        (pod("INSTANTIATING", "alice", waiting="Recovering"), AT),
        (pod("COLLECTING", "alice", **OK), ""),
        (pod("TERMINATED", "alice", terminated="Passed", phase="Succeeded"), LATER),
        (pod("READY", "alice", **OK, deleted=True), LATER),
    ],
)
def test_since_when(shown: LabletPod, since: str) -> None:
    assert since_of(shown, standing_of(shown)[0]) == since


def test_every_word_and_order_is_in_the_help() -> None:
    text = " ".join((list_lablets.help or "").split())
    assert all(standing in text for standing in Standing)
    [sort] = [param for param in list_lablets.params if param.name == "sort"]
    assert list(sort.type.choices) == list(SORTS)  # type: ignore[attr-defined]
