"""Whose lablet it is: the claim's learner, whatever the Pod's annotation says afterwards."""

from typing import Any

import msgspec
import pytest

from tests.unit.labs.builders import BOOTED, claim, devices, facts_with, pod
from vkprovider.lablet import names
from vkprovider.lablet.archives import Leftovers
from vkprovider.lablet.inputs import inputs_of
from vkprovider.lablet.reasons import Happened
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.lablet import steps
from vkprovider.labs.pure.lablet.after import after
from vkprovider.labs.pure.lablet.decisions.decide import decide
from vkprovider.labs.pure.lablet.facts import UNSURE_S, Decision, Report
from vkprovider.labs.pure.lablet.leftovers import is_of
from vkprovider.labs.pure.lablet.memory import BLANK, Presence
from vkprovider.labs.pure.lablet.outcomes import Circumstances, Done
from vkprovider.labs.pure.lablet.status import render
from vkprovider.labs.pure.lablet.steps import RestoreUsername
from vkprovider.labs.pure.session.delivery import Delivery, Session
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform.messages import Notice

NOW, UNIX = 5000.0, 1_800_000_000
WARM = claim(lab_id="lab-1", started_at=UNIX - 600, ready_at=UNIX - 500)
OF_ALICE = msgspec.structs.replace(WARM, learner="alice")
MADE = Session("eu-1", "key", "alice", id="s-1", ready_at=UNIX - 400)
OLD_ROW = msgspec.structs.replace(WARM, session=MADE, sessions=1)


def ask(row: Claim, username: str | None, *, lds: bool = False, **known: Any) -> Decision:
    notes = {} if username is None else {names.ANNOTATION_USERNAME: username}
    item = pod(phase="Running", annotations=notes)
    facts: dict[str, Any] = {
        "pod": item,
        "claim": row,
        "presence": Presence.PRESENT,
        "devices": devices(*BOOTED),
        "inputs": inputs_of(item.metadata),
        "delivery": Delivery(wanted=lds, deployment="eu-1"),
        "now_unix": UNIX,
        "extracted": True,
    }
    return decide(facts_with(**(facts | known)), NOW, LabletSettings())


def learner_of(decision: Decision) -> str | None:
    return decision.claim.learner if decision.claim is not None else None


@pytest.mark.parametrize("lds", [False, True])
def test_a_requested_learner_is_recorded_with_the_next_step(*, lds: bool) -> None:
    assert learner_of(ask(WARM, "alice", lds=lds)) == "alice"


@pytest.mark.parametrize(
    "row",
    [
        claim(),  # no lab yet: the name may still be corrected
        msgspec.structs.replace(WARM, lent_back="evening"),  # until the lab is a fresh one in its pool
        msgspec.structs.replace(WARM, closing_reason="Collecting"),
    ],
)
def test_nobody_is_recorded_yet(row: Claim) -> None:
    assert learner_of(ask(row, "alice")) in {None, ""}


def test_a_row_of_an_earlier_release_belongs_to_its_sessions_learner() -> None:
    decision = ask(OLD_ROW, "eve", lds=True)
    assert learner_of(decision) == "alice"
    assert isinstance(decision.step, RestoreUsername)


@pytest.mark.parametrize("found", [None, "", "eve", "\x07"])
@pytest.mark.parametrize("row", [OF_ALICE, msgspec.structs.replace(OLD_ROW, learner="alice")])
def test_another_name_is_put_back(row: Claim, found: str | None) -> None:
    decision = ask(row, found, lds=row.session is not None)
    assert isinstance(decision.step, RestoreUsername)
    assert decision.step.username == "alice"
    assert learner_of(decision) is None, "the row keeps its learner"
    assert decision.after_s, "it is looked at again: the Pod may have changed as it was put back"


def test_who_writes_the_name_all_the_time_stops_no_other_step() -> None:
    """At most every second turn puts the name back; meanwhile the lablet goes on, and asks again in time."""
    busy = ask(msgspec.structs.replace(OF_ALICE, noted="alice"), "eve", restored_at=NOW - 0.5)
    assert (type(busy.step), busy.after_s) == (steps.Wait, 1.5)
    assert type(ask(OF_ALICE, "eve", restored_at=NOW - 2).step) is steps.RestoreUsername


