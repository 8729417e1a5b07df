"""What decisions, steps and failures leave behind in memory and claim, row by row: every step, well or badly done."""

from itertools import product
from typing import Any

import msgspec
import pytest

from tests.unit.labs.builders import POD_UID, claim, devices, facts_with, pod
from tests.unit.labs.lablet.test_steps import step_classes
from vkprovider.lablet import observations
from vkprovider.lablet.archives import Verdict
from vkprovider.lablet.deviceacts import DeviceAct
from vkprovider.lablet.exposure import Exposure
from vkprovider.lablet.inputs import Inputs
from vkprovider.lablet.reasons import EnvironmentReason, Happened, Progress, Trouble, WorkerReason
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import outcomes, steps
from vkprovider.labs.pure.lablet.after import After, after, begun, decided, failed
from vkprovider.labs.pure.lablet.decisions.stage import Stage, stage_of
from vkprovider.labs.pure.lablet.decisions.stepfault import fault_report
from vkprovider.labs.pure.lablet.facts import Decision, Report
from vkprovider.labs.pure.lablet.leftovers import of_claim
from vkprovider.labs.pure.lablet.memory import BLANK, Memory, Presence, held_s, lab_seen, refreshed
from vkprovider.labs.pure.lablet.outcomes import Acted, Adopted, Archived, Circumstances, Done, Failure, Outcome
from vkprovider.labs.pure.lablet.steps import SAVE, WAIT, Step
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.errors import (
    DeadlineExceeded,
    Forbidden,
    InputError,
    Invalid,
    NotFound,
    OutsideError,
    Throttled,
    Unavailable,
)
from vkprovider.platform.messages import Fault, Notice
from vkprovider.platform.reasons import PortReason, reason_of

NOW = 5000.0
UNIX = 1_800_000_000
PLACE = Circumstances("w1", pod(), NOW, UNIX)
ROW = claim(lab_id="lab-1", started_at=UNIX - 60)
BARE = claim()
ASKED = Session("eu-1", POD_UID, "alice")
MADE = msgspec.structs.replace(ASKED, id="s-1", login_url="https://lds/login", ready_at=UNIX)
DEVICES = devices(observations.DEFINED, observations.DEFINED)
LEFT = of_claim(ROW, {"r1": "hostname r1"}, {"r2": "it is off"}, at=UNIX)
EXPOSED = Exposure("w1", "labs", "team", "pod-1", POD_UID, "", "198.51.100.1", ())
UNREAD = {"": Unavailable("the LDS does not answer"), "r1": Unavailable("x")}
"""The answers, which no device has, and a device."""
EXTRACT: tuple[Any, ...] = (ROW, DEVICES, "alice", True)
EVERY: list[Step] = [
    SAVE,
    steps.MakeClaim(pod()),
    steps.Renew(pod(), ROW),
    steps.Release(ROW),
    steps.Search(BARE),
    steps.Import(BARE, pod()),
    steps.NoteLearner(ROW),
    steps.Start(ROW),
    steps.Stop(ROW),
    steps.Wipe(ROW),
    steps.ChangeDevice(ROW, DEVICES[0], DeviceAct.STOP),
    steps.DeleteLab(ROW),
    steps.Extract(*EXTRACT),
    steps.Collect(*EXTRACT),
    steps.Grade(ROW),
    steps.Provision(ROW, ASKED, first_request=True),
    steps.Reschedule(ROW, MADE, UNIX + 7200),
    steps.ArchiveSession(ROW, MADE),
    steps.ConfirmGone(ROW),
    steps.ConfirmDeletion(pod()),
    steps.RestoreUsername(pod(), "alice", "bob"),
    steps.ClearLearner(pod()),
    steps.ReturnToPool(pod(), "evening"),
    steps.Expose(EXPOSED, ""),
    steps.Withdraw(ROW, "", 60),
]


def changes(result: After, memory: Memory) -> dict[str, Any]:
    """Return the fields of memory that differ."""
    names = [field.name for field in msgspec.structs.fields(Memory)]
    return {
        name: getattr(result.memory, name) for name in names if getattr(result.memory, name) != getattr(memory, name)
    }


def reasons(result: After) -> list[str]:
    return [notice.reason for notice in result.notices]


def test_the_table_has_every_kind_of_step() -> None:
    assert {type(step) for step in EVERY} == step_classes() - {steps.Wait, steps.Forget}


# ------------------------------------------------------------------------------------------ steps that succeed


def test_many_long_warnings_of_an_import_fit_into_one_event() -> None:
    given = tuple(f"Node r{number}:\n no image {'x' * 500}" for number in range(40))
    result = after(BLANK, BARE, steps.Import(BARE, pod()), Acted("lab-1", warnings=given), PLACE)
    note = result.notices[-1].message
    assert len(note) < 1024
    assert note.startswith("CML warns of the lab that it imported: Node r0: no image xxx")
    assert note.endswith("; and 35 more")


