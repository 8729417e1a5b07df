"""`decide`, row by row: the table of states, what is asked for on failure, what a learner is told."""

from typing import Any

import msgspec
import pytest

from tests.unit.labs.builders import BOOTED, claim, devices, facts_with, pod
from tests.unit.labs.lablet.world import WRITER, World
from vkprovider.lablet import names, observations
from vkprovider.lablet.inputs import Inputs, inputs_of
from vkprovider.lablet.reasons import Happened, Trouble, WorkerReason
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import steps
from vkprovider.labs.pure.lablet.after import decided
from vkprovider.labs.pure.lablet.decisions.decide import decide
from vkprovider.labs.pure.lablet.facts import Decision, Report
from vkprovider.labs.pure.lablet.identity import notes_of
from vkprovider.labs.pure.lablet.memory import Memory, Presence, unclear_since
from vkprovider.labs.pure.lablet.steps import Step
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.errors import InputError
from vkprovider.platform.messages import Fault, Notice
from vkprovider.platform.objects import OwnerReference

NOW = 5000.0
UNIX = 1_800_000_000
LIMITS = LabletSettings(start_timeout_s=300)
IMPORTED = claim(lab_id="lab-1")
STARTED = claim(lab_id="lab-1", started_at=UNIX - 60)
READY = claim(lab_id="lab-1", started_at=UNIX - 600, ready_at=UNIX - 500)


def ask(*states: str, limits: LabletSettings = LIMITS, **known: Any) -> Decision:
    facts: dict[str, Any] = {"pod": pod(), "claim": IMPORTED, "now_unix": UNIX}
    if states:
        facts |= {"presence": Presence.PRESENT, "devices": devices(*states)}
    facts |= {"extracted": True} | known
    if facts["pod"] is not None:
        facts.setdefault("inputs", inputs_of(facts["pod"].metadata))
    return decide(facts_with(**facts), NOW, limits)


def report_of(decision: Decision) -> Report:
    assert decision.report is not None
    return decision.report


def reason_of(decision: Decision) -> str:
    waiting = report_of(decision).waiting
    assert waiting is not None
    return waiting.reason


def message_of(decision: Decision) -> str:
    waiting = report_of(decision).waiting
    assert waiting is not None
    return waiting.message


# ------------------------------------------------------------------------------------------ the table of states


@pytest.mark.parametrize(
    ("known", "states", "step", "state", "phase", "reason"),
    [
        ({"claim": None}, (), steps.MakeClaim, "INSTANTIATING", "Pending", "AllocatingPorts"),
        ({"claim": claim(), "claim_saved": False}, (), steps.Wait, "INSTANTIATING", "Pending", "AllocatingPorts"),
        ({"claim": claim()}, (), steps.Search, "INSTANTIATING", "Pending", "ImportingLab"),
        ({"claim": claim(), "searched": True}, (), steps.Import, "INSTANTIATING", "Pending", "ImportingLab"),
        ({}, (observations.DEFINED, observations.DEFINED), steps.Start, "INSTANTIATING", "Pending", "StartingNodes"),
        (
            {"claim": STARTED},
            (observations.QUEUED, observations.QUEUED),
            steps.Wait,
            "INSTANTIATING",
            "Pending",
            "LabQueued",
        ),
        (
            {"claim": STARTED},
            (observations.STARTED, observations.QUEUED),
            steps.Wait,
            "INSTANTIATING",
            "Pending",
            "LabQueued",
        ),
        (
            {"claim": STARTED},
            (observations.STARTING, observations.STARTED),
            steps.Wait,
            "INSTANTIATING",
            "Pending",
            "StartingNodes",
        ),
        (
            {"claim": STARTED},
            (observations.BOOTED, observations.STARTED),
            steps.Wait,
            "INSTANTIATING",
            "Pending",
            "StartingNodes",
        ),
        ({"claim": STARTED}, BOOTED, steps.Save, "READY", "Running", ""),
        ({"claim": READY}, BOOTED, steps.Wait, "READY", "Running", ""),
        (
            {"claim": READY},
            (observations.STOPPED, observations.BOOTED),
            steps.Wait,
            "INSTANTIATING",
            "Running",
            "Recovering",
        ),
        (
            {"claim": READY},
            (observations.STARTED, observations.BOOTED),
            steps.Wait,
            "INSTANTIATING",
            "Running",
            "StartingNodes",
        ),
        ({"claim": READY}, (observations.DISCONNECTED,), steps.Wait, "INSTANTIATING", "Running", "ComputeDisconnected"),
    ],
)
def test_the_table_of_states(
    known: dict[str, Any], states: tuple[str, ...], step: type[Step], state: str, phase: str, reason: str
) -> None:
    """Design §3 without an LDS; R000-012 to R000-016, R000-022, R000-031 to R000-033."""
    decision = ask(*states, **known)
    report = report_of(decision)
    assert (type(decision.step), report.state, report.phase) == (step, state, phase)
    assert (report.waiting.reason if report.waiting else "") == reason
    assert report.ready == (state == "READY")


def test_started_never_means_ready() -> None:
    """R000-033, C11: a lab is ready when every device has booted, whatever CML calls the lab."""
    for late in observations.KNOWN - {observations.BOOTED}:
        assert not report_of(ask(observations.BOOTED, late, claim=READY)).ready


@pytest.mark.parametrize("state", ["PAUSED", "", "booted", "BOOTED "])
def test_an_unknown_state_is_reported_and_never_success(state: str) -> None:
    """R000-035."""
    decision = ask(observations.BOOTED, state, claim=STARTED)
    assert (type(decision.step), reason_of(decision), decision.observe) == (steps.Wait, "UnknownState", True)
    assert "r2" in message_of(decision)


