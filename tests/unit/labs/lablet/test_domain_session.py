"""A learner's session, row by row: made, followed, collected, graded, given back, paused, reset.

R000-017 to R000-019, R000-023 to R000-025; C11 to C17, C33, C34.
"""

from typing import Any

import msgspec
import pytest

from tests.unit.labs.builders import BOOTED, POD_UID, claim, devices, facts_with, pod
from vkprovider.lablet import names, observations
from vkprovider.lablet.archives import Verdict
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.reasons import Trouble
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import steps
from vkprovider.labs.pure.lablet.decisions.decide import decide
from vkprovider.labs.pure.lablet.decisions.session import closing_of
from vkprovider.labs.pure.lablet.decisions.takedown import worked
from vkprovider.labs.pure.lablet.facts import Decision, Facts, Report
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.lablet.steps import Reschedule, Step
from vkprovider.labs.pure.session.delivery import Delivery, Session
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform import wellknown
from vkprovider.platform.messages import Fault, Notice
from vkprovider.platform.times import iso

NOW = 5000.0
UNIX = 1_800_000_000
LIMITS = LabletSettings()
OFF = (observations.STOPPED, observations.STOPPED)
NEW = (observations.DEFINED, observations.DEFINED)

BOOTING = claim(lab_id="lab-1", started_at=UNIX - 60)
READY = claim(lab_id="lab-1", started_at=UNIX - 600, ready_at=UNIX - 500)
ASKED = Session("eu-1", POD_UID, "alice")
MADE = msgspec.structs.replace(ASKED, id="s-1", base_url="https://lds", ready_at=UNIX - 400)
STARTED = msgspec.structs.replace(MADE, started_at=UNIX - 300)
ENDED = msgspec.structs.replace(STARTED, ended_at=UNIX - 10)
LDS = Delivery(wanted=True, deployment="eu-1")
GRADED = Delivery(wanted=True, deployment="eu-1", grader=True)
FULL = Delivery(wanted=True, refusal=Fault(Trouble.NO_LDS_DEPLOYMENT, "all are full"))
PASSED, FAILED = Verdict(passed=True, message="91 of 100"), Verdict(passed=False, message="12 of 100")


def of(row: Claim, session: Session | None = None, **fields: Any) -> Claim:
    learner = session.username if session else ""
    return msgspec.structs.replace(row, learner=learner, session=session, sessions=1 if session else 0, **fields)


def wish(**notes: str) -> dict[str, str]:
    """Say annotations by their last words: `wish(username="alice", timeslot_end="…")`."""
    return {f"{wellknown.GROUP}/{key.replace('_', '-')}": value for key, value in notes.items()}


ALICE = wish(username="alice")
OVER = wish(username="alice", timeslot_end="2027-01-15T07:59:00Z")
"""The slot ended a minute before `UNIX`."""
RESTORED: dict[str, Any] = {"restored_at": NOW}
"""The Pod's username was put back a moment ago."""
STOP, COLLECT, RESET = wish(desired_state="stopped"), wish(desired_state="Collecting"), wish(reset="now")


def ask(
    row: Claim | None,
    notes: dict[str, str] | None = None,
    states: tuple[str, ...] = BOOTED,
    delivery: Delivery | None = None,
    limits: LabletSettings = LIMITS,
    **known: Any,
) -> Decision:
    """Decide; the lab's notes name the learner."""
    if row is not None:
        wanted = "" if row.lent_back else (notes or {}).get(names.ANNOTATION_USERNAME, "")
        noted = msgspec.structs.replace(row, learner=row.learner or wanted)
        row = msgspec.structs.replace(row, noted=noted.binding)
    running = row is not None and row.ready_at > 0
    labels = known.pop("labels", {})
    item = pod(phase="Running" if running else "Pending", annotations=notes or {})
    item = msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, labels=labels))
    facts: dict[str, Any] = {
        "pod": item,
        "claim": row,
        "presence": Presence.PRESENT,
        "devices": devices(*states),
        "inputs": inputs_of(item.metadata),
        "delivery": delivery or Delivery(),
        "now_unix": UNIX,
        "extracted": True,
    }
    return decide(facts_with(**(facts | known)), NOW, limits)


def report_of(decision: Decision) -> Report:
    assert decision.report is not None
    return decision.report


def told(decision: Decision) -> str:
    """State and waiting reason."""
    report = report_of(decision)
    return f"{report.state} {report.waiting.reason}" if report.waiting else str(report.state)


def changed(decision: Decision) -> Claim:
    assert decision.claim is not None
    return decision.claim


# ------------------------------------------------------------------------------------------ provision


