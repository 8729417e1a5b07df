"""The stage of a lablet, row by row."""

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.unit.labs.builders import BOOTED, DIGEST, claim, devices, facts_with, pod
from vkprovider.lablet import observations
from vkprovider.lablet.inputs import Inputs
from vkprovider.lablet.reasons import Trouble
from vkprovider.lablet.standing import State
from vkprovider.labs.pure.lablet.decisions import stages
from vkprovider.labs.pure.lablet.decisions.decide import _LIVING
from vkprovider.labs.pure.lablet.decisions.stage import Stage, stage_of
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.messages import Fault

NOW = 5000.0
UNIX = 1_800_000_000
IMPORTED: dict[str, Any] = {"lab_id": "lab-1"}
STARTED = IMPORTED | {"started_at": UNIX - 60}
READY = STARTED | {"ready_at": UNIX - 30}
CLOSING = READY | {"closing_reason": "TimeslotEnded"}
NEW = (observations.DEFINED, observations.DEFINED)
OFF = (observations.STOPPED, observations.STOPPED)
ENDED = Session("eu-1", "k", "alice", id="s-1", ended_at=UNIX)
STOP = {"inputs": Inputs(desired=State.STOPPED)}


@pytest.mark.parametrize(
    ("row", "states", "known", "stage"),
    [
        (None, (), {"unexamined": True}, Stage.UNEXAMINED),
        (None, (), {"unexamined": True, "pod": None}, Stage.UNEXAMINED),
        (None, (), {}, Stage.CLAIMING),
        ({}, (), {"claim_saved": False}, Stage.CLAIMING),
        ({"closing_reason": "Collecting"}, (), {"claim_saved": False}, Stage.CLOSING),
        ({}, (), {}, Stage.FRESH),
        (READY, (), {"presence": Presence.ABSENT}, Stage.FRESH),
        (READY, (), {"presence": Presence.UNKNOWN}, Stage.UNSEEN),
        ({}, (), {"silent": "away"}, Stage.UNSEEN),
        (CLOSING, BOOTED, {"silent": "away"}, Stage.UNSEEN),
        (IMPORTED, NEW, {}, Stage.IMPORTED),
        (STARTED, NEW, {}, Stage.IMPORTED),
        (STARTED, NEW, {"pod": pod(phase="Running")}, Stage.CRASHED),
        (READY, NEW, {}, Stage.CRASHED),
        (READY, OFF, {}, Stage.CRASHED),
        (STARTED, (observations.STARTED, observations.STOPPED), {}, Stage.CRASHED),
        (STARTED, (observations.STARTED, observations.BOOTED), {}, Stage.BOOTING),
        (STARTED, (observations.QUEUED, observations.DEFINED), {}, Stage.BOOTING),
        (STARTED, (), {}, Stage.UNCLEAR),
        (STARTED, (observations.BOOTED, "PAUSED"), {}, Stage.UNCLEAR),
        (READY, (observations.DISCONNECTED,), {}, Stage.UNCLEAR),
        (STARTED, BOOTED, {}, Stage.SERVING),
        (READY, BOOTED, {"inputs": Inputs(username="alice")}, Stage.UNNOTED),
        (READY | {"learner": "alice", "noted": "alice"}, BOOTED, {}, Stage.SERVING),
        (READY, BOOTED, STOP, Stage.PAUSED),
        (STARTED, BOOTED, STOP, Stage.SERVING),
        (READY | {"stopped_at": UNIX}, OFF, {}, Stage.PAUSED),
        (READY, BOOTED, {"inputs": Inputs(reset="again")}, Stage.WIPING),
        (READY | {"reset": "again"}, BOOTED, {"inputs": Inputs(reset="again")}, Stage.SERVING),
        (IMPORTED | {"resetting": True}, OFF, {}, Stage.WIPING),
        (IMPORTED | {"renews": DIGEST}, OFF, {}, Stage.RENEWING),
        (IMPORTED | {"renews": DIGEST}, (), {"presence": Presence.ABSENT}, Stage.RENEWING),
        ({"renews": DIGEST}, (), {}, Stage.FRESH),
        (STARTED | {"renews": "e" * 64}, BOOTED, {}, Stage.SERVING),
        (READY | {"ports_fault": Fault(Trouble.PORTS_UNKNOWN, "m")}, BOOTED, {}, Stage.PORTLESS),
        (READY | {"session": ENDED}, BOOTED, {}, Stage.CLOSING),
        (CLOSING, BOOTED, {}, Stage.CLOSING),
        (CLOSING | {"lent_by": "warm"}, BOOTED, {}, Stage.CLOSING),
        (CLOSING | {"lent_by": "warm", "collected_at": UNIX}, BOOTED, {}, Stage.RETURNING),
        (CLOSING | {"collected_at": UNIX}, BOOTED, {}, Stage.CLOSING),
        (READY, BOOTED, {"pod": None}, Stage.ENDING),
        (READY, BOOTED, {"pod": pod(deleted=True)}, Stage.ENDING),
        (READY, BOOTED, {"pod": pod(phase="Failed")}, Stage.ENDING),
        (READY | {"outcome": "Failed"}, BOOTED, {}, Stage.ENDING),
        (READY, BOOTED, {"inputs": Inputs(desired=State.TERMINATED)}, Stage.ENDING),
        (READY, BOOTED, {"deadline_at": NOW}, Stage.ENDING),
        (READY, BOOTED, {"deadline_at": NOW + 1}, Stage.SERVING),
    ],
)
def test_stage_follows_from_claim_and_facts(
    row: dict[str, Any] | None, states: tuple[str, ...], known: dict[str, Any], stage: Stage
) -> None:
    given = {"pod": pod(), "presence": Presence.PRESENT, "now_unix": UNIX} | known
    facts = facts_with(claim=claim(**row) if row is not None else None, devices=devices(*states), **given)
    assert stage_of(facts, NOW) is stage


def test_every_stage_of_a_living_lablet_has_its_function() -> None:
    assert _LIVING.keys() == set(Stage) - {Stage.UNEXAMINED, Stage.ENDING}
    assert all(conduct.decide.__name__ == f"while_{stage.name.lower()}" for stage, conduct in _LIVING.items())


def test_no_stage_calls_another() -> None:
    """A contract keeps their modules apart; this looks at the functions that a stage calls within its module."""
    seen = set()
    for path in sorted(Path(stages.__path__[0]).glob("*.py")):
        uses = {
            function.name: {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} - {function.name}
            for function in ast.parse(path.read_text()).body
            if isinstance(function, ast.FunctionDef)
        }
        for stage in (name for name in uses if name.startswith("while_")):
            seen.add(stage)
            reached, left = set(), {stage}
            while left:
                reached |= left
                left = {used for name in left for used in uses.get(name, ())} - reached
            assert {name for name in reached if name.startswith("while_")} == {stage}
    assert seen == {f"while_{stage.name.lower()}" for stage in (*_LIVING, Stage.ENDING)}