def test_queued_says_what_the_worker_lacks() -> None:
    """R000-032."""
    decision = ask(observations.QUEUED, observations.BOOTED, claim=STARTED, starting_since=NOW - 10)
    assert "queued r1" in message_of(decision)
    assert (decision.after_s, decision.observe) == (290.0, True)


def test_the_message_names_the_devices_that_are_late() -> None:
    decision = ask(observations.BOOTED, observations.STARTED, claim=STARTED)
    assert message_of(decision) == "1 of 2 devices booted, waiting for r2 (since 08:00 UTC), 5 min at most"
    many = ask(*[observations.STARTED] * 12, claim=STARTED)
    assert "r1, r10, r11, r12, r2 and 7 more (since 08:00 UTC)" in message_of(many)


def test_the_import_waits_for_the_saved_row() -> None:
    """C24: the claim is written ahead."""
    for searched in (True, False):
        assert type(ask(claim=claim(), claim_saved=False, searched=searched).step) is steps.Wait


def test_without_an_observation_nothing_is_changed() -> None:
    for row in (IMPORTED, STARTED, READY, claim(lab_id="lab-1", resetting=True)):
        decision = ask(claim=row)
        assert (type(decision.step), decision.report, decision.observe) == (steps.Wait, None, True)


def test_ready_is_remembered_with_its_time() -> None:
    decision = ask(*BOOTED, claim=STARTED)
    assert decision.claim is not None
    assert decision.claim.ready_at == UNIX
    assert [event.reason for event in decision.events] == ["Ready"]
    assert type(ask(*BOOTED, claim=decision.claim).step) is steps.Wait, "R000-015: then nothing is done"


def test_a_clock_set_back_does_not_save_ready_for_ever() -> None:
    row = claim(
        lab_id="lab-1", started_at=UNIX + 900, ready_at=UNIX + 500, last_at=UNIX + 900, restarts=1, recoveries=1
    )
    decision = ask(*BOOTED, claim=row)
    assert type(decision.step) is steps.Save
    assert type(ask(*BOOTED, claim=decision.claim).step) is steps.Wait


def test_a_start_whose_row_was_lost_is_late_some_day_too() -> None:
    """R000-120, R004-050: the row is written again, because time runs from it."""
    decision = ask(observations.STARTED, claim=IMPORTED)
    assert type(decision.step) is steps.Save
    assert decision.claim is not None
    assert decision.claim.started_at == UNIX


# ------------------------------------------------------------------------------------------ pods that are refused


def test_a_refused_pod_stays_pending_with_one_reason() -> None:
    refusal = InputError(Trouble.NOT_A_LABLET, "set spec.runtimeClassName")
    decision = ask(claim=None, refusal=refusal)
    report = report_of(decision)
    assert (type(decision.step), report.state, report.phase) == (steps.Wait, State.SCHEDULED, "Pending")
    assert report.waiting == Fault(Trouble.NOT_A_LABLET, "set spec.runtimeClassName")
    assert decision.events == (Notice("Warning", Trouble.NOT_A_LABLET, "set spec.runtimeClassName"),)


@pytest.mark.parametrize("controller", [True, False])
@pytest.mark.parametrize("name", ["", "other"])
def test_a_stray_that_no_controller_would_replace_ends(controller: bool, name: str) -> None:  # noqa: FBT001 (a table)
    """As on a kubelet that does not admit it: what it requests is free again."""
    made = pod(runtimeClassName=name)
    owner = OwnerReference("u", "ReplicaSet", "r", controller=controller)
    owned = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=[owner]))
    decision = ask(pod=owned, claim=None, refusal=InputError(Trouble.NOT_A_LABLET, "text"))
    report = report_of(decision)
    ends = not controller and not name
    assert (report.phase, report.terminal) == (
        ("Failed", Fault(Trouble.NOT_A_LABLET, "text")) if ends else ("Pending", None)
    )
    assert decision.events == (Notice("Warning", Trouble.NOT_A_LABLET, "text"),)


@pytest.mark.parametrize(
    ("owner", "class_name", "image", "ip", "counts"),
    [
        ("DaemonSet", "", "cni:2.1", "", True),
        ("DaemonSet", "nvidia", "nvcr.io/driver:5", "", True),
        ("DaemonSet", "netlab", "netlab:1.0", "", False),
        ("DaemonSet", "", "cni:2.1", "198.51.100.1", False),
        ("ReplicaSet", "", "web:1", "", False),
    ],
    ids=["network", "another runtime", "lablet without definition", "has an address", "no DaemonSet"],
)
def test_a_daemonset_does_not_wait_for_a_pod_that_cannot_run_here(
    owner: str, class_name: str, image: str, ip: str, *, counts: bool
) -> None:
    """Else an update would never reach its other nodes, a security fix for one."""
    made = pod(runtimeClassName=class_name, containers=(("main", image),), status={"podIP": ip})
    owners = [OwnerReference("u", owner, "everywhere", controller=True)]
    owned = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=owners))
    decision = ask(pod=owned, claim=None, refusal=InputError(Trouble.NOT_A_LABLET, "text"), silent="no answer")
    report = report_of(decision)
    assert (report.phase, report.counts, report.ready) == ("Pending", counts, False)
    assert reason_of(decision) == "NotALablet"
    [event] = decision.events
    assert (event.type, event.reason) == ("Warning", "NotALablet")
    assert ("nodeSelector {kubernetes.io/os: linux}" in event.message) is counts