@pytest.mark.parametrize(
    ("row", "notes", "delivery", "known", "step", "says"),
    [
        (READY, ALICE, Delivery(), {}, steps.Wait, "READY"),  # no LDS: READY is converged
        (READY, {}, LDS, {}, steps.Wait, "READY"),  # warm
        (READY, ALICE, FULL, {}, steps.Wait, "INSTANTIATING NoLDSDeployment"),
        (BOOTING, ALICE, LDS, {}, steps.Save, "INSTANTIATING ProvisioningSession"),  # written before it is asked for
        (READY, ALICE, LDS, {}, steps.Save, "READY"),  # a warm one serves on
        (of(BOOTING, ASKED), ALICE, LDS, {"claim_saved": False}, steps.Wait, "INSTANTIATING ProvisioningSession"),
        (of(BOOTING, ASKED), ALICE, LDS, {}, steps.Provision, "INSTANTIATING ProvisioningSession"),
        (of(BOOTING, ASKED), {}, LDS, RESTORED, steps.Provision, "INSTANTIATING ProvisioningSession"),  # may be there
        (of(BOOTING, ASKED), ALICE, FULL, {}, steps.Provision, "INSTANTIATING ProvisioningSession"),  # kept its place
        (of(BOOTING, MADE), ALICE, LDS, {}, steps.Save, "READY"),
        (of(READY, MADE), ALICE, LDS, {}, steps.Wait, "READY"),
        (of(READY, STARTED), ALICE, LDS, {}, steps.Wait, "RUNNING"),
        (of(READY, lent_back="warm"), ALICE, LDS, {}, steps.Save, "READY"),  # once it is known to have come back
    ],
)
def test_session_is_made(
    row: Claim, notes: dict[str, str], delivery: Delivery, known: dict[str, Any], step: type[Step], says: str
) -> None:
    decision = ask(row, notes, delivery=delivery, **known)
    assert (type(decision.step), told(decision)) == (step, says)


def test_no_session_before_the_devices_run() -> None:
    for states in (NEW, (observations.BOOTED, observations.STARTED), OFF):
        decision = ask(BOOTING, ALICE, states, delivery=LDS)
        assert decision.claim is None or decision.claim.session is None
        assert type(decision.step) is not steps.Provision


def test_intent_is_written_with_a_key_of_its_own() -> None:
    """R000-110: one lablet, one key; the next learner of a pool's lablet gets another."""
    notes = wish(username="alice", timeslot_start="2027-01-15T08:00:00Z", timeslot_end="2027-01-15T09:00:00Z")
    first = changed(ask(READY, notes, delivery=LDS))
    assert first.session == Session("eu-1", POD_UID, "alice", slot_start=UNIX, slot_end=UNIX + 3600)
    assert first.sessions == 1
    second = changed(ask(msgspec.structs.replace(READY, sessions=1), ALICE, delivery=LDS))
    assert second.session is not None
    assert (second.session.key, second.sessions) == (f"{POD_UID}.2", 2)


def test_full_lds_is_asked_again_and_told_once_more() -> None:
    decision = ask(READY, ALICE, delivery=FULL)
    assert decision.after_s
    assert decision.events == (Notice("Warning", Trouble.NO_LDS_DEPLOYMENT, "all are full"),)


# ------------------------------------------------------------------------------------------ follow


@pytest.mark.parametrize(
    ("session", "said", "started", "ended", "events"),
    [
        (MADE, {"started_at": UNIX}, UNIX, 0, ["SessionStarted"]),
        (MADE, {"started_at": UNIX, "ended_at": UNIX + 5}, UNIX, UNIX + 5, ["SessionStarted", "SessionEnded"]),
        (MADE, {"ended_at": UNIX}, UNIX, UNIX, ["SessionStarted", "SessionEnded"]),  # out of order
        (STARTED, {"ended_at": UNIX}, STARTED.started_at, UNIX, ["SessionEnded"]),
        (STARTED, {"started_at": UNIX + 9, "ended_at": UNIX}, STARTED.started_at, UNIX, ["SessionEnded"]),  # told twice
    ],
)
def test_session_is_followed(
    session: Session, said: dict[str, int], started: int, ended: int, events: list[str]
) -> None:
    """R000-024: READY → RUNNING by the LDS alone."""
    delivery = msgspec.structs.replace(LDS, **said)
    decision = ask(of(READY, session), ALICE, delivery=delivery)
    assert type(decision.step) is steps.Save
    after = changed(decision).session
    assert after is not None
    assert (after.started_at, after.ended_at) == (started, ended)
    assert [event.reason for event in decision.events] == events
    again = ask(changed(decision), ALICE, delivery=delivery)
    assert again.claim is None or again.claim.session == after, "the same news twice change nothing"