@pytest.mark.parametrize(
    ("step", "outcome", "row", "remembered", "told"),
    [
        (SAVE, Done(), ROW, {}, []),
        (steps.Search(BARE), Done(), BARE, {"searched": True}, []),
        (steps.Search(BARE), Adopted(ROW), BARE, {"searched": True, "acted_at": NOW}, ["Adopted"]),
        (
            steps.Import(BARE, pod()),
            Acted("lab-1", devices=DEVICES),
            BARE,
            {"searched": True, "acted_at": NOW, "assumed": DEVICES},
            ["Created"],
        ),
        (
            steps.Import(BARE, pod()),
            Acted("lab-1", warnings=("Unknown node definition: acme",)),
            BARE,
            {"searched": True, "acted_at": NOW},
            ["Created", "ImportWarned"],
        ),
        (steps.NoteLearner(ROW), Done(), ROW, {}, []),
        (steps.Start(ROW), Acted(), ROW, {"acted_at": NOW, "start_sent_at": NOW, "starting_since": NOW}, ["Started"]),
        (steps.Stop(ROW), Acted(), ROW, {"acted_at": NOW, "stop_sent_at": NOW}, []),
        (steps.Stop(ROW), Acted(gone=True), ROW, {"acted_at": NOW, "stop_sent_at": NOW, "absent": True}, []),
        (steps.Wipe(ROW), Acted(devices=DEVICES), ROW, {"acted_at": NOW, "assumed": DEVICES}, []),
        (steps.Wipe(ROW), Acted(gone=True), ROW, {"acted_at": NOW, "absent": True}, []),
        (
            steps.ChangeDevice(ROW, DEVICES[0], DeviceAct.STOP),
            Acted(devices=DEVICES),
            ROW,
            {"acted_at": NOW, "assumed": DEVICES, "device_acts": {"r1": (DeviceAct.STOP, NOW + 30.0)}},
            [],
        ),
        (steps.DeleteLab(ROW), Acted(gone=True), ROW, {"absent": True}, []),
        (steps.Extract(*EXTRACT), Archived(LEFT, {}), ROW, {"extracted": True}, []),
        (steps.Extract(*EXTRACT), Archived(LEFT, {"r1": Unavailable("x")}), ROW, {"extracted": True}, ["NotKept"]),
        (steps.Collect(*EXTRACT), Archived(LEFT, {}), ROW, {"extracted": True}, ["Collected"]),
        (
            steps.Collect(*EXTRACT),
            Archived(LEFT, UNREAD),
            ROW,
            {"extracted": True},
            ["NotKept", "NotKept", "Collected"],
        ),
        (steps.Grade(ROW), outcomes.Graded(Verdict(passed=True, message="91")), ROW, {}, ["Graded"]),
        (steps.Provision(ROW, ASKED, first_request=True), outcomes.Provisioned(MADE), ROW, {}, ["SessionReady"]),
        (steps.ArchiveSession(ROW, MADE), outcomes.SessionArchived(), ROW, {}, ["SessionArchived"]),
        (steps.ArchiveSession(ROW, ASKED), outcomes.SessionArchived(), ROW, {}, []),
        (steps.ArchiveSession(ROW, MADE), outcomes.SessionArchived("no LDS"), ROW, {}, ["LDSDeploymentUnknown"]),
        (steps.ConfirmGone(ROW), Done(), ROW, {"gone_confirmed": True}, []),
        (steps.ConfirmDeletion(pod()), Done(), ROW, {"delete_sent": True}, []),
        (steps.RestoreUsername(pod(), "alice", "bob"), Done(), ROW, {"restored_at": NOW}, ["UsernameRestored"]),
        (steps.ClearLearner(pod()), Done(), ROW, {}, []),
        (steps.ReturnToPool(pod(), "evening"), Done(), ROW, {}, []),
        (steps.Release(ROW), Done(), ROW, {}, []),
        (steps.MakeClaim(pod()), outcomes.Claimed(BARE), None, {"searched": True}, []),
    ],
)
def test_memory_and_events_after_a_step(
    step: Step, outcome: Outcome, row: Claim | None, remembered: dict[str, Any], told: list[str]
) -> None:
    result = after(BLANK, row, step, outcome, PLACE)
    assert (changes(result, BLANK), reasons(result)) == (remembered, told)


