"""A report as a Pod's status: the patch makes it so, and nothing else changes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labs.builders import claim, devices, patched, pod
from vkprovider.lablet import names, observations
from vkprovider.lablet.observations import DeviceFact
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import status as podstatus
from vkprovider.labs.pure.lablet.facts import Report
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.messages import Fault
from vkprovider.platform.objects import Pod
from vkprovider.platform.reasons import reason_of
from vkprovider.platform.times import iso

UNIX = 1_800_000_000
READY = Report(State.READY, phase="Running")
WAITING = Report(State.INSTANTIATING, waiting=Fault(Progress.IMPORTING_LAB, "lab x is being imported"))
CLEANING = Report(State.STOPPING, phase="Running", waiting=Fault(Progress.CLEANING_UP, "m"))
SUCCEEDED = Report(State.TERMINATED, phase="Succeeded", terminal=Fault(Happened.COMPLETED, "ended on request"))
FAILED = Report(State.FAILED, phase="Failed", terminal=Fault(Trouble.LAB_START_TIMEOUT, "too late"))
SILENT = Report(State.READY, phase="Running", silent="worker w1 does not answer")
ROW = claim(lab_id="lab-1", started_at=UNIX - 60, ready_at=UNIX - 30)
FOREIGN = {"type": "example.com/Gate", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": None}
CONTAINERS = (("lab", "netlab:1.0"), ("r1", "netlab:1.0"), ("r2", "netlab:1.0"))
DEVICES = {"r1": "r1", "r2": "r2"}

words = st.text(alphabet="abcXYZ ", max_size=8)
reports = st.builds(
    Report,
    state=st.sampled_from(State),
    phase=st.sampled_from(["Pending", "Running"]),
    waiting=st.none() | st.builds(Fault, words.filter(bool).map(reason_of), words),
    devices=st.lists(st.sampled_from([*sorted(observations.KNOWN), "PAUSED"]), min_size=2, max_size=2).map(
        lambda s: devices(*s)
    ),
    silent=st.sampled_from(["", "", "worker w1 does not answer"]),
) | st.sampled_from([SUCCEEDED, FAILED])
rows = st.none() | st.builds(
    claim,
    lab_id=st.sampled_from(["", "lab-1"]),
    ready_at=st.sampled_from([0, UNIX]),
    restarts=st.integers(0, 3),
    outcome=st.sampled_from(["", "Failed", "Succeeded"]),
    uncounted=st.integers(0, 3),
    last_reason=st.sampled_from(["", "DeviceStopped"]),
)
ips = st.sampled_from(["", "198.51.100.1", "198.51.100.2"])


def lablet(**known: Any) -> Pod:
    return pod(containers=CONTAINERS, **known)


def show(found: Pod, report: Report, row: Claim | None = ROW, ip: str = "198.51.100.1", at: int = UNIX) -> Pod:
    wanted = podstatus.render(found, report, row, DEVICES, ip)
    return patched(found, podstatus.patch(found, wanted, row, at))


def condition(found: Pod, type_: str) -> tuple[str, str, str | None]:
    one = next(c for c in found.status.conditions if c.type == type_)
    return one.status, one.reason, one.last_transition_time


@given(st.lists(st.tuples(reports, rows, ips), min_size=1, max_size=5), st.booleans())
def test_a_patch_says_what_was_wanted_and_then_nothing_is_left(
    story: list[tuple[Report, Claim | None, str]],
    foreign: bool,  # noqa: FBT001 (given by Hypothesis)
) -> None:
    """Whatever the status was: after the patch it is equal, foreign conditions stay, and the phase never goes back."""
    found = lablet(status={"conditions": [FOREIGN] if foreign else []})
    order = ["Pending", "Running", "Succeeded", "Failed"]
    for report, row, ip in story:
        before = found
        wanted = podstatus.render(found, report, row, DEVICES, ip)
        found = patched(found, podstatus.patch(found, wanted, row, UNIX))
        assert podstatus.read_status(found, wanted) == wanted
        assert podstatus.render(found, report, row, DEVICES, ip) == wanted, "and it stays so"
        if foreign:
            assert condition(found, "example.com/Gate") == ("True", "R", None)
        assert min(order.index(found.status.phase), 2) >= min(order.index(before.status.phase), 2)
        assert len({c.type for c in found.status.conditions}) == len(found.status.conditions)
        kinds = {kind for c in found.status.container_statuses for kind in c.state}
        assert found.terminal or "terminated" not in kinds
        if ip:
            assert found.status.pod_ip == ip
        if found.terminal:
            return


def test_a_patch_is_for_this_uid_only() -> None:
    found = lablet()
    body = podstatus.patch(found, podstatus.render(found, READY, ROW, {}, ""), ROW, UNIX)
    assert body["metadata"]["uid"] == found.metadata.uid
    assert body["status"]["observedGeneration"] == found.metadata.generation


@pytest.mark.parametrize(("observed", "same"), [(0, True), (3, True), (2, False), (4, False)])
def test_a_generation_that_the_api_server_drops_is_never_written_again(observed: int, *, same: bool) -> None:
    """Kubernetes 1.33 sets `metadata.generation` and drops `status.observedGeneration`."""
    before = show(lablet(), READY)
    meta = msgspec.structs.replace(before.metadata, generation=3)
    status = msgspec.structs.replace(before.status, observed_generation=observed)
    found = msgspec.structs.replace(before, metadata=meta, status=status)
    wanted = podstatus.render(found, READY, ROW, DEVICES, "198.51.100.1")
    assert wanted.generation == 3
    assert (podstatus.read_status(found, wanted) == wanted) is same


def test_a_ready_lablet() -> None:
    """R004-014, R004-046: the worker's address is the Pod's, and every container runs."""
    found = show(lablet(), msgspec.structs.replace(READY, devices=devices(observations.BOOTED, observations.BOOTED)))
    assert (found.status.phase, found.status.pod_ip, found.status.host_ip) == (
        "Running",
        "198.51.100.1",
        "198.51.100.1",
    )
    assert condition(found, "Ready")[0] == condition(found, "ContainersReady")[0] == "True"
    assert (
        condition(found, names.CONDITION_LAB_IMPORTED)[0]
        == condition(found, names.CONDITION_LAB_CONVERGED)[0]
        == "True"
    )
    assert [(c.name, c.ready, list(c.state)) for c in found.status.container_statuses] == [
        ("lab", True, ["running"]),
        ("r1", True, ["running"]),
        ("r2", True, ["running"]),
    ]
    assert found.status.container_statuses[0].state["running"] == {"startedAt": iso(ROW.ready_at)}
    assert found.status.start_time == iso(UNIX)
    annotations = found.metadata.annotations
    assert annotations[names.ANNOTATION_STATE] == "READY"
    assert annotations[names.ANNOTATION_LAB_ID] == "lab-1"
    assert annotations[names.ANNOTATION_CONTENT] == f"1.0@sha256:{ROW.digest}"


def test_an_imported_lab_has_a_link_where_cml_has_pages() -> None:
    def link(url: str, row: Claim | None) -> str | None:
        extras = podstatus.Extras(worker_url=url)
        found = dict(podstatus.render(lablet(), READY, row, DEVICES, "198.51.100.1", extras).annotations)
        return found.get(names.ANNOTATION_LAB_URL)

    assert link("https://cml-1", ROW) == "https://cml-1/lab/lab-1"
    assert link("https://cml-1", msgspec.structs.replace(ROW, lab_id="")) is None
    assert link("https://cml-1", None) is None
    assert link("null://w1", ROW) is None


def test_a_pod_that_counts_as_available_says_that_nothing_runs() -> None:
    """Its DaemonSet looks at Ready alone, people at the container, and Services at the address, which it has not."""
    report = Report(State.SCHEDULED, waiting=Fault(Trouble.NOT_A_LABLET, "nothing runs"), counts=True)
    found = show(gated(GATE), report, None)
    ready = next(c for c in found.status.conditions if c.type == "Ready")
    assert (ready.status, ready.reason, ready.message) == ("True", "NotALablet", "nothing runs")
    assert condition(found, "ContainersReady")[:2] == ("False", "NotALablet")
    assert (found.status.phase, found.status.pod_ip, found.status.host_ip) == ("Pending", "", "")
    assert all(
        status.state == {"waiting": {"reason": "NotALablet", "message": "nothing runs"}} and not status.ready
        for status in found.status.container_statuses
    )
    wanted = podstatus.render(found, report, None, DEVICES, "198.51.100.1")
    assert podstatus.read_status(found, wanted) == wanted


def test_a_waiting_lablet_says_why() -> None:
    found = show(lablet(), WAITING, None)
    assert found.status.phase == "Pending"
    assert condition(found, "Ready")[:2] == ("False", "ImportingLab")
    assert condition(found, "Initialized")[0] == "True"
    assert found.status.container_statuses[0].state == {
        "waiting": {"reason": "ImportingLab", "message": "lab x is being imported"}
    }


def test_devices_that_booted_run_while_the_others_start() -> None:
    report = Report(
        State.INSTANTIATING,
        waiting=Fault(Progress.STARTING_NODES, "m"),
        devices=devices(observations.BOOTED, observations.STARTED),
    )
    found = show(lablet(), report, claim(lab_id="lab-1"))
    assert [(c.name, c.ready, list(c.state)) for c in found.status.container_statuses] == [
        ("lab", False, ["waiting"]),
        ("r1", True, ["running"]),
        ("r2", False, ["waiting"]),
    ]
    assert condition(found, "Ready")[0] == "False"


@pytest.mark.parametrize("state", [observations.STOPPED, observations.DEFINED])
def test_a_device_that_is_off_waits_and_is_never_terminated(state: str) -> None:
    """Under restartPolicy Never the API server would refuse every later patch."""
    report = Report(
        State.INSTANTIATING,
        phase="Running",
        waiting=Fault(Progress.RECOVERING, "m"),
        devices=devices(state, observations.BOOTED),
    )
    found = show(lablet(restart="Never"), report)
    by_name = {c.name: c.state for c in found.status.container_statuses}
    assert by_name["r1"] == {"waiting": {"reason": "DeviceStopped", "message": "r1 is off"}}
    assert by_name["lab"] == {"waiting": {"reason": "Recovering", "message": "m"}}


@pytest.mark.parametrize("reason", ["LabStopped", "CleaningUp", "Resetting", "ReturningToPool"])
def test_a_device_that_is_off_because_it_should_be_says_what_the_lab_says(reason: str) -> None:
    report = Report(
        State.STOPPED,
        phase="Running",
        waiting=Fault(reason_of(reason), "m"),
        devices=devices(observations.STOPPED, observations.STOPPED),
    )
    states = [c.state for c in show(lablet(), report).status.container_statuses]
    assert states == [{"waiting": {"reason": reason, "message": "m"}}] * 3


def test_while_it_is_cleaned_up_nothing_runs() -> None:
    found = show(
        lablet(phase="Running"),
        msgspec.structs.replace(CLEANING, devices=devices(observations.BOOTED, observations.BOOTED)),
    )
    assert {kind for c in found.status.container_statuses for kind in c.state} == {"waiting"}
    assert found.status.phase == "Running"


@pytest.mark.parametrize(
    ("report", "phase", "reason", "code"), [(SUCCEEDED, "Succeeded", "", 0), (FAILED, "Failed", "LabStartTimeout", 1)]
)
def test_the_end(report: Report, phase: str, reason: str, code: int) -> None:
    row = msgspec.structs.replace(ROW, outcome=phase, lab_id="", restarts=2, afresh=2)
    found = show(show(lablet(), READY), report, row)
    assert (found.status.phase, found.status.reason) == (phase, reason)
    assert condition(found, "Ready")[0] == "False"
    for status in found.status.container_statuses:
        assert status.state["terminated"]["exitCode"] == code
        assert status.restart_count == (2 if status.name == "lab" else 0)
        assert not status.ready


def test_the_end_of_a_pod_that_never_had_a_row() -> None:
    found = show(lablet(), FAILED, None)
    assert found.status.container_statuses[0].state["terminated"]["exitCode"] == 1
    found = show(lablet(), SUCCEEDED, None)
    assert found.status.container_statuses[0].state["terminated"]["exitCode"] == 0


def test_a_silent_worker_turns_ready_false_and_leaves_the_containers() -> None:
    """Issue 3 §4: coming back makes it Ready again."""
    before = show(lablet(), READY)
    found = show(before, SILENT, at=UNIX + 60)
    assert condition(found, "Ready") == ("False", "WorkerUnreachable", iso(UNIX + 60))
    assert found.status.container_statuses == before.status.container_statuses
    assert found.status.phase == "Running"
    again = show(found, READY, at=UNIX + 90)
    assert condition(again, "Ready") == ("True", "", iso(UNIX + 90))


def test_a_ready_that_somebody_else_wrote_is_written_again() -> None:
    """After an outage of the API server the stock controller sets pods unready."""
    before = show(lablet(), READY)
    conditions = [
        msgspec.structs.replace(c, status="False", reason="NodeNotReady") if c.type == "Ready" else c
        for c in before.status.conditions
    ]
    changed = msgspec.structs.replace(before, status=msgspec.structs.replace(before.status, conditions=conditions))
    wanted = podstatus.render(changed, READY, ROW, DEVICES, "198.51.100.1")
    assert podstatus.read_status(changed, wanted) != wanted
    assert condition(show(changed, READY), "Ready")[:2] == ("True", "")


def test_the_transition_time_moves_with_the_status_only() -> None:
    before = show(lablet(), WAITING, at=UNIX)
    later = show(before, msgspec.structs.replace(WAITING, waiting=Fault(Progress.STARTING_NODES, "m")), at=UNIX + 5)
    assert condition(later, "Ready") == ("False", "StartingNodes", iso(UNIX))
    ready = show(later, READY, at=UNIX + 9)
    assert condition(ready, "Ready")[2] == iso(UNIX + 9)
    assert condition(ready, "Initialized")[2] == iso(UNIX)
    assert ready.status.start_time == iso(UNIX)


def test_an_address_is_written_once_and_replaced_when_it_changes() -> None:
    """`podIPs` merge by `ip`: without the replacement both would stand there."""
    first = podstatus.patch(lablet(), podstatus.render(lablet(), READY, ROW, {}, "198.51.100.1"), ROW, UNIX)["status"]
    assert first["podIPs"] == first["hostIPs"] == [{"ip": "198.51.100.1"}]
    before = show(lablet(), READY)
    same = podstatus.patch(before, podstatus.render(before, READY, ROW, {}, "198.51.100.1"), ROW, UNIX)["status"]
    assert not same.keys() & {"podIP", "podIPs", "hostIP", "hostIPs"}
    moved = podstatus.patch(before, podstatus.render(before, READY, ROW, {}, "198.51.100.2"), ROW, UNIX)["status"]
    assert moved["podIPs"] == moved["hostIPs"] == [{"$patch": "replace"}, {"ip": "198.51.100.2"}]


def test_an_address_that_is_known_late_is_written_then() -> None:
    before = show(lablet(), READY, ip="")
    wanted = podstatus.render(before, READY, ROW, DEVICES, "198.51.100.1")
    assert podstatus.read_status(before, wanted) != wanted


def test_an_address_that_is_unknown_for_a_while_is_no_change() -> None:
    before = show(lablet(), READY)
    wanted = podstatus.render(before, READY, ROW, DEVICES, "")
    assert podstatus.read_status(before, wanted) == wanted
    assert show(before, READY, ip="").status.pod_ip == "198.51.100.1"


def test_a_reason_of_somebody_else_is_not_fought_over() -> None:
    """The stock node controller writes NodeLost."""
    before = show(lablet(status={"reason": "NodeLost"}), READY)
    wanted = podstatus.render(before, READY, ROW, DEVICES, "198.51.100.1")
    assert podstatus.read_status(before, wanted) == wanted


def test_only_the_device_that_was_started_again_says_so() -> None:
    row = msgspec.structs.replace(
        ROW,
        restarts=1,
        uncounted=2,
        afresh=1,
        device_restarts={"r1": 1},
        last_reason="DeviceStopped",
        last_message="r1 stopped",
        last_devices=("r1",),
    )
    body = podstatus.patch(lablet(), podstatus.render(lablet(), READY, row, DEVICES, ""), row, UNIX)
    told = {c["name"]: (c["restartCount"], _last_end(c)) for c in body["status"]["containerStatuses"]}
    assert told == {"lab": (1, "r1 stopped (number 3)"), "r1": (0, "r1 stopped (number 2)"), "r2": (0, None)}


def _last_end(status: dict[str, Any]) -> str | None:
    found: str | None = status.get("lastState", {}).get("terminated", {}).get("message")
    return found


@pytest.mark.parametrize(
    ("containers", "counts"),
    [(("lab", "r1", "r2"), "lab"), (("r2", "r1", "lab"), "lab"), (("r1", "r2"), "r1"), (("all", "watcher"), "all")],
)
def test_of_several_containers_one_counts_the_restarts(containers: tuple[str, ...], counts: str) -> None:
    """Kubernetes adds the numbers up, and deletes a Job's Pod when the sum reaches the Job's backoffLimit."""
    row = msgspec.structs.replace(ROW, restarts=4, uncounted=9, afresh=6, device_restarts={"r1": 3, "r2": 4})
    found = show(pod(containers=tuple((name, "netlab:1.0") for name in containers)), READY, row)
    assert {status.name: status.restart_count for status in found.status.container_statuses} == (
        dict.fromkeys(containers, 0) | {counts: 4}
    )


@given(st.lists(st.integers(0, 5), min_size=3, max_size=3), rows, reports)
def test_a_restart_count_that_was_written_is_never_lowered(shown: list[int], row: Claim | None, report: Report) -> None:
    """An older version counted more, and a claim may be lost."""
    named = dict(zip(("lab", "r1", "r2"), shown, strict=True))
    statuses = [{"name": name, "restartCount": number, "state": {"running": {}}} for name, number in named.items()]
    before = lablet(status={"containerStatuses": statuses})
    found = show(before, report, row)
    mine = row.restarts if row is not None and not report.silent else 0
    assert {status.name: status.restart_count for status in found.status.container_statuses} == (
        named | {"lab": max(shown[0], mine)}
    )


def test_a_start_again_that_is_not_counted_changes_the_status() -> None:
    """A device may be back before anything else was written."""
    row = msgspec.structs.replace(ROW, uncounted=1, last_reason="DeviceStopped", last_message="r1 stopped")
    before = show(lablet(), READY, row)
    again = podstatus.render(before, READY, msgspec.structs.replace(row, uncounted=2), DEVICES, "198.51.100.1")
    assert podstatus.read_status(before, again) != again
    same = podstatus.render(before, READY, row, DEVICES, "198.51.100.1")
    assert podstatus.read_status(before, same) == same


def test_a_restart_is_told_as_by_a_kubelet() -> None:
    row = msgspec.structs.replace(
        ROW, restarts=2, last_reason="DeviceStopped", last_message="m", last_at=UNIX - 10, last_started_at=UNIX - 60
    )
    body = podstatus.patch(lablet(), podstatus.render(lablet(), READY, row, {}, ""), row, UNIX)
    (lab, _, _) = body["status"]["containerStatuses"]
    assert lab["restartCount"] == 2
    assert lab["lastState"]["terminated"] == {
        "exitCode": 1,
        "reason": "DeviceStopped",
        "message": "m (number 2)",
        "startedAt": iso(UNIX - 60),
        "finishedAt": iso(UNIX - 10),
    }
    assert lab["containerID"] == "cml://lab-1"
    assert lab["image"] == "netlab:1.0"
    assert lab["imageID"] == f"netlab@sha256:{row.digest}"


def test_what_is_progress_and_what_somebody_waits_for() -> None:
    def status(report: Report) -> podstatus.LabletStatus:
        return podstatus.render(lablet(), report, ROW, DEVICES, "")

    assert status(WAITING).is_progress
    assert status(CLEANING).is_progress
    assert not status(READY).is_progress
    assert not status(Report(State.INSTANTIATING, waiting=Fault(Trouble.NEEDS_ATTENTION, "m"))).is_progress
    assert status(READY).headline == ("Running", "True", "")
    assert status(WAITING).headline == ("Pending", "False", "ImportingLab")


def test_a_label_of_another_device_is_not_mistaken() -> None:
    facts = (DeviceFact("n0", "r1", "iosv", observations.BOOTED),)
    report = Report(State.INSTANTIATING, waiting=Fault(Progress.STARTING_NODES, "m"), devices=facts)
    found = show(lablet(), report, claim(lab_id="lab-1"))
    assert [c.ready for c in found.status.container_statuses] == [False, True, False]


def test_connectors_and_switches_are_no_devices_that_a_reader_counts() -> None:
    wiring = ("external_connector", "unmanaged_switch")
    facts = tuple(DeviceFact(f"n{n}", f"x{n}", definition, observations.BOOTED) for n, definition in enumerate(wiring))
    r1 = DeviceFact("n9", "r1", "iosv", observations.STARTED)
    report = Report(State.INSTANTIATING, waiting=Fault(Progress.STARTING_NODES, "m"), devices=(*facts, r1))
    found = show(lablet(), report, claim(lab_id="lab-1"))
    assert found.metadata.annotations[names.ANNOTATION_DEVICES] == "0/1"
    alone = show(lablet(), msgspec.structs.replace(report, devices=facts), claim(lab_id="lab-1"))
    assert names.ANNOTATION_DEVICES not in alone.metadata.annotations


def test_times_are_written_as_kubernetes_does() -> None:
    assert iso(0) == "1970-01-01T00:00:00Z"


GATE, OTHER_GATE = "example.com/load-balancer", "example.com/firewall"


def gated(*gates: str, **statuses: str) -> Pod:
    """Make a Pod with readiness gates; `statuses` has those of foreign conditions."""
    named = {GATE if name == "gate" else OTHER_GATE: value for name, value in statuses.items()}
    found = [{"type": type_, "status": value} for type_, value in named.items()]
    return lablet(status={"conditions": found}, readinessGates=[{"conditionType": gate} for gate in gates])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (gated(GATE), f'corresponding condition of pod readiness gate "{GATE}" does not exist.'),
        (gated(GATE, gate="False"), f'the status of pod readiness gate "{GATE}" is not "True", but False'),
        (gated(GATE, gate="Unknown"), f'the status of pod readiness gate "{GATE}" is not "True", but Unknown'),
        (gated(GATE, gate="True"), ""),
        (gated(gate="False"), ""),
        (
            gated(GATE, OTHER_GATE, other="False"),
            (
                f'corresponding condition of pod readiness gate "{GATE}" does not exist., '
                f'the status of pod readiness gate "{OTHER_GATE}" is not "True", but False'
            ),
        ),
        (gated(names.CONDITION_LAB_IMPORTED), ""),
        (gated("ContainersReady", "Initialized"), ""),
        (
            gated(names.CONDITION_SESSION_READY),
            f'corresponding condition of pod readiness gate "{names.CONDITION_SESSION_READY}" does not exist.',
        ),
    ],
)
def test_a_ready_lablet_is_ready_when_its_gates_are(found: Pod, message: str) -> None:
    """KEP-580; reason and message are the kubelet's."""
    after = show(found, READY)
    ready = next(c for c in after.status.conditions if c.type == "Ready")
    wanted = ("False", "ReadinessGatesNotReady", message) if message else ("True", "", "")
    assert (ready.status, ready.reason, ready.message) == wanted
    assert condition(after, "ContainersReady")[:2] == ("True", "")
    assert all(status.ready for status in after.status.container_statuses)
    assert (after.status.phase, after.metadata.annotations[names.ANNOTATION_STATE]) == ("Running", "READY")
    own = {entry["type"] for entry in podstatus.patch(found, _wanted(found), ROW, UNIX)["status"]["conditions"]}
    assert own.isdisjoint({GATE, OTHER_GATE}), "a foreign condition is its writer's alone"