def test_news_are_taken_while_the_worker_is_silent() -> None:
    delivery = msgspec.structs.replace(LDS, started_at=UNIX)
    decision = ask(of(READY, MADE), ALICE, delivery=delivery, silent="w1 does not answer")
    assert type(decision.step) is steps.Save
    assert told(ask(changed(decision), ALICE, delivery=delivery, silent="w1 does not answer")) == "RUNNING"


# ------------------------------------------------------------------------------------------ collect, grade, end


@pytest.mark.parametrize(
    ("row", "notes", "why"),
    [
        (of(READY, ENDED), ALICE, "SessionEnded"),
        (of(READY, STARTED), OVER, "TimeslotEnded"),
        (of(READY, MADE), OVER, "TimeslotEnded"),  # who never came has no more time either
        (READY, OVER, "TimeslotEnded"),  # without an LDS
        (BOOTING, OVER, "TimeslotEnded"),
        (READY, COLLECT, "Collecting"),
        (READY, wish(timeslot_end="2027-01-15T07:59:00Z"), ""),  # nobody's time
        (of(READY, STARTED), ALICE, ""),
        (of(READY, STARTED), wish(username="alice", timeslot_end="2027-01-15T08:00:01Z"), ""),
    ],
)
def test_why_the_work_is_collected(row: Claim, notes: dict[str, str], why: str) -> None:
    decision = ask(row, notes, delivery=LDS if row.session else None)
    assert (decision.claim.closing_reason if decision.claim else "") == why
    if why:
        assert (type(decision.step), told(decision).split()[0]) == (
            steps.Save,
            "COLLECTING" if row.ready_at else "STOPPING",
        )
        notices = [(notice.type, notice.reason) for notice in decision.events]
        assert notices[:1] == ([] if why == "SessionEnded" else [("Normal", why)])


def test_slot_that_is_over_and_ends_nothing_asks_for_no_turn() -> None:
    decision = ask(READY, wish(timeslot_end="2027-01-15T07:59:00Z"))
    assert decision.after_s is None or decision.after_s >= 1


def test_prolonged_slot_counts_and_a_slot_taken_off_does_not_end_it_later() -> None:
    row = of(READY, msgspec.structs.replace(STARTED, slot_end=UNIX - 60))
    assert changed(ask(row, ALICE, delivery=LDS)).closing_reason == "TimeslotEnded"
    longer = wish(username="alice", timeslot_end="2027-01-15T08:01:00Z")
    decision = ask(row, longer, delivery=LDS)
    assert decision.claim is None
    assert decision.after_s == 60, "somebody wakes when it is over"


@pytest.mark.parametrize(
    ("fields", "delivery", "known", "step", "says"),
    [
        ({}, GRADED, {"claim_saved": False}, steps.Wait, ""),
        ({}, GRADED, {}, steps.Collect, "COLLECTING"),
        ({"collected_at": UNIX}, GRADED, {}, steps.Grade, "GRADING"),
        ({"collected_at": UNIX, "verdict": PASSED}, GRADED, {}, steps.Save, "STOPPING CleaningUp"),
        ({"collected_at": UNIX}, LDS, {}, steps.Save, "STOPPING CleaningUp"),
    ],
)
def test_steps_of_the_end(
    fields: dict[str, Any], delivery: Delivery, known: dict[str, Any], step: type[Step], says: str
) -> None:
    row = of(READY, ENDED, closing_reason="SessionEnded", **fields)
    decision = ask(row, ALICE, delivery=delivery, **known)
    assert type(decision.step) is step
    assert (told(decision) if decision.report else "") == says


@pytest.mark.parametrize(
    ("row", "labels", "notes", "nobodys"),
    [
        (READY, {"vkprovider.io/pool": "warm"}, {}, True),
        (msgspec.structs.replace(READY, lent_back="warm"), {}, {}, True),
        (READY, {}, {}, False),  # of no pool: somebody may have worked in it without a username
        (READY, {"vkprovider.io/pool": "warm"}, wish(username="alice"), False),  # given a moment ago
        (msgspec.structs.replace(READY, learner="alice"), {"vkprovider.io/pool": "warm"}, ALICE, False),
        (of(READY, STARTED), {"vkprovider.io/pool": "warm"}, ALICE, False),
    ],
)
def test_lab_that_nobody_had_leaves_nothing(
    row: Claim,
    labels: dict[str, str],
    notes: dict[str, str],
    nobodys: bool,  # noqa: FBT001 (a row)
) -> None:
    """An empty lab's archive would look like the work of the learner before; what may be work is always kept."""
    for closed in (row, msgspec.structs.replace(row, closing_reason="Collecting")):
        decision = ask(closed, notes, labels=labels, pod=pod(phase="Running", deleted=True), extracted=False)
        assert isinstance(decision.step, steps.Extract | steps.ArchiveSession) is not nobodys
    collected = ask(row, notes | COLLECT, labels=labels)
    assert changed(collected).closing_reason == "Collecting"
    decision = ask(changed(collected), notes | COLLECT, labels=labels, delivery=GRADED)
    assert isinstance(decision.step, steps.Collect) is not nobodys
    if nobodys:
        end = changed(decision)
        assert (end.outcome, end.outcome_reason) == ("Succeeded", "Completed")
        assert end.outcome_message == "nobody had it, nothing is collected (Collecting)"