@pytest.mark.parametrize(
    ("step", "outcome", "row", "fields"),
    [
        (
            steps.Search(BARE),
            Adopted(claim(lab_id="lab-7", ports={"a": 1})),
            BARE,
            {"lab_id": "lab-7", "ports": {"a": 1}},
        ),
        (steps.Import(BARE, pod()), Acted("lab-7", devices=DEVICES), BARE, {"lab_id": "lab-7"}),
        (
            steps.Import(BARE, pod(), "alice"),
            Acted("lab-7"),
            BARE,
            {"lab_id": "lab-7", "learner": "alice", "noted": "alice"},
        ),
        (steps.NoteLearner(claim(learner="alice")), Done(), ROW, {"noted": "alice"}),
        (
            steps.Search(BARE),
            Adopted(claim(lab_id="lab-7", learner="alice", noted="alice")),
            BARE,
            {"lab_id": "lab-7", "learner": "alice", "noted": "alice"},
        ),
        (steps.Collect(*EXTRACT), Archived(LEFT, {}), ROW, {"collected_at": UNIX}),
        (steps.Extract(*EXTRACT), Archived(LEFT, {}), ROW, {}),
        (steps.Provision(ROW, ASKED, first_request=True), outcomes.Provisioned(MADE), ROW, {"session": MADE}),
        (steps.Start(ROW), Acted(), ROW, {}),
    ],
)
def test_claim_after_a_step_is_the_latest_one_with_the_outcome(
    step: Step, outcome: Outcome, row: Claim, fields: dict[str, Any]
) -> None:
    """The claim may have changed while the step ran: its other fields stay as they are now."""
    latest = msgspec.structs.replace(row, recoveries=2)
    result = after(BLANK, latest, step, outcome, PLACE)
    assert result.claim == msgspec.structs.replace(latest, **fields)


def test_claim_after_archiving_and_grading() -> None:
    row = msgspec.structs.replace(ROW, session=MADE)
    archived = after(BLANK, row, steps.ArchiveSession(row, MADE), outcomes.SessionArchived(), PLACE).claim
    assert archived is not None
    assert archived.session == msgspec.structs.replace(MADE, archived_at=UNIX)
    verdict = Verdict(passed=False, message="12 of 100")
    graded = after(BLANK, row, steps.Grade(row), outcomes.Graded(verdict), PLACE)
    assert graded.claim == msgspec.structs.replace(row, verdict=verdict)
    assert graded.notices == (Notice("Normal", Happened.GRADED, "not passed, 12 of 100"),)


def test_release_leaves_no_claim_and_only_it() -> None:
    yielded: dict[type[Step], Outcome] = {
        steps.MakeClaim: outcomes.Claimed(BARE),
        steps.Search: Done(),
        steps.Import: Acted("l"),
    }
    for step in EVERY:
        result = after(BLANK, ROW, step, yielded.get(type(step), Done()), PLACE)
        assert (result.claim is None) is isinstance(step, steps.Release), step


def test_a_new_claim_is_awaited_and_searches_if_the_pod_has_begun() -> None:
    """An earlier claim of the Pod may have been lost, with a lab to it."""
    result = after(BLANK, None, steps.MakeClaim(pod()), outcomes.Claimed(BARE), PLACE)
    assert (result.claim, result.lazy, result.memory.searched) == (BARE, False, True)
    begun_pod = pod(status={"startTime": "2026-01-01T00:00:00Z"})
    assert not after(BLANK, None, steps.MakeClaim(begun_pod), outcomes.Claimed(BARE), PLACE).memory.searched


def test_a_lab_is_written_into_the_claim_with_the_next_batch() -> None:
    """Another owner must not need the lab's title to find it: someone may change it."""
    assert after(BLANK, BARE, steps.Import(BARE, pod()), Acted("lab-1"), PLACE).lazy is False
    assert after(BLANK, BARE, steps.Search(BARE), Adopted(ROW), PLACE).lazy is False
    assert after(BLANK, ROW, steps.Start(ROW), Acted(), PLACE).lazy is True


@pytest.mark.parametrize(("closing", "lazy"), [("", True), ("SessionEnded", False)])
def test_an_end_waits_until_its_claim_is_persisted(closing: str, lazy: bool) -> None:  # noqa: FBT001 (a row)
    row = msgspec.structs.replace(ROW, session=MADE, closing_reason=closing)
    assert after(BLANK, row, steps.ArchiveSession(row, MADE), outcomes.SessionArchived(), PLACE).lazy is lazy
    assert after(BLANK, row, steps.Collect(*EXTRACT), Archived(LEFT, {}), PLACE).lazy is False


def test_renewed_claim_whose_content_is_the_current_one_again_replaces_nothing() -> None:
    for renews, left in (("other", "other"), (ROW.digest, "")):
        renewed = msgspec.structs.replace(ROW, lab_id="", renews=renews)
        result = after(BLANK, ROW, steps.Renew(pod(), ROW), outcomes.Claimed(renewed), PLACE)
        assert result.claim == msgspec.structs.replace(renewed, renews=left)