def test_a_pod_of_a_daemonset_whose_image_is_wrong_does_not_count() -> None:
    """It is meant as a lablet, and somebody waits for it."""
    made = pod(containers=(("lab", "other:1.0"),))
    owners = [OwnerReference("u", "DaemonSet", "labs", controller=True)]
    owned = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=owners))
    assert not report_of(ask(pod=owned, claim=None, refusal=InputError(Trouble.DEFINITION_MISMATCH, "text"))).counts


def test_a_row_is_stronger_than_a_refusal() -> None:
    """R000-082: a definition that changed or went away ends nobody's lab."""
    assert report_of(ask(*BOOTED, claim=READY, refusal=InputError(Trouble.NOT_A_LABLET, ""))).ready


def test_a_refused_pod_that_is_deleted_goes_at_once() -> None:
    assert (
        type(ask(pod=pod(deleted=True), claim=None, refusal=InputError(Trouble.NOT_A_LABLET, "")).step)
        is steps.ConfirmDeletion
    )


# ------------------------------------------------------------------------------------------ the start takes too long


def test_a_start_is_late_only_if_it_was_looked_at_after_its_time() -> None:
    """A replica that was paused must not judge by what it saw before."""
    decision = ask(observations.STARTED, claim=STARTED, starting_since=NOW - 400, observed_at=NOW - 101)
    assert (type(decision.step), decision.observe, decision.claim) == (steps.Wait, True, None)
    decision = ask(observations.STARTED, claim=STARTED, starting_since=NOW - 400, observed_at=NOW - 99)
    assert type(decision.step) is steps.Save


@pytest.mark.parametrize("state", [observations.QUEUED, observations.STARTED])
@pytest.mark.parametrize("restart", ["Always", "OnFailure"])
def test_a_late_start_is_tried_again(restart: str, state: str) -> None:
    """R000-120, R000-021, C15: so long from its own start, or since it is queued."""
    known: dict[str, Any] = {"pod": pod(restart=restart), "claim": STARTED}
    early = ask(state, observations.BOOTED, starting_since=NOW - 299.9, **known).claim
    assert early == (STARTED.noting({"r1": 0}) if state == observations.QUEUED else None), "one that waits begins later"
    decision = ask(state, observations.BOOTED, starting_since=NOW - 300, **known)
    row = decision.claim
    assert row is not None
    assert (type(decision.step), row.resetting, row.outcome, row.restarts, row.started_at) == (
        steps.Save,
        True,
        "",
        1,
        0,
    )
    assert (row.last_reason, row.last_at) == ("LabStartTimeout", UNIX)
    assert decision.retry_at == NOW
    assert reason_of(decision) == "CrashLoopBackOff"
    assert "r1" in decision.events[0].message


@pytest.mark.parametrize("state", [observations.QUEUED, observations.STARTED])
def test_a_late_start_ends_a_pod_that_never_restarts(state: str) -> None:
    """R000-120: FAILED with a reason, once the lab is gone."""
    decision = ask(state, observations.BOOTED, pod=pod(restart="Never"), claim=STARTED, starting_since=NOW - 300)
    row = decision.claim
    assert row is not None
    assert (type(decision.step), row.outcome, row.outcome_reason, row.resetting) == (
        steps.Save,
        "Failed",
        "LabStartTimeout",
        False,
    )
    assert ("queued" in row.outcome_message) == (state == observations.QUEUED)
    assert report_of(decision).terminal is None


def test_a_late_recovery_keeps_the_lab() -> None:
    """Recovery never destroys work: the lab was ready once."""
    for restart in ("Always", "OnFailure", "Never"):
        decision = ask(
            observations.STARTED, observations.BOOTED, pod=pod(restart=restart), claim=READY, starting_since=NOW - 301
        )
        assert (type(decision.step), decision.claim, reason_of(decision)) == (steps.Wait, None, "NeedsAttention")


def test_the_lab_is_started_afresh_in_cmls_order_after_a_pause() -> None:
    """C30: stop, wait, wipe, start."""
    world = World(pod())
    world.cml.stuck = True
    for _ in range(400):
        world.persist()
        world.observe()
        if type(world.act().step) is steps.Wait:
            world.cml.advance()
            world.now += 1.0
    began = world.steps.index(steps.Stop)
    taken = [step for step in world.steps[began:] if step not in {steps.Wait, steps.Save}]
    assert taken == [steps.Stop, steps.Wipe, steps.Start]
    assert "LabStartTimeout" in str(world.claim)


def test_the_back_off_grows_and_is_capped() -> None:
    pauses = []
    for afresh, last_at in ((0, 0), (1, UNIX), (2, UNIX), (5, UNIX), (50, UNIX), (50, UNIX - 601)):
        row = msgspec.structs.replace(STARTED, afresh=afresh, last_at=last_at)
        decision = ask(observations.STARTED, claim=row, starting_since=NOW - 301)
        assert decision.retry_at is not None
        pauses.append(decision.retry_at - NOW)
    assert pauses == [0.0, 10.0, 20.0, 160.0, 300.0, 0.0]


def test_a_pause_is_kept() -> None:
    row = claim(lab_id="lab-1", restarts=2, last_reason="LabStartTimeout")
    decision = ask(observations.DEFINED, observations.DEFINED, claim=row, retry_at=NOW + 7)
    assert (type(decision.step), decision.after_s, reason_of(decision)) == (steps.Wait, 7.0, "CrashLoopBackOff")
    assert type(ask(observations.DEFINED, observations.DEFINED, claim=row, retry_at=NOW).step) is steps.Start
    assert type(ask(claim=claim(restarts=2), searched=True, retry_at=NOW + 7).step) is steps.Wait