@pytest.mark.parametrize(
    ("row", "phase", "reason", "message"),
    [
        (of(READY, ENDED, verdict=PASSED), "Succeeded", "Passed", "91 of 100"),
        (of(READY, ENDED, verdict=FAILED), "Failed", "NotPassed", "12 of 100"),
        (of(READY, ENDED), "Succeeded", "Completed", "collected, no grader is configured (SessionEnded)"),
        (BOOTING, "Failed", "SessionEnded", "the lablet was never ready"),
    ],
)
def test_verdict_is_how_the_lablet_ends(row: Claim, phase: str, reason: str, message: str) -> None:
    """R000-017, R000-018: a Job of a lablet fares as its learner did."""
    row = msgspec.structs.replace(row, closing_reason="SessionEnded", collected_at=UNIX)
    end = changed(ask(row, ALICE, delivery=LDS))
    assert (end.outcome, end.outcome_reason, end.outcome_message) == (phase, reason, message)


def test_a_lab_that_its_pod_shows_ready_was_ready_though_a_crash_lost_that() -> None:
    shown = pod(phase="Running", annotations=ALICE)
    closing = changed(ask(BOOTING, ALICE | COLLECT, pod=pod(phase="Running", annotations=ALICE | COLLECT)))
    assert closing.ready_at
    end = changed(
        ask(msgspec.structs.replace(BOOTING, closing_reason="Collecting", collected_at=UNIX), ALICE, pod=shown)
    )
    assert (end.outcome, end.outcome_reason) == ("Succeeded", "Completed")


def test_end_archives_the_session_then_takes_the_lab_down_and_only_then_says_so() -> None:
    row = of(
        READY, ENDED, closing_reason="SessionEnded", collected_at=UNIX, outcome="Succeeded", outcome_reason="Passed"
    )
    assert type(ask(row, ALICE, delivery=LDS).step) is steps.ArchiveSession
    tried = msgspec.structs.replace(LDS, archive_failed=True)
    assert type(ask(row, ALICE, delivery=tried).step) is steps.Stop, "the lab goes all the same"
    decision = ask(row, ALICE, (), delivery=tried, presence=Presence.ABSENT)
    assert type(decision.step) is steps.ArchiveSession
    assert report_of(decision).terminal is None, "the end waits for the session"
    archived = msgspec.structs.replace(row, session=msgspec.structs.replace(ENDED, archived_at=UNIX))
    assert [type(ask(archived, ALICE, states, delivery=LDS).step) for states in (BOOTED, OFF, NEW)] == [
        steps.Stop,
        steps.Wipe,
        steps.DeleteLab,
    ]
    gone = changed(ask(archived, ALICE, (), delivery=LDS, presence=Presence.ABSENT))
    assert report_of(ask(gone, ALICE, (), delivery=LDS, searched=True)).phase == "Succeeded"


def test_closing_needs_an_answer_of_the_worker_first() -> None:
    """Whether the devices can be read is not known while it is silent."""
    row = of(READY, ENDED, closing_reason="SessionEnded")
    assert type(ask(row, ALICE, delivery=LDS, silent="w1 does not answer").step) is steps.Wait
    unknown = ask(row, ALICE, (), delivery=LDS, presence=Presence.UNKNOWN)
    assert (type(unknown.step), unknown.observe) == (steps.Wait, True)


def test_stopped_lablet_whose_time_ends_is_collected_as_it_is() -> None:
    row = changed(ask(of(READY, STARTED, stopped_at=UNIX - 60), OVER, OFF, delivery=LDS))
    assert (row.closing_reason, row.stopped_at) == ("TimeslotEnded", 0)


# ------------------------------------------------------------------------------------------ the end is announced


def ends_in(seconds: int, **notes: str) -> dict[str, str]:
    return wish(username="alice", timeslot_end=iso(UNIX + seconds), **notes)


def announced(decision: Decision) -> list[str]:
    """Return the texts that announce an end."""
    return [notice.message for notice in decision.events if notice.reason == "TimeslotEnding"]