def test_start_keeps_the_beginning_of_an_earlier_start() -> None:
    memory = begun(Memory(starting_since=NOW - 40, stop_sent_at=NOW - 50, extracted=True), steps.Start(ROW))
    result = after(memory, ROW, steps.Start(ROW), Acted(), PLACE)
    assert changes(result, memory) == {
        "acted_at": NOW,
        "start_sent_at": NOW,
    }


@pytest.mark.parametrize("step", EVERY, ids=lambda step: step.label)
def test_success_ends_a_series_of_failures_except_for_a_search(step: Step) -> None:
    """A search only leads up to an import, and that may be what fails."""
    memory = Memory(failures=3, fault=Fault(WorkerReason.WORKER_ERROR, "m"), hold_until=NOW - 1)
    yielded: dict[type[Step], Outcome] = {
        steps.MakeClaim: outcomes.Claimed(BARE),
        steps.Search: Done(),
        steps.Import: Acted("l"),
    }
    result = after(memory, ROW, step, yielded.get(type(step), Done()), PLACE).memory
    assert (result.failures, result.fault is None) == ((3, False) if type(step) is steps.Search else (0, True))


def test_an_abandoned_step_changes_nothing_else() -> None:
    memory = Memory(failures=2, fault=Fault(WorkerReason.WORKER_ERROR, "m"), archive_failed=True)
    result = after(memory, ROW, steps.Collect(*EXTRACT), outcomes.Abandoned(), PLACE)
    assert (changes(result, memory), result.claim, result.notices) == ({"failures": 0, "fault": None}, ROW, ())


@pytest.mark.parametrize(
    ("outcome", "slot_end", "reason"),
    [
        (outcomes.Rescheduled(), UNIX + 7200, "TimeslotChanged"),
        (outcomes.Rescheduled(Fault(Happened.TIMESLOT_NOT_CHANGED, "it cannot")), UNIX + 7200, "TimeslotNotChanged"),
        (
            outcomes.Rescheduled(Fault(Happened.TIMESLOT_NOT_CHANGED, "no answer"), final=False),
            UNIX + 60,
            "TimeslotNotChanged",
        ),
    ],
)
def test_another_end_of_a_session_is_asked_for_until_it_is_answered(
    outcome: outcomes.Rescheduled, slot_end: int, reason: str
) -> None:
    session = msgspec.structs.replace(MADE, slot_end=UNIX + 60)
    row = msgspec.structs.replace(ROW, session=session)
    step = steps.Reschedule(row, session, UNIX + 7200)
    done = after(BLANK, row, step, outcome, PLACE)
    assert done.claim is not None
    assert done.claim.session == msgspec.structs.replace(session, slot_end=slot_end)
    assert (done.memory.rescheduled_at, done.lazy) == (NOW, True)
    assert [notice.reason for notice in done.notices] == [reason]
    again = after(done.memory, row, step, outcome, PLACE)
    assert bool(again.notices) == (outcome.fault is None)


# ------------------------------------------------------------------------------------------ before the answer


@pytest.mark.parametrize("step", EVERY, ids=lambda step: step.label)
def test_what_must_hold_even_if_the_answer_is_lost(step: Step) -> None:
    memory = Memory(
        searched=True, start_sent_at=1.0, stop_sent_at=2.0, starting_since=3.0, extracted=True, unasked=POD_UID
    )
    expected: dict[type[Step], dict[str, Any]] = {
        steps.Import: {"searched": False},
        steps.Start: {"stop_sent_at": 0.0, "extracted": False},
        steps.Wipe: {"start_sent_at": 0.0, "stop_sent_at": 0.0, "starting_since": 0.0},
        steps.Provision: {"unasked": ""},
    }
    assert changes(After(begun(memory, step), ROW), memory) == expected.get(type(step), {})


# ------------------------------------------------------------------------------------------ steps that fail

COMMANDS = {steps.Start, steps.Stop, steps.Wipe, steps.ChangeDevice, steps.DeleteLab}

ERRORS: list[OutsideError | None] = [
    None,
    Unavailable("away", status=503),
    DeadlineExceeded("no answer"),
    Throttled("slow down"),
    Invalid("no", status=400),
    Forbidden("no", status=403),
    NotFound("gone", status=404),
]


def test_every_failure_is_counted_held_and_told() -> None:
    memory = Memory(failures=1)
    for step, error in product(EVERY, ERRORS):
        result = failed(memory, ROW, step, Failure(Fault(WorkerReason.WORKER_ERROR, "m"), 7.0, error), PLACE)
        expected = remembered_of(step, error)
        changed = {field: value for field, value in expected.items() if value != getattr(memory, field)}
        assert changes(result, memory) == changed, (step.label, error)
        assert result.claim == ROW, (step.label, error)
        assert result.notices == (Notice("Warning", WorkerReason.WORKER_ERROR, "m"),), (step.label, error)