# ------------------------------------------------------------------------------------------ recovery


def test_what_stopped_is_started_without_a_wipe() -> None:
    first = ask(observations.STOPPED, observations.BOOTED, claim=READY)
    assert (type(first.step), first.retry_at, first.after_s) == (steps.Wait, NOW, 0.0), "at once the first time"
    decision = ask(observations.STOPPED, observations.BOOTED, claim=READY, retry_at=NOW)
    row = decision.claim
    assert row is not None
    assert (type(decision.step), row.recoveries, row.restarts, row.ready_at) == (steps.Start, 1, 0, READY.ready_at)
    assert row.starts_again == 1
    assert decision.retry_at == 0.0


@pytest.mark.parametrize(("recoveries", "pause"), [(0, 0.0), (1, 10.0), (2, 20.0)])
def test_recoveries_are_spaced(recoveries: int, pause: float) -> None:
    """R000-021, C16: bounded attempts with back-off."""
    row = msgspec.structs.replace(READY, recoveries=recoveries)
    assert ask(observations.STOPPED, claim=row).retry_at == NOW + pause


def test_every_start_has_all_its_time() -> None:
    """C30: what an earlier start and the pause after it took is not taken off the next one's."""
    crashed = ask(observations.STOPPED, claim=msgspec.structs.replace(STARTED, recoveries=2), retry_at=NOW)
    assert (type(crashed.step), crashed.forgets_starts) == (steps.Start, True)
    late = ask(observations.STARTED, claim=STARTED, starting_since=NOW - 301, observed_at=NOW)
    assert (type(late.step), late.forgets_starts) == (steps.Save, True)
    assert not ask(observations.DEFINED, claim=STARTED, start_sent_at=NOW - 31, starting_since=NOW - 31).forgets_starts


def test_after_three_recoveries_somebody_has_to_look() -> None:
    row = msgspec.structs.replace(READY, recoveries=3)
    for restart in ("Always", "OnFailure", "Never"):
        decision = ask(
            observations.STOPPED, observations.BOOTED, claim=row, pod=pod(restart=restart), retry_at=NOW - 100
        )
        assert (type(decision.step), decision.claim, reason_of(decision)) == (steps.Wait, None, "NeedsAttention")
        assert row.title in message_of(decision)
        assert "r1" in message_of(decision)


def test_a_lab_that_needed_attention_is_ready_again_when_it_is() -> None:
    row = msgspec.structs.replace(READY, recoveries=3, restarts=3, last_at=UNIX - 10)
    decision = ask(*BOOTED, claim=row)
    assert report_of(decision).ready
    assert [event.reason for event in decision.events] == ["Recovered"]


@pytest.mark.parametrize(("restart", "outcome"), [("Always", ""), ("OnFailure", ""), ("Never", "Failed")])
def test_a_lab_that_never_was_ready_follows_the_restart_policy(restart: str, outcome: str) -> None:
    row = msgspec.structs.replace(STARTED, recoveries=3)
    decision = ask(observations.STOPPED, observations.BOOTED, claim=row, pod=pod(restart=restart))
    assert type(decision.step) is steps.Save
    assert decision.claim is not None
    assert (decision.claim.outcome, decision.claim.resetting) == (outcome, not outcome)
    assert decision.claim.last_reason == ("" if outcome else "LabCrashed")


def test_recoveries_are_forgotten_when_it_is_stable() -> None:
    row = msgspec.structs.replace(READY, recoveries=2, restarts=2)
    assert ask(*BOOTED, claim=row, ready_since=NOW - 599).after_s == 1.0
    decision = ask(*BOOTED, claim=row, ready_since=NOW - 600)
    assert type(decision.step) is steps.Save
    assert decision.claim is not None
    assert (decision.claim.recoveries, decision.claim.restarts) == (0, 2)
    assert ask(*BOOTED, claim=row).after_s == 600.0


def test_what_was_shown_ready_is_kept_though_a_crash_lost_the_row() -> None:
    """Ready is shown before the row that remembers it is written."""
    shown = pod(phase="Running")
    assert reason_of(ask(observations.STARTED, pod=shown, claim=STARTED, starting_since=NOW - 301)) == "NeedsAttention"
    row = STARTED
    for _ in range(3):
        decision = ask(observations.STOPPED, pod=shown, claim=row, retry_at=NOW)
        assert type(decision.step) is steps.Start
        assert decision.claim is not None
        row = decision.claim
    assert reason_of(ask(observations.STOPPED, pod=shown, claim=row, retry_at=NOW)) == "NeedsAttention"


def test_a_lab_that_somebody_deleted_is_imported_anew() -> None:
    decision = ask(claim=READY, presence=Presence.ABSENT)
    row = decision.claim
    assert row is not None
    assert (type(decision.step), row.lab_id, row.ready_at, row.resetting, row.last_reason) == (
        steps.Save,
        "",
        0,
        False,
        "LabLost",
    )
    never = ask(claim=READY, presence=Presence.ABSENT, pod=pod(restart="Never")).claim
    assert never is not None
    assert (never.outcome, never.outcome_reason, never.lab_id) == ("Failed", "LabLost", "")


UNCLEAR = [
    ((observations.DISCONNECTED, observations.BOOTED), "ComputeDisconnected"),
    ((observations.DISCONNECTED, observations.STOPPED), "ComputeDisconnected"),
    ((observations.BOOTED, "PAUSED"), "UnknownState"),
    ((), "LabEmpty"),
]