@pytest.mark.parametrize(
    ("row", "notes", "known", "says"),
    [
        (READY, ends_in(300), {}, ["the time of alice ends in 5 minutes, at 2027-01-15T08:05:00Z"]),
        (READY, ends_in(61), {}, ["the time of alice ends in 2 minutes, at 2027-01-15T08:01:01Z"]),
        (READY, ends_in(1), {}, ["the time of alice ends in 1 minute, at 2027-01-15T08:00:01Z"]),
        (BOOTING, ends_in(60), {}, ["the time of alice ends in 1 minute, at 2027-01-15T08:01:00Z"]),
        (of(READY, STARTED), ends_in(60), {}, ["the time of alice ends in 1 minute, at 2027-01-15T08:01:00Z"]),
        (READY, ends_in(301), {}, []),  # not yet
        (READY, ends_in(0), {}, []),  # over
        (READY, ends_in(300), {"announced_end": UNIX + 300}, []),  # once
        (READY, ends_in(9), {"announced_end": UNIX}, ["the time of alice ends in 1 minute, at 2027-01-15T08:00:09Z"]),
        (READY, wish(timeslot_end=iso(UNIX + 60)), {}, []),  # nobody's
        (READY, ALICE, {}, []),  # open
        (READY, ends_in(60, desired_state="COLLECTING"), {}, []),  # is ended already
        (of(READY, ENDED), ends_in(60), {}, []),
    ],
)  # fmt: skip
def test_the_end_of_a_learners_time_is_announced(
    row: Claim, notes: dict[str, str], known: dict[str, Any], says: list[str]
) -> None:
    decision = ask(row, notes, delivery=LDS if row.session else None, **known)
    assert announced(decision) == says
    assert [notice.type for notice in decision.events if notice.reason == "TimeslotEnding"] == ["Warning"] * len(says)
    assert (decision.announces_end > 0) == bool(says)


def test_somebody_wakes_for_the_announcement_and_for_the_end() -> None:
    assert ask(READY, ends_in(1000)).after_s == 700
    assert ask(READY, ends_in(250)).after_s == 250
    assert ask(READY, ends_in(250), announced_end=UNIX + 250).after_s == 250


def test_the_setting_says_when_it_is_announced() -> None:
    assert announced(ask(READY, ends_in(1000), limits=LabletSettings(announce_end_s=1000)))
    silent = ask(READY, ends_in(1000), limits=LabletSettings(announce_end_s=0))
    assert (announced(silent), silent.after_s) == ([], 1000)
    assert announced(ask(READY, ends_in(1), limits=LabletSettings(announce_end_s=0))) == []


# ------------------------------------------------------------------------------------------ another timeslot

SLOT = msgspec.structs.replace(STARTED, slot_start=UNIX - 600, slot_end=UNIX + 600)
LONGER = wish(username="alice", timeslot_end="2027-01-15T09:00:00Z")
SHORTER = wish(username="alice", timeslot_end="2027-01-15T08:01:00Z")


def test_a_timeslot_without_an_end_has_the_length_of_the_setting() -> None:
    """C59: the claim has the end, so that the lablet ends also without an event of the LDS."""
    open_slot = Delivery(wanted=True, deployment="eu-1", slot_s=5400)
    assert changed(ask(READY, ALICE, delivery=open_slot)).session == Session(
        "eu-1", POD_UID, "alice", slot_start=UNIX, slot_end=UNIX + 5400
    )
    over = of(READY, msgspec.structs.replace(SLOT, slot_end=UNIX))
    assert changed(ask(over, ALICE, delivery=LDS)).closing_reason == "TimeslotEnded"
    assert ask(of(READY, SLOT), ALICE, delivery=LDS).after_s == 300.0, "when it is announced"
    assert ask(of(READY, SLOT), ALICE, delivery=LDS, announced_end=SLOT.slot_end).after_s == 600.0


@pytest.mark.parametrize(("notes", "end"), [(LONGER, UNIX + 3600), (SHORTER, UNIX + 60)])
def test_another_end_of_the_timeslot_goes_to_the_lds(notes: dict[str, str], end: int) -> None:
    row = of(READY, SLOT)
    for states, silent in ((BOOTED, ""), ((observations.DISCONNECTED,), ""), (BOOTED, "away")):
        decision = ask(row, notes, states, LDS, silent=silent)
        assert isinstance(decision.step, Reschedule)
        assert (decision.step.session, decision.step.slot_end) == (SLOT, end)
        later = ask(row, notes, states, LDS, silent=silent, rescheduled_at=NOW - 4.0)
        assert type(later.step) is steps.Wait
        assert later.after_s is not None
        assert later.after_s <= 6.0
        assert later.report == decision.report
    assert (
        type(ask(row, notes, (observations.STOPPED,), LDS, retry_at=NOW - 1).step) is steps.Start
    )  # the lab goes first