def test_the_session_is_the_recorded_learners() -> None:
    busy = ask(OF_ALICE, "eve", lds=True, restored_at=NOW)
    assert busy.claim is not None
    assert busy.claim.session is not None
    assert busy.claim.session.username == "alice"


def test_the_end_is_the_recorded_learners() -> None:
    """A removed name neither keeps the lablet beyond its timeslot nor hides whose work is collected."""
    over = msgspec.structs.replace(OF_ALICE, session=msgspec.structs.replace(MADE, slot_end=UNIX - 1))
    notice = ask(over, None, restored_at=NOW).events[0]
    assert notice == Notice("Normal", Happened.TIMESLOT_ENDED, "the timeslot of alice is over")
    unsure = ask(over, None, restored_at=NOW, sure=False)
    assert Happened.TIMESLOT_ENDED not in {each.reason for each in unsure.events}
    assert unsure.after_s is not None
    assert unsure.after_s <= UNSURE_S
    closing = msgspec.structs.replace(OF_ALICE, closing_reason="Collecting")
    step = ask(closing, "eve").step
    assert (type(step), getattr(step, "username", "")) == (steps.Collect, "alice")


def test_a_pools_lablet_has_no_learner_once_it_is_to_be_wiped() -> None:
    done = msgspec.structs.replace(OF_ALICE, closing_reason="Collecting", collected_at=UNIX, lent_by="evening")
    assert type(ask(done, "alice").step) is steps.ClearLearner
    for note, value in (
        (names.ANNOTATION_GUESTS, "eve=watch"),
        (names.ANNOTATION_TIMESLOT_END, "2026-01-01T00:00:00Z"),
    ):
        asked = pod(annotations={note: value})
        assert type(ask(done, None, pod=asked).step) is steps.ClearLearner, "somebody removed the username before"
    cleared = ask(done, None).claim
    assert cleared is not None
    assert (cleared.learner, cleared.resetting, cleared.session) == ("", True, None)


def test_the_event_says_what_happened_and_what_to_do() -> None:
    [notice] = after(
        BLANK, OF_ALICE, RestoreUsername(pod(), "alice", "eve"), Done(), Circumstances("w1", pod(), NOW, UNIX)
    ).notices
    assert (notice.type, notice.reason) == ("Warning", "UsernameRestored")
    assert "changed to 'eve' and is 'alice' again" in notice.message
    assert "kubectl lablet release pod-1" in notice.message


@pytest.mark.parametrize(
    ("row", "found", "said"),
    [(OF_ALICE, None, "alice"), (OF_ALICE, "eve", "alice"), (WARM, "eve", ""), (None, "eve", ""), (WARM, None, None)],
)
def test_the_pod_reports_the_learner(row: Claim | None, found: str | None, said: str | None) -> None:
    item = pod(annotations={} if found is None else {names.ANNOTATION_LEARNER: found})
    annotations = dict(render(item, Report(State.READY), row, {}, "").annotations)
    assert annotations.get(names.ANNOTATION_LEARNER) == said


@pytest.mark.parametrize(
    ("left", "row", "same"),
    [
        (("alice", "s-1"), msgspec.structs.replace(OLD_ROW, learner="alice"), True),
        (("alice", "s-1"), OLD_ROW, True),
        (("alice", "s-0"), OLD_ROW, False),
        (("alice", ""), OF_ALICE, True),
        (("bob", ""), OF_ALICE, False),
        (("bob", "s-0"), OF_ALICE, False),
    ],
)
def test_nobody_is_graded_by_what_an_earlier_learner_left(left: tuple[str, str], row: Claim, *, same: bool) -> None:
    username, session = left
    found = Leftovers("team", "pod-1", row.pod_uid, "netlab", "1.0", username=username, session_id=session)
    assert is_of(found, row) is same