@pytest.mark.parametrize(("states", "reason"), UNCLEAR)
@pytest.mark.parametrize("row", [STARTED, READY])
def test_a_lab_with_nothing_to_go_by_is_waited_for(states: tuple[str, ...], reason: str, row: Claim) -> None:
    """R000-021: counted from when it was first seen so, however long the start has taken."""
    known: dict[str, Any] = {"claim": row, "presence": Presence.PRESENT}
    decision = ask(*states, **known, starting_since=NOW - 5000.0, unclear_since=NOW - 299.0)
    assert (type(decision.step), reason_of(decision)) == (steps.Wait, reason)
    assert (decision.after_s, decision.observe) == (1.0, True)
    late = ask(*states, **known, unclear_since=NOW - 301.0, observed_at=NOW - 2.0)
    assert (type(late.step), reason_of(late), late.observe) == (steps.Wait, reason, True)


@pytest.mark.parametrize(("states", "reason"), UNCLEAR)
def test_a_lab_with_nothing_to_go_by_ends_its_waiting(states: tuple[str, ...], reason: str) -> None:
    """R000-021: nobody can have worked in it, so restartPolicy decides."""
    known: dict[str, Any] = {"claim": STARTED, "presence": Presence.PRESENT, "unclear_since": NOW - 300.0}
    decision = ask(*states, **known)
    assert decision.claim is not None
    assert (decision.claim.resetting, decision.claim.last_reason) == (True, reason)
    assert reason_of(decision) == "CrashLoopBackOff"
    assert "for more than 300 s" in decision.claim.last_message
    never = ask(*states, **known, pod=pod(restart="Never")).claim
    assert never is not None
    assert (never.outcome, never.outcome_reason) == ("Failed", reason)


@pytest.mark.parametrize("states", [states for states, _ in UNCLEAR])
def test_a_lab_with_nothing_to_go_by_is_kept_if_someone_may_have_worked_in_it(states: tuple[str, ...]) -> None:
    for restart in ("Always", "Never"):
        decision = ask(
            *states, claim=READY, presence=Presence.PRESENT, unclear_since=NOW - 300.0, pod=pod(restart=restart)
        )
        assert (type(decision.step), decision.claim, reason_of(decision)) == (steps.Wait, None, "NeedsAttention")
        assert decision.events[0].reason == "NeedsAttention"


def test_a_lab_without_devices_is_imported_again() -> None:
    row = claim(lab_id="lab-1", resetting=True, restarts=1, afresh=1)
    assert type(ask(claim=row, presence=Presence.PRESENT).step) is steps.DeleteLab
    gone = ask(claim=row, presence=Presence.ABSENT)
    assert gone.claim is not None
    assert (type(gone.step), gone.claim.lab_id, gone.claim.resetting, gone.claim.restarts) == (steps.Save, "", False, 1)


def test_only_time_in_which_the_lab_was_seen_counts() -> None:
    def since(memory: Memory, presence: Presence = Presence.PRESENT, *states: str, silent: bool = False) -> float:
        return unclear_since(memory, presence, devices(*states), silent=silent, now=NOW)

    before = Memory(unclear_since=NOW - 100.0)
    assert since(Memory()) == NOW
    assert since(before) == since(before, Presence.UNKNOWN) == NOW - 100.0
    assert since(before, Presence.PRESENT, observations.DISCONNECTED, observations.BOOTED) == NOW - 100.0
    assert since(before, Presence.PRESENT, *BOOTED) == since(before, silent=True) == since(before, Presence.ABSENT) == 0


# ------------------------------------------------------------------------------------------ the worker is silent


def test_a_silent_worker_turns_a_running_lablet_unready_and_keeps_it() -> None:
    report = report_of(ask(*BOOTED, claim=READY, pod=pod(phase="Running"), silent="worker w1 does not answer"))
    assert (report.phase, report.ready, report.waiting) == ("Running", False, None)
    assert report.silent.startswith("worker w1 does not answer")


def test_a_silent_worker_makes_a_pending_lablet_wait() -> None:
    for row in (IMPORTED, STARTED, claim()):
        decision = ask(claim=row, silent="worker w1 does not answer", searched=True)
        assert (type(decision.step), reason_of(decision)) == (steps.Wait, "WorkerUnreachable")


@pytest.mark.parametrize("states", [BOOTED, (observations.STOPPED,), (observations.DEFINED,), (observations.STARTED,)])
def test_a_silent_worker_is_never_called(states: tuple[str, ...]) -> None:
    for row in (READY, STARTED, claim(lab_id="lab-1", resetting=True), claim(lab_id="lab-1", outcome="Failed")):
        for deleted in (False, True):
            known: dict[str, Any] = {"claim": row, "pod": pod(deleted=deleted), "starting_since": 1.0}
            assert type(ask(*states, silent="away", **known).step) is steps.Wait


def test_a_lablet_deleted_while_the_worker_is_away_says_so() -> None:
    decision = ask(*BOOTED, claim=READY, pod=pod(phase="Running", deleted=True), silent="worker w1 does not answer")
    assert (reason_of(decision), report_of(decision).phase) == ("CleaningUp", "Running")
    assert "removed as soon as the worker answers" in message_of(decision)


# ------------------------------------------------------------------------------------------ the end