@pytest.mark.parametrize(
    ("session", "notes"),
    [
        (SLOT, ALICE),
        (SLOT, wish(username="alice", timeslot_end="2027-01-15T08:10:00Z")),  # as it is
        (ASKED, LONGER),
        (msgspec.structs.replace(SLOT, slot_start=UNIX + 4000, slot_end=UNIX + 5000), LONGER),  # before its start
    ],
)
def test_the_lds_is_not_told_what_it_knows_or_cannot_use(session: Session, notes: dict[str, str]) -> None:
    assert type(ask(of(READY, session), notes, delivery=LDS).step) is not steps.Reschedule
    ended = msgspec.structs.replace(SLOT, ended_at=UNIX - 1)
    assert type(ask(of(READY, ended), LONGER, delivery=LDS).step) is not steps.Reschedule


# ------------------------------------------------------------------------------------------ back to the pool

LENT = {**OVER, **wish(lent_by="warm")}


def test_lent_lablet_goes_back_step_by_step() -> None:
    row = changed(ask(of(READY, STARTED), LENT, delivery=LDS))
    assert (row.closing_reason, row.lent_by) == ("TimeslotEnded", "warm")
    row = msgspec.structs.replace(row, collected_at=UNIX)
    archive = ask(row, LENT, delivery=LDS)
    assert (type(archive.step), told(archive)) == (steps.ArchiveSession, "INSTANTIATING ReturningToPool")
    archived = msgspec.structs.replace(STARTED, archived_at=UNIX)
    row = msgspec.structs.replace(row, session=archived)
    clear = ask(row, LENT, delivery=LDS)
    assert type(clear.step) is steps.ClearLearner
    cleared = wish(lent_by="warm")
    back = ask(row, cleared, delivery=LDS)
    warm = changed(back)
    assert (type(back.step), warm.session, warm.closing_reason, warm.collected_at, warm.ready_at) == (
        steps.Save,
        None,
        "",
        0,
        0,
    )
    assert (warm.resetting, warm.lent_by, warm.lent_back, warm.sessions) == (True, "", "warm", 1)
    assert [event.reason for event in back.events] == ["BackToPool"]
    assert [type(ask(warm, cleared, states, delivery=LDS).step) for states in (BOOTED, OFF)] == [steps.Stop, steps.Wipe]
    wiped = changed(ask(warm, cleared, NEW, delivery=LDS))
    assert not wiped.resetting
    assert type(ask(wiped, cleared, NEW, delivery=LDS).step) is steps.Start
    booted = changed(ask(wiped, cleared, delivery=LDS))
    unsaved = ask(booted, cleared, delivery=LDS, claim_saved=False)
    assert (type(unsaved.step), bool(unsaved.after_s)) == (steps.Wait, True), (
        "a crash would wipe the next learner's work"
    )
    assert type(ask(booted, cleared, delivery=LDS).step) is steps.ReturnToPool
    done = ask(booted, {}, delivery=LDS, labels={names.LABEL_POOL: "warm"})
    assert (type(done.step), changed(done).lent_back) == (steps.Save, "")


def test_pod_that_is_assigned_as_soon_as_it_is_back_stays_with_its_learner() -> None:
    """Its label is gone again before anybody has noted that it was there."""
    row = of(READY, lent_back="warm")
    decision = ask(row, wish(username="bob", lent_by="warm"), delivery=LDS)
    assert (type(decision.step), changed(decision).lent_back) == (steps.Save, "")
    assert changed(ask(changed(decision), wish(username="bob", lent_by="warm"), delivery=LDS)).session


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (of(READY, STARTED), "RUNNING"),
        (of(READY, STARTED, stopped_at=UNIX - 60), "STOPPED"),
        (of(READY, ENDED, closing_reason="SessionEnded"), "COLLECTING"),
        (of(READY, ENDED, closing_reason="SessionEnded", collected_at=UNIX), "GRADING"),
        (of(READY, ENDED, closing_reason="SessionEnded", collected_at=UNIX, verdict=PASSED), "STOPPING"),
        (
            of(READY, ENDED, closing_reason="SessionEnded", collected_at=UNIX, verdict=PASSED, lent_by="warm"),
            "INSTANTIATING",
        ),
        (of(BOOTING, closing_reason="Collecting"), "STOPPING CleaningUp"),
    ],
)
def test_silence_of_the_worker_does_not_change_the_state(row: Claim, says: str) -> None:
    decision = ask(row, ALICE, delivery=GRADED, silent="w1 does not answer")
    assert (type(decision.step), told(decision)) == (steps.Wait, says)
    assert not report_of(decision).ready


def test_verdict_on_a_lent_lablet_ends_nothing_and_is_not_told_to_the_next_learner() -> None:
    row = of(READY, closing_reason="Collecting", collected_at=UNIX, lent_by="warm", verdict=FAILED)
    decision = ask(row, {}, delivery=GRADED)
    assert changed(decision).outcome == ""
    assert "collected and graded" in decision.events[0].message
    assert "12 of 100" not in decision.events[0].message