def remembered_of(step: Step, error: OutsideError | None) -> dict[str, Any]:
    """Return the fields of memory that a second failure of a step leaves."""
    expected: dict[str, Any] = {
        "failures": 2,
        "fault": Fault(WorkerReason.WORKER_ERROR, "m"),
        "hold_until": NOW + 7.0,
        "warned": Fault(WorkerReason.WORKER_ERROR, "m"),
    }
    if type(step) is steps.RestoreUsername:  # nothing waits for it
        expected |= {"hold_until": 0.0, "restored_at": NOW + 7.0}
    if type(step) is steps.Expose:
        expected |= {"hold_until": 0.0, "expose_at": NOW + 7.0}
    if isinstance(step, steps.ChangeDevice):
        expected |= {"hold_until": 0.0, "device_acts": {"r1": (DeviceAct.STOP, NOW + 7.0)}}
    if type(step) is steps.Import and not isinstance(error, Unavailable):
        expected["searched"] = True
    if type(step) is steps.ArchiveSession and error is not None:
        expected["archive_failed"] = True
    if isinstance(error, NotFound) and steps.System.WORKER in step.calls:
        expected["acted_at"] = NOW
    if isinstance(error, Unavailable) and type(step) in COMMANDS:
        expected["acted_at"] = NOW
    return expected


@pytest.mark.parametrize("step", [step for step in EVERY if type(step) in COMMANDS], ids=lambda step: step.label)
def test_a_command_of_which_nobody_knows_whether_it_was_carried_out_is_followed_by_a_look(step: Step) -> None:
    memory = Memory(acted_at=NOW - 9, assumed=DEVICES)
    lost = Failure(Fault(Trouble.WORKER_UNREACHABLE, "m"), 1.0, Unavailable("the agent was restarted"))
    after_it = failed(memory, ROW, step, lost, PLACE).memory
    assert (after_it.acted_at, after_it.assumed) == (NOW, None), "an earlier observation does not count"
    unsent = msgspec.structs.replace(lost, not_done=True)
    after_it = failed(memory, ROW, step, unsent, PLACE).memory
    assert (after_it.acted_at, after_it.assumed) == (NOW - 9, DEVICES)


def test_a_refused_start_does_not_count_as_an_attempt() -> None:
    attempted = msgspec.structs.replace(ROW, recoveries=1, restarts=1)
    refused = Failure(Fault(Trouble.START_REFUSED, "m"), 1.0, Invalid("no", status=400))
    assert failed(BLANK, attempted, steps.Start(ROW), refused, PLACE).claim == ROW
    unsent = Failure(Fault(PortReason.PORT_CONFLICT, "m"), 1.0, None)
    assert failed(BLANK, attempted, steps.Start(ROW), unsent, PLACE).claim == ROW
    assert failed(BLANK, None, steps.Start(ROW), refused, PLACE).claim is None, "a claim that gave way comes back"


@pytest.mark.parametrize(
    ("started_at", "error", "since"),
    [
        (0, None, 0.0),
        (900, None, 0.0),
        (900, Invalid("no", status=400), 0.0),
        (0, Unavailable("away"), 0.0),
        (900, Unavailable("away"), NOW - 500),
    ],
)
def test_time_to_boot_does_not_begin_with_a_start_that_failed(
    started_at: int, error: OutsideError | None, since: float
) -> None:
    """But the time of a start that may have been carried out goes on where nothing else would begin it."""
    before = msgspec.structs.replace(ROW, started_at=started_at, ready_at=started_at)
    failure = Failure(Fault(PortReason.PORT_CONFLICT, "m"), 1.0, error)
    result = failed(Memory(starting_since=NOW - 500), ROW, steps.Start(before), failure, PLACE)
    assert result.memory.starting_since == since
    assert after(result.memory, ROW, steps.Start(ROW), Acted(), PLACE).memory.starting_since == (since or NOW)


@pytest.mark.parametrize(
    ("first", "not_done", "error", "elsewhere", "unasked"),
    [
        (True, True, Unavailable("full", status=503), True, POD_UID),
        (True, True, Invalid("no", status=400), False, POD_UID),
        (True, True, Forbidden("no", status=403), False, POD_UID),
        (True, False, DeadlineExceeded("no answer"), False, ""),
        (False, True, Unavailable("full", status=503), False, ""),
        (True, True, None, False, ""),
    ],
)
def test_only_a_session_that_was_certainly_not_made_moves(
    first: bool,  # noqa: FBT001 (a row)
    not_done: bool,  # noqa: FBT001 (a row)
    error: OutsideError | None,
    elsewhere: bool,  # noqa: FBT001 (a row)
    unasked: str,
) -> None:
    row = msgspec.structs.replace(ROW, session=ASKED)
    failure = Failure(Fault(Trouble.LDS_REFUSED, "m"), 1.0, error, not_done)
    result = failed(BLANK, row, steps.Provision(row, ASKED, first), failure, PLACE)
    assert result.claim is not None
    assert (result.claim.session is None, result.lazy) == (elsewhere, not elsewhere)
    assert result.memory.unasked == unasked