@pytest.mark.parametrize(("kept", "step"), [(True, steps.Extract), (False, steps.Stop)])
def test_configurations_are_kept_before_a_stop_unless_a_setting_says_no(kept: bool, step: type[Step]) -> None:  # noqa: FBT001 (a row)
    limits = LabletSettings(extract_on_stop=kept)
    leaving = pod(phase="Running", deleted=True)
    assert type(ask(*BOOTED, limits=limits, claim=READY, pod=leaving, extracted=False).step) is step


@pytest.mark.parametrize(("phase", "step"), [("Running", steps.Extract), ("Pending", steps.Stop)])
def test_configurations_are_kept_though_a_crash_lost_that_the_lab_was_ready(phase: str, step: type[Step]) -> None:
    leaving = pod(phase=phase, deleted=True)
    assert type(ask(*BOOTED, claim=STARTED, pod=leaving, extracted=False).step) is step


@pytest.mark.parametrize(
    ("states", "step"),
    [
        (BOOTED, steps.Stop),
        ((observations.BOOTED, observations.STOPPED), steps.Stop),
        ((observations.QUEUED,), steps.Stop),
        ((observations.DISCONNECTED,), steps.Stop),
        (("PAUSED",), steps.Stop),
        ((observations.STOPPED, observations.STOPPED), steps.Wipe),
        ((observations.STOPPED, observations.DEFINED), steps.Wipe),
        ((observations.DEFINED, observations.DEFINED), steps.DeleteLab),
    ],
)
def test_a_deleted_lablet_is_taken_down_in_cmls_order(states: tuple[str, ...], step: type[Step]) -> None:
    """R000-019, R000-020, R000-030, R004-048, C13, C30."""
    for row in (READY, STARTED):
        decision = ask(*states, claim=row, pod=pod(phase="Running", deleted=True))
        assert (type(decision.step), reason_of(decision)) == (step, "CleaningUp")


def test_a_stop_is_given_time_and_then_sent_again() -> None:
    known: dict[str, Any] = {"claim": READY, "pod": pod(deleted=True)}
    decision = ask(*BOOTED, stop_sent_at=NOW - 10, **known)
    assert (type(decision.step), decision.after_s, decision.observe) == (steps.Wait, 20.0, True)
    assert type(ask(*BOOTED, stop_sent_at=NOW - 30, **known).step) is steps.Stop


def test_a_pod_that_is_gone_is_confirmed_before_anything_is_taken_down() -> None:
    """A hole in what we know of the Pods must not cost a lab (C10)."""
    assert type(ask(*BOOTED, claim=READY, pod=None).step) is steps.ConfirmGone
    assert type(ask(*BOOTED, claim=READY, pod=None, gone_confirmed=True).step) is steps.Stop
    assert type(ask(claim=READY, pod=None, gone_confirmed=True, presence=Presence.ABSENT).step) is steps.Release
    assert type(ask(claim=None, pod=None).step) is steps.Forget


def test_absent_is_believed_only_when_somebody_looked() -> None:
    """R000-066: the row goes after the lab."""
    known: dict[str, Any] = {"pod": None, "gone_confirmed": True}
    assert type(ask(claim=IMPORTED, **known).step) is steps.Wait
    assert type(ask(claim=claim(asked_at=UNIX), **known).step) is steps.Search
    assert type(ask(claim=claim(asked_at=UNIX), searched=True, **known).step) is steps.Release
    assert type(ask(claim=claim(), **known).step) is steps.Release, "without a note it may be a copy"


def test_a_lab_in_doubt_is_awaited_and_searched_for_again() -> None:
    doubt: dict[str, Any] = {"claim": claim(asked_at=UNIX), "matches": ("lab a", "lab b"), "searched_at": NOW}
    decision = ask(**doubt)
    report = report_of(decision)
    assert (type(decision.step), report.waiting is not None) == (steps.Wait, True)
    assert report.waiting is not None
    assert (report.waiting.reason, decision.after_s) == ("NeedsAttention", 10.0)
    assert "lab a and lab b" in report.waiting.message
    assert type(ask(**doubt | {"searched_at": NOW - 10}).step) is steps.Search
    gone = ask(**doubt, pod=None, gone_confirmed=True)
    assert type(gone.step) is steps.Release, "both stay"


def test_the_deletion_is_confirmed_when_the_lab_is_gone() -> None:
    known: dict[str, Any] = {"claim": READY, "pod": pod(deleted=True), "presence": Presence.ABSENT}
    assert type(ask(**known).step) is steps.ConfirmDeletion
    assert type(ask(**known, delete_sent=True).step) is steps.Wait


def test_a_deleted_pod_with_finalizers_gets_a_final_phase() -> None:
    """A Job counts a Pod only when its phase is final."""
    held = pod(deleted=True, finalizers=("batch.kubernetes.io/job-tracking",))
    report = report_of(ask(claim=READY, pod=held, presence=Presence.ABSENT))
    assert (report.phase, report.terminal) == ("Failed", Fault(Happened.DELETED, "deleted before its end"))
    ended = pod(phase="Failed", deleted=True, finalizers=("batch.kubernetes.io/job-tracking",))
    assert type(ask(claim=None, pod=ended).step) is steps.ConfirmDeletion