def _wanted(found: Pod) -> podstatus.LabletStatus:
    return podstatus.render(found, READY, ROW, DEVICES, "198.51.100.1")


def test_ready_follows_a_gate() -> None:
    """A load balancer says at any time that it does not reach the Pod."""
    before = show(gated(GATE, gate="True"), READY)
    for at, value in enumerate(("False", "True", "Unknown"), UNIX + 1):
        closed = [msgspec.structs.replace(c, status=value) if c.type == GATE else c for c in before.status.conditions]
        changed = msgspec.structs.replace(before, status=msgspec.structs.replace(before.status, conditions=closed))
        wanted = _wanted(changed)
        assert not wanted.is_progress, "what is Ready is acted on, and is not written late"
        assert podstatus.read_status(changed, wanted) != wanted
        before = show(changed, READY, at=at)
        assert condition(before, "Ready")[0] == ("True" if value == "True" else "False")
        assert condition(before, "Ready")[2] == iso(at)
        assert podstatus.read_status(before, _wanted(before)) == _wanted(before)


@pytest.mark.parametrize("report", [WAITING, CLEANING, SILENT, SUCCEEDED, FAILED], ids=lambda report: str(report.state))
def test_a_lablet_that_is_not_ready_says_why_whatever_its_gates_are(report: Report) -> None:
    plain, closed = show(lablet(), report), show(gated(GATE), report)
    assert closed.status.conditions == plain.status.conditions


def test_a_gate_of_our_own_condition_reads_what_is_about_to_be_written() -> None:
    """A lablet can be made Ready only for a learner whose session is."""
    row = claim(
        lab_id="lab-1", ready_at=UNIX, session=Session("lds", "k", "alice", id="s-1", ready_at=UNIX), sessions=1
    )
    found = show(gated(names.CONDITION_SESSION_READY), READY, row)
    assert condition(found, names.CONDITION_SESSION_READY)[0] == condition(found, "Ready")[0] == "True"