def test_pool_that_is_named_too_late_gets_nothing() -> None:
    """What the Pod says when its time ends is taken over once: an edit while it is collected changes nothing."""
    row = of(READY, closing_reason="Collecting", collected_at=UNIX)
    assert changed(ask(row, wish(lent_by="warm"))).outcome == "Succeeded"


# ------------------------------------------------------------------------------------------ stop and start


@pytest.mark.parametrize(
    ("fields", "notes", "states", "known", "step", "says"),
    [
        ({}, STOP, BOOTED, {}, steps.Save, "STOPPED LabStopped"),
        ({"stopped_at": UNIX}, STOP, BOOTED, {"extracted": False}, steps.Extract, "STOPPED LabStopped"),
        ({"stopped_at": UNIX}, STOP, BOOTED, {}, steps.Stop, "STOPPED LabStopped"),
        ({"stopped_at": UNIX}, STOP, BOOTED, {"stop_sent_at": NOW - 1}, steps.Wait, "STOPPED LabStopped"),
        ({"stopped_at": UNIX}, STOP, OFF, {}, steps.Wait, "STOPPED LabStopped"),
        ({"stopped_at": UNIX - 86400}, STOP, OFF, {}, steps.Save, "STOPPING CleaningUp"),
        ({"stopped_at": UNIX}, {}, OFF, {}, steps.Start, "INSTANTIATING StartingNodes"),
        ({"stopped_at": UNIX}, {}, BOOTED, {}, steps.Start, "INSTANTIATING StartingNodes"),  # before it was stopped
    ],
)
def test_lab_is_stopped_on_request_and_started_again(
    fields: dict[str, Any],
    notes: dict[str, str],
    states: tuple[str, ...],
    known: dict[str, Any],
    step: type[Step],
    says: str,
) -> None:
    """R000-019, C33: for at most 24 hours."""
    decision = ask(msgspec.structs.replace(READY, **fields), notes, states, **known)
    assert (type(decision.step), told(decision)) == (step, says)
    assert report_of(decision).phase == "Running", "the phase never goes back"


def test_stopped_for_too_long_is_the_end() -> None:
    end = changed(ask(msgspec.structs.replace(READY, stopped_at=UNIX - 86400), STOP, OFF))
    assert (end.outcome, end.outcome_reason) == ("Failed", "StoppedTooLong")
    left = ask(msgspec.structs.replace(READY, stopped_at=UNIX - 86000), STOP, OFF).after_s
    assert left == 400, "somebody wakes when it is"


def test_stop_before_the_first_boot_waits_for_it() -> None:
    assert type(ask(BOOTING, STOP, NEW).step) is steps.Start
    booted = ask(BOOTING, STOP)
    assert changed(booted).ready_at
    assert changed(ask(changed(booted), STOP)).stopped_at == UNIX


def test_stop_does_not_count_as_a_failure() -> None:
    row = changed(ask(msgspec.structs.replace(READY, recoveries=2), STOP))
    again = changed(ask(row, {}, OFF))
    assert (again.recoveries, again.restarts, again.stopped_at) == (0, 0, 0)


# ------------------------------------------------------------------------------------------ reset


def test_reset_keeps_the_configurations_then_imports_again_and_keeps_the_session() -> None:
    """CML starts a wiped device with the configuration that it extracted last: a wipe would bring the work back."""
    row = of(READY, STARTED)
    first = ask(row, ALICE | RESET, delivery=LDS, extracted=False)
    assert (type(first.step), told(first), changed(first).reimports) == (
        steps.Extract,
        "INSTANTIATING Resetting",
        True,
    )
    decision = ask(row, ALICE | RESET, delivery=LDS)
    reset = changed(decision)
    assert (type(decision.step), reset.resetting, reset.reset, reset.session) == (steps.Save, True, "now", STARTED)
    assert reset.reimports, "somebody may have had a configuration extracted on a console"
    unsaved = ask(reset, ALICE | RESET, BOOTED, delivery=LDS, claim_saved=False)
    assert (type(unsaved.step), unsaved.awaits_claim) == (steps.Wait, True)
    assert [type(ask(reset, ALICE | RESET, states, delivery=LDS).step) for states in (BOOTED, OFF, NEW)] == [
        steps.Stop,
        steps.Wipe,
        steps.DeleteLab,
    ]
    gone = reset.lost_lab(UNIX)
    assert (gone.resetting, gone.reimports, gone.session, gone.reset) == (False, False, STARTED, "now")