def test_a_pod_that_a_finalizer_holds_keeps_no_row_and_no_ports() -> None:
    held = pod(phase="Failed", deleted=True, finalizers=("example.com/archive",))
    assert type(ask(claim=READY, pod=held, presence=Presence.ABSENT).step) is steps.Release
    assert (
        type(ask(claim=READY, pod=held, presence=Presence.PRESENT, devices=devices(observations.BOOTED)).step)
        is not steps.Release
    )
    assert type(ask(claim=None, pod=held, delete_sent=True).step) is steps.Wait


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"pod": pod(deleted=True)},
        {"pod": None, "gone_confirmed": True},
        {"pod": pod(phase="Running")},
        {"pod": pod(phase="Running", deleted=True), "silent": "worker w1 does not answer"},
        {"deadline_at": 1.0},
        {"inputs": Inputs(desired=State.TERMINATED)},
    ],
)
def test_nothing_begins_or_ends_before_lost_claims_are_rebuilt(known: dict[str, Any]) -> None:
    decision = ask(claim=None, unexamined=True, **known)
    assert (type(decision.step), decision.claim) == (steps.Wait, None)
    assert decision.report is None or decision.report.terminal is None


def test_a_pod_waits_for_the_claims_and_one_that_runs_stays_as_it_is() -> None:
    assert reason_of(ask(claim=None, unexamined=True)) == "WaitingForClaims"
    assert ask(claim=None, unexamined=True, pod=pod(phase="Running")).report is None
    refused = ask(claim=None, unexamined=True, refusal=InputError(Trouble.NOT_A_LABLET, "m"))
    assert reason_of(refused) == "NotALablet"


def test_a_lab_without_usable_ports_is_left_alone() -> None:
    fault = Fault(Trouble.PORTS_UNKNOWN, "m")
    row = msgspec.structs.replace(READY, ports_fault=fault)
    decision = ask(claim=row, presence=Presence.PRESENT, devices=devices(*BOOTED), pod=pod(phase="Running"))
    report = report_of(decision)
    assert (type(decision.step), report.waiting, report.ready) == (steps.Wait, fault, False)
    assert [event.reason for event in decision.events] == ["PortsUnknown"]
    assert type(ask(claim=row, presence=Presence.ABSENT).step) is steps.Release, "its lab was deleted: it begins anew"


@pytest.mark.parametrize("word", ["TERMINATED", "terminated", "Terminated"])
def test_an_end_on_request_cleans_up_first(word: str) -> None:
    """R000-020, C58: then Succeeded, exit code 0."""
    asked = pod(phase="Running", annotations={names.ANNOTATION_DESIRED_STATE: word})
    decision = ask(*BOOTED, claim=READY, pod=asked)
    row = decision.claim
    assert row is not None
    assert (type(decision.step), row.outcome, row.outcome_reason) == (steps.Save, "Succeeded", "Completed")
    assert reason_of(decision) == "CleaningUp"
    assert type(ask(*BOOTED, claim=row, pod=asked, claim_saved=False).step) is steps.Wait, "not before it is remembered"
    assert type(ask(*BOOTED, claim=row, pod=asked).step) is steps.Stop
    last = ask(claim=msgspec.structs.replace(row, lab_id=""), searched=True, pod=asked)
    assert report_of(last).terminal == Fault(Happened.COMPLETED, "ended on request")
    assert (report_of(last).phase, report_of(last).state) == ("Succeeded", State.TERMINATED)


def test_another_desired_state_ends_nothing() -> None:
    assert report_of(ask(*BOOTED, claim=READY, pod=pod(annotations={names.ANNOTATION_DESIRED_STATE: "READY"}))).ready


def test_the_end_is_written_only_when_the_row_says_that_the_lab_is_gone() -> None:
    ended = msgspec.structs.replace(READY, outcome="Failed", outcome_reason="LabLost", outcome_message="m")
    decision = ask(claim=ended, presence=Presence.ABSENT)
    assert type(decision.step) is steps.Save
    assert decision.claim is not None
    assert decision.claim.lab_id == ""
    assert decision.report is None


def test_after_the_end_the_row_goes() -> None:
    ended = claim(outcome="Failed", outcome_reason="r", outcome_message="m")
    assert type(ask(claim=ended, pod=pod(phase="Failed"), searched=True).step) is steps.Release
    decision = ask(claim=None, pod=pod(phase="Failed"))
    assert (type(decision.step), decision.report) == (steps.Wait, None)


def test_a_pod_that_somebody_else_ended_loses_its_lab() -> None:
    assert type(ask(*BOOTED, claim=READY, pod=pod(phase="Failed")).step) is steps.Stop
    assert ask(*BOOTED, claim=READY, pod=pod(phase="Failed")).report is None


def test_the_active_deadline_ends_a_lablet() -> None:
    late = pod(phase="Running", deadline_s=60)
    calm = ask(*BOOTED, claim=READY, pod=late, deadline_at=NOW + 5)
    assert (type(calm.step), calm.after_s) == (steps.Wait, 5.0)
    decision = ask(*BOOTED, claim=READY, pod=late, deadline_at=NOW)
    row = decision.claim
    assert row is not None
    assert (type(decision.step), row.outcome, row.outcome_reason) == (steps.Save, "Failed", "DeadlineExceeded")
    assert "60" in row.outcome_message


def test_the_active_deadline_ends_a_pod_without_a_lab_at_once() -> None:
    report = report_of(ask(claim=None, pod=pod(deadline_s=60), deadline_at=NOW - 1))
    assert (report.phase, report.state, report.terminal is not None) == ("Failed", State.FAILED, True)


def test_the_deadline_wakes_a_lablet_that_waits_for_something_else() -> None:
    decision = ask(observations.STARTED, claim=STARTED, starting_since=NOW, deadline_at=NOW + 5)
    assert decision.after_s == 5.0