def test_a_session_with_an_id_never_moves() -> None:
    row = msgspec.structs.replace(ROW, session=MADE)
    failure = Failure(Fault(Trouble.LDS_UNAVAILABLE, "m"), 1.0, Unavailable("full", status=503), not_done=True)
    assert failed(BLANK, row, steps.Provision(row, MADE, first_request=True), failure, PLACE).claim == row


def test_the_same_warning_is_emitted_once() -> None:
    failure = Failure(Fault(Trouble.IMPORT_REFUSED, "m"), 1.0, Invalid("m", status=400))
    first = failed(BLANK, BARE, steps.Import(BARE, pod()), failure, PLACE)
    assert reasons(first) == ["ImportRefused"]
    assert reasons(failed(first.memory, BARE, steps.Import(BARE, pod()), failure, PLACE)) == []


def test_a_warning_of_an_earlier_replica_is_not_repeated() -> None:
    waiting = {"waiting": {"reason": "ImportRefused", "message": "m; trying again"}}
    shown = pod(status={"containerStatuses": [{"name": "lab", "state": waiting}]})
    failure = Failure(Fault(Trouble.IMPORT_REFUSED, "m"), 1.0, Invalid("m", status=400))
    place = msgspec.structs.replace(PLACE, pod=shown)
    assert reasons(failed(BLANK, BARE, steps.Import(BARE, pod()), failure, place)) == []


def test_a_failure_has_an_event_of_its_own_reason_once() -> None:
    failure = Failure(
        Fault(Trouble.CREATE_CONTAINER_CONFIG_ERROR, "m"), 1.0, event=EnvironmentReason.MANDATORY_SECRET_NOT_FOUND
    )
    first = failed(BLANK, BARE, steps.Import(BARE, pod()), failure, PLACE)
    assert reasons(first) == ["MandatorySecretNotFound"]
    assert reasons(failed(first.memory, BARE, steps.Import(BARE, pod()), failure, PLACE)) == []
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": "m; trying again"}}
    shown = pod(status={"containerStatuses": [{"name": "lab", "state": waiting}]})
    place = msgspec.structs.replace(PLACE, pod=shown)
    assert reasons(failed(BLANK, BARE, steps.Import(BARE, pod()), failure, place)) == []


def test_an_import_for_which_nothing_was_sent_needs_no_search() -> None:
    failure = Failure(Fault(Trouble.CREATE_CONTAINER_CONFIG_ERROR, "m"), 1.0)
    begins = begun(Memory(searched=True), steps.Import(BARE, pod()))
    assert not begins.searched
    assert failed(begins, BARE, steps.Import(BARE, pod()), failure, PLACE).memory.searched


def test_what_an_import_left_out_is_told_before_it() -> None:
    left_out = Notice("Warning", EnvironmentReason.OPTIONAL_SECRET_NOT_FOUND, "m")
    done = after(BLANK, BARE, steps.Import(BARE, pod()), Acted("lab-1", notices=(left_out,)), PLACE)
    assert reasons(done) == ["OptionalSecretNotFound", "Created"]


def test_fields_that_mean_nothing_are_told_with_the_claim() -> None:
    strange = pod(otherFields=["env", "ports", "volumes"])
    made = after(BLANK, None, steps.MakeClaim(strange), outcomes.Claimed(BARE), PLACE)
    assert [(notice.reason, notice.message) for notice in made.notices] == [
        ("FieldIgnored", "a lablet has no ports, volumes: these fields of the pod are ignored")
    ]
    plain = pod(otherFields=["env"])
    assert after(BLANK, None, steps.MakeClaim(plain), outcomes.Claimed(BARE), PLACE).notices == ()


def test_an_unreachable_worker_is_told_at_its_first_failure_only() -> None:
    failure = Failure(Fault(Trouble.WORKER_UNREACHABLE, "m"), 1.0, Unavailable("m"))
    assert reasons(failed(BLANK, BARE, steps.Import(BARE, pod()), failure, PLACE)) == ["WorkerUnreachable"]
    assert reasons(failed(Memory(failures=1), BARE, steps.Import(BARE, pod()), failure, PLACE)) == []