def test_a_lab_that_is_imported_again_on_request_or_for_its_pool_shows_no_failure() -> None:
    """Also if the lablet was started again before."""
    reset = READY.reset_on("now", "the lab is wiped and started again on request", UNIX).lost_lab(UNIX)
    assert told(ask(reset, ALICE | RESET, claim_saved=False)) == "INSTANTIATING Resetting"
    back = of(reset, lent_by="warm").handed_back()
    assert told(ask(back, claim_saved=False)) == "INSTANTIATING ReturningToPool"
    failed = READY.restarted(Trouble.LAB_LOST, "gone", UNIX).lost_lab(UNIX)
    assert told(ask(failed, claim_saved=False)) == "INSTANTIATING CrashLoopBackOff"


def test_a_reset_before_anybody_worked_wipes() -> None:
    reset = changed(ask(msgspec.structs.replace(READY, ready_at=0), ALICE | RESET, NEW, delivery=LDS))
    assert (reset.resetting, reset.reimports) == (True, False)
    wiped = changed(ask(reset, ALICE | RESET, NEW, delivery=LDS))
    assert not wiped.resetting
    assert type(ask(wiped, ALICE | RESET, NEW, delivery=LDS).step) is steps.Start


def test_a_stop_on_request_waits_until_the_claim_notes_the_extraction() -> None:
    row = msgspec.structs.replace(READY, stopped_at=UNIX)
    first = ask(row, STOP, extracted=False)
    assert (type(first.step), changed(first).reimports) == (steps.Extract, True)
    unsaved = ask(changed(first), STOP, claim_saved=False)
    assert (type(unsaved.step), unsaved.awaits_claim) == (steps.Wait, True)
    assert type(ask(changed(first), STOP).step) is steps.Stop


def test_one_word_resets_once() -> None:
    done = msgspec.structs.replace(READY, reset="now")
    assert type(ask(done, RESET).step) is steps.Wait
    assert changed(ask(done, wish(reset="once more"))).resetting


SAVED_ID = "5e0c8a7e-0000-4000-8000-000000000000-1796000000"


def test_a_reset_to_saved_work_imports_the_lab_again() -> None:
    """What it begins from is in the claim before the configurations are kept: those take its place otherwise."""
    inputs = ALICE | wish(reset="now", begin_from=SAVED_ID)
    begins = changed(ask(of(READY, STARTED), inputs, delivery=LDS))
    assert (begins.begin_from, begins.reimports, begins.resetting) == (SAVED_ID, True, False)
    kept = ask(begins, inputs, delivery=LDS, extracted=False)
    assert isinstance(kept.step, steps.Extract)
    reset = changed(ask(begins, inputs, delivery=LDS, extracted=True))
    assert (reset.resetting, reset.reset, reset.session) == (True, "now", STARTED)
    assert [type(ask(reset, inputs, states, delivery=LDS).step) for states in (BOOTED, OFF, NEW)] == [
        steps.Stop,
        steps.Wipe,
        steps.DeleteLab,
    ]
    gone = reset.lost_lab(UNIX)
    assert (gone.begin_from, gone.reimports) == (SAVED_ID, False)


def test_a_pool_gets_a_lab_back_that_begins_from_nobodys_work() -> None:
    row = of(READY, ENDED, begin_from=SAVED_ID, lent_by="warm").handed_back()
    assert (row.begin_from, row.reimports, row.resetting) == ("", True, True)


def test_reset_is_the_way_out_of_needs_attention_and_of_a_stop() -> None:
    lost = of(READY, STARTED, recoveries=LIMITS.recoveries_max)
    assert told(ask(lost, ALICE, OFF, delivery=LDS)) == "INSTANTIATING NeedsAttention"
    assert changed(ask(lost, ALICE | RESET, OFF, delivery=LDS)).recoveries == 0
    stopped = msgspec.structs.replace(READY, stopped_at=UNIX)
    assert changed(ask(stopped, RESET, OFF)).stopped_at == 0


def test_reset_does_not_hold_up_the_end() -> None:
    row = changed(ask(of(READY, ENDED, resetting=True), ALICE | RESET, delivery=LDS))
    assert (row.closing_reason, row.resetting) == ("SessionEnded", False)


# ------------------------------------------------------------------------------------------ work


@pytest.mark.parametrize(
    ("row", "delivery", "may"),
    [
        (BOOTING, Delivery(), False),
        (READY, Delivery(), True),
        (READY, LDS, False),  # warm, or nobody has logged in yet
        (of(READY, ASKED), LDS, True),  # it may have been made, and the answer lost
        (of(READY, MADE), LDS, False),
        (of(READY, STARTED), LDS, True),
    ],
)
def test_who_may_have_worked(row: Claim, delivery: Delivery, *, may: bool) -> None:
    facts = Facts(pod(), row, delivery=delivery)
    assert worked(facts, row) is may


def test_nothing_closes_a_lablet_by_itself() -> None:
    assert closing_of(Facts(pod(), READY, now_unix=UNIX), READY) is None