@pytest.mark.parametrize("restart", ["Always", "OnFailure", "Never"])
def test_a_life_without_trouble(restart: str) -> None:
    """R000-012 to R000-016, R000-020, R000-022: each step once."""
    world = World(pod(restart=restart))
    world.settle()
    assert world.pod is not None
    assert world.pod.status.phase == "Running"
    metadata = msgspec.structs.replace(world.pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    world.pod = msgspec.structs.replace(world.pod, metadata=metadata)
    world.settle()
    assert not world.store
    assert [step for step in world.steps if step not in {steps.Wait, steps.Save}] == [
        steps.MakeClaim,
        steps.Import,
        steps.Start,
        steps.Extract,
        steps.Stop,
        steps.Wipe,
        steps.DeleteLab,
        steps.ConfirmDeletion,
        steps.ConfirmGone,
        steps.Release,
        steps.Forget,
    ]
    assert world.steps.count(steps.Save) == 1


def test_a_lost_answer_to_an_import_makes_no_second_lab() -> None:
    """R000-022, C31."""
    world = World(pod())
    world.act()
    world.persist()
    assert type(world.act("lost").step) is steps.Import
    world.settle()
    assert len(world.ours) == 1
    assert steps.Search in world.steps


def test_an_import_that_arrives_after_the_search_is_never_started_too() -> None:
    """Only the lab that the row names is started; the other one has an earlier note, and is removed."""
    world = World(pod())
    world.act()
    world.persist()
    first = world.claim
    assert first is not None
    late = world.cml.import_(world.title, notes_of(first, **WRITER), created=first.asked_at + 5, late=True)
    world.memory = msgspec.structs.replace(world.memory, searched=True, spent=first.asked_at)
    world.act()
    assert world.claim is not None
    assert world.claim.asked_at > first.asked_at
    world.settle()
    assert [lab.ever_started for lab in world.ours] == [True]
    assert late not in world.cml.labs


def test_a_start_that_is_sent_again_after_its_time_may_still_move_devices() -> None:
    """The worker was silent meanwhile, or no replica lived."""
    known: dict[str, Any] = {"claim": STARTED, "starting_since": NOW - 400}
    back = decided(
        Memory(start_sent_at=NOW - 390),
        facts_with(pod=pod(), claim=STARTED, silent="no"),
        Decision(steps.WAIT),
        worker="w",
        now=NOW,
    )
    assert back.memory.start_sent_at == 0.0
    assert type(ask(observations.DEFINED, **known).step) is steps.Start
    waits = ask(observations.DEFINED, start_sent_at=NOW - 1, observed_at=NOW, **known)
    assert (type(waits.step), waits.claim, waits.after_s) == (steps.Wait, None, 29.0)
    unseen = ask(observations.DEFINED, start_sent_at=NOW - 31, observed_at=NOW - 2, **known)
    assert (type(unseen.step), unseen.observe) == (steps.Wait, True), "it is looked at first, and not sent for ever"
    late = ask(observations.DEFINED, start_sent_at=NOW - 31, observed_at=NOW, **known)
    assert late.claim is not None
    assert late.claim.last_reason == "LabStartTimeout"


def test_a_lab_that_booted_again_after_a_stop_on_request_is_noted_as_ready() -> None:
    """Else the next replica takes a device that boots hours later for one that boots since then."""
    resumed = msgspec.structs.replace(READY, started_at=UNIX - 100)
    changed = ask(*BOOTED, claim=resumed).claim
    assert changed is not None
    assert changed.ready_at == UNIX
    assert ask(*BOOTED, claim=changed).claim is None


def test_a_lablet_whose_end_waits_for_a_claim_that_cannot_be_stored_says_why() -> None:
    closing = msgspec.structs.replace(READY, learner="alice", closing_reason="TimeslotEnded")
    known: dict[str, Any] = {"pod": pod(phase="Running"), "claim": closing, "claim_saved": False}
    assert ask(*BOOTED, **known).report is None
    full = Fault(WorkerReason.CLAIM_STORE_FULL, "the claims do not fit")
    report = report_of(ask(*BOOTED, **known, unsaved_because=full))
    assert report.state is State.COLLECTING
    assert report.waiting == Fault(WorkerReason.CLAIM_STORE_FULL, "the claims do not fit; trying again")
    known["claim"] = msgspec.structs.replace(READY, afresh=1)
    assert ask(*BOOTED, **known, unsaved_because=full).report is None, "what serves goes on"


def test_a_lab_whose_claim_was_lost_while_it_was_stopped_on_request_stays_so() -> None:
    shown = pod(phase="Running", annotations={names.ANNOTATION_DESIRED_STATE: "STOPPED"})
    lost = msgspec.structs.replace(READY, ready_at=0)
    decision = ask(observations.STOPPED, observations.STOPPED, pod=shown, claim=lost)
    assert reason_of(decision) == "LabStopped"
    assert decision.claim is not None
    assert decision.claim.stopped_at == UNIX


def test_a_start_that_moves_no_device_is_paced_and_ends() -> None:
    """R000-120: CML may accept a start and do nothing."""
    known: dict[str, Any] = {"claim": STARTED, "starting_since": NOW - 10}
    assert type(ask(observations.DEFINED, start_sent_at=NOW - 10, **known).step) is steps.Wait
    assert ask(observations.DEFINED, start_sent_at=NOW - 10, **known).after_s == 20.0
    assert type(ask(observations.DEFINED, start_sent_at=NOW - 31, **known).step) is steps.Start
    long_ago: dict[str, Any] = {
        "claim": STARTED,
        "starting_since": NOW - 301,
        "start_sent_at": NOW - 30,
        "observed_at": NOW,
    }
    late = ask(observations.DEFINED, **long_ago)
    assert late.claim is not None
    assert late.claim.last_reason == "LabStartTimeout"