def test_a_hold_ends_with_time_or_with_a_change_of_the_deletion() -> None:
    failure = Failure(Fault(WorkerReason.WORKER_ERROR, "m"), 7.0)
    memory = failed(BLANK, ROW, steps.Start(ROW), failure, PLACE).memory
    assert held_s(memory, pod(), NOW + 2) == 5.0
    assert held_s(memory, pod(), NOW + 8) == 0.0
    assert held_s(memory, pod(deleted=True), NOW + 2) == 0.0
    assert held_s(memory, None, NOW + 2) == 0.0
    assert held_s(refreshed(memory, pod(), ROW, now=NOW, wall=UNIX, silent=True), pod(), NOW + 2) == 0.0
    assert held_s(BLANK, pod(), NOW) == 0.0


@pytest.mark.parametrize(
    ("row", "deleted", "state", "reason"),
    [
        (ROW, False, State.INSTANTIATING, "WorkerError"),
        (ROW, True, State.STOPPING, "CleaningUp"),
        (msgspec.structs.replace(ROW, outcome="Failed"), False, State.STOPPING, "CleaningUp"),
        (msgspec.structs.replace(ROW, closing_reason="TimeslotEnded"), False, State.COLLECTING, "WorkerError"),
        (None, False, State.INSTANTIATING, "WorkerError"),
    ],
)
def test_report_of_a_failed_step(row: Claim | None, deleted: bool, state: State, reason: str) -> None:  # noqa: FBT001 (a row)
    report = fault_report(facts_with(pod=pod(deleted=deleted), claim=row), Fault(WorkerReason.WORKER_ERROR, "m"))
    assert report is not None
    assert (report.state, report.waiting) == (state, Fault(reason_of(reason), "m; trying again"))


def test_a_pod_that_is_gone_or_terminal_reports_no_fault() -> None:
    for item in (None, pod(phase="Failed")):
        assert fault_report(facts_with(pod=item, claim=ROW), Fault(WorkerReason.WORKER_ERROR, "m")) is None


# ------------------------------------------------------------------------------------------ decisions


def decide_on(memory: Memory, decision: Decision, row: Claim | None = ROW, **known: Any) -> After:
    facts = msgspec.structs.replace(facts_with(**{"pod": pod(), "claim": row, **known}), memory=memory)
    return decided(memory, facts, decision, worker="w1", now=NOW)


def test_ready_and_not_ready_any_more() -> None:
    ready = Report(State.READY, phase="Running")
    memory = Memory(starting_since=NOW - 30, retry_at=NOW - 1, warned=Fault(WorkerReason.WORKER_ERROR, "m"))
    first = decide_on(memory, Decision(WAIT, ready)).memory
    assert (first.ready_since, first.starting_since, first.retry_at, first.warned) == (NOW, 0.0, 0.0, None)
    assert first.state is State.READY
    later = msgspec.structs.replace(first, ready_since=NOW - 9)
    assert decide_on(later, Decision(WAIT, ready)).memory.ready_since == NOW - 9
    lost = Report(State.INSTANTIATING, phase="Running", waiting=Fault(Progress.RECOVERING, "m"))
    assert decide_on(first, Decision(WAIT, lost)).memory.ready_since == 0.0
    assert decide_on(first, Decision(WAIT)).memory.ready_since == NOW, "no report, no change"


def test_a_decision_without_a_lab_forgets_what_was_assumed_of_it() -> None:
    memory = Memory(absent=True, assumed=DEVICES, starting_since=3.0, start_sent_at=4.0)
    result = decide_on(memory, Decision(SAVE, None, BARE, retry_at=NOW + 9, forgets_starts=True))
    assert changes(result, memory) == {
        "absent": False,
        "assumed": None,
        "starting_since": 0.0,
        "start_sent_at": 0.0,
        "retry_at": NOW + 9,
    }
    kept = decide_on(memory, Decision(SAVE, None, ROW))
    assert (kept.memory.absent, kept.memory.assumed) == (True, DEVICES)


@pytest.mark.parametrize(
    ("fields", "lazy"),
    [
        ({}, True),
        ({"recoveries": 1}, True),
        ({"outcome": "Failed"}, False),
        ({"closing_reason": "TimeslotEnded"}, False),
        ({"session": ASKED}, False),
        ({"session": MADE}, True),
        ({"learner": "alice"}, False),
    ],
)
def test_which_claims_are_awaited(fields: dict[str, Any], lazy: bool) -> None:  # noqa: FBT001 (a row)
    """An end, a session that is about to be made and a learner are written at once."""
    changed = msgspec.structs.replace(ROW, **fields)
    result = decide_on(BLANK, Decision(SAVE, None, changed))
    assert (result.claim, result.lazy) == (changed, lazy)


def test_a_chosen_session_is_remembered_as_never_requested() -> None:
    chosen = msgspec.structs.replace(ROW, session=ASKED)
    assert decide_on(BLANK, Decision(SAVE, None, chosen)).memory.unasked == POD_UID
    followed = msgspec.structs.replace(ROW, session=MADE)
    assert decide_on(BLANK, Decision(SAVE, None, followed), chosen).memory.unasked == ""


def test_refusal_is_remembered_until_it_ends() -> None:
    refused = decide_on(BLANK, Decision(WAIT), None, refusal=InputError(Trouble.NOT_A_LABLET, "m")).memory
    assert refused.refused
    assert not decide_on(refused, Decision(WAIT), None).memory.refused


def test_events_about_the_pod_are_emitted_once() -> None:
    known: dict[str, Any] = {
        "pod": pod(deleted=True, containers=(("lab", "netlab:2.0"),)),
        "inputs": Inputs(faults=("f",)),
    }
    first = decide_on(BLANK, Decision(WAIT, events=(Notice("Normal", Happened.READY, "m"),)), **known)
    assert reasons(first) == ["Ready", "AnnotationInvalid", "ImageChangeIgnored", "Killing"]
    assert reasons(decide_on(first.memory, Decision(WAIT), **known)) == []
    unclaimed = decide_on(BLANK, Decision(WAIT), None, pod=pod(deleted=True))
    assert (unclaimed.memory.killing, reasons(unclaimed)) == (True, [])


# ------------------------------------------------------------------------------------------ memory


def test_start_of_an_earlier_replica_goes_on() -> None:
    assert refreshed(BLANK, pod(), ROW, now=NOW, wall=UNIX + 0.5).starting_since == NOW - 60
    known = Memory(starting_since=NOW - 5)
    assert refreshed(known, pod(), ROW, now=NOW, wall=UNIX) is known
    ready = msgspec.structs.replace(ROW, ready_at=UNIX - 10)
    assert refreshed(BLANK, pod(), ready, now=NOW, wall=UNIX) is BLANK


def test_deadline_counts_from_the_start_of_the_pod_and_may_be_lowered() -> None:
    begun_pod = pod(deadline_s=60, status={"startTime": "2027-01-15T08:00:00Z"})
    wall = 1_800_000_030.0
    memory = refreshed(BLANK, begun_pod, None, now=NOW, wall=wall)
    assert memory.deadline_at == NOW - 30 + 60
    assert refreshed(memory, begun_pod, None, now=NOW + 9, wall=wall + 99) is memory, "a clock that jumps moves it"
    lowered = pod(deadline_s=40, status={"startTime": "2027-01-15T08:00:00Z"})
    assert refreshed(memory, lowered, None, now=NOW, wall=wall).deadline_at == NOW + 10
    assert refreshed(Memory(met_at=NOW - 5), pod(deadline_s=60), None, now=NOW, wall=wall).deadline_at == NOW + 55


def test_deadline_by_a_clock_that_is_not_certain_is_computed_again_and_ends_nothing() -> None:
    begun_pod = pod(deadline_s=60, status={"startTime": "2027-01-15T08:00:00Z"})
    early = refreshed(BLANK, begun_pod, ROW, now=NOW, wall=1_800_000_900.0, sure=False)
    known = {"pod": begun_pod, "claim": ROW, "presence": Presence.PRESENT, "devices": DEVICES, "now_unix": UNIX}
    for sure, ends in ((False, False), (True, True)):
        facts = msgspec.structs.replace(facts_with(**known, sure=sure), memory=early)
        assert (stage_of(facts, NOW) is Stage.ENDING) is ends
    assert refreshed(early, begun_pod, ROW, now=NOW + 5, wall=1_800_000_005.0).deadline_at == NOW + 5 - 5 + 60


def test_what_was_archived_for_a_stop_that_was_taken_back_is_archived_again() -> None:
    ready = msgspec.structs.replace(ROW, ready_at=UNIX - 10)
    known: dict[str, Any] = {"presence": Presence.PRESENT, "devices": devices(observations.BOOTED), "now_unix": UNIX}
    assert not decide_on(Memory(extracted=True), Decision(steps.WAIT), ready, **known).memory.extracted
    pausing = msgspec.structs.replace(ready, stopped_at=UNIX)
    assert decide_on(Memory(extracted=True), Decision(steps.WAIT), pausing, **known).memory.extracted


def test_what_is_seen_of_a_lab() -> None:
    off = devices(observations.STOPPED)
    assert lab_seen(Memory(absent=True), Presence.PRESENT, off) == (Presence.ABSENT, ())
    assert lab_seen(Memory(assumed=DEVICES), Presence.UNKNOWN, ()) == (Presence.PRESENT, DEVICES)
    assert lab_seen(Memory(assumed=DEVICES), Presence.PRESENT, off) == (Presence.PRESENT, off)
    assert lab_seen(BLANK, Presence.UNKNOWN, ()) == (Presence.UNKNOWN, ())
