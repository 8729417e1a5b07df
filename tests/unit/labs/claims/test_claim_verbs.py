"""What the verbs of a claim forget: four of them end the run of a lab, and each for another reason."""

import ast
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labs.builders import DIGEST, claim
from tools.figures import claim_changes
from tools.sources import ROOT, Module
from vkprovider.lablet.archives import Verdict
from vkprovider.lablet.reasons import Happened, Progress, Trouble
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.reasons import NO_REASON

UNIX = 1_800_000_000
LENT: dict[str, Any] = {
    "learner": "alice",
    "session": Session("eu-1", "k", "alice"),
    "closing_reason": Trouble.LAB_LOST,
    "collected_at": UNIX,
    "verdict": Verdict(passed=True, message="91"),
    "lent_by": "warm",
}
RAN = claim(
    lab_id="lab-1", started_at=UNIX - 60, ready_at=UNIX - 30, recoveries=2, restarts=3, afresh=1, stopped_at=9, **LENT
)
COUNTED: dict[str, Any] = {
    "afresh": 2,
    "last_message": "m",
    "last_at": UNIX,
    "last_started_at": UNIX - 30,
}


def changes(row: Claim) -> dict[str, Any]:
    """Return the fields that differ from `RAN`."""
    names = [field.name for field in msgspec.structs.fields(Claim)]
    return {name: getattr(row, name) for name in names if getattr(row, name) != getattr(RAN, name)}


@pytest.mark.parametrize(
    ("row", "differs"),
    [
        (
            RAN.restarted(Trouble.LAB_LOST, "m", UNIX),
            COUNTED | {"restarts": 4, "resetting": True, "last_reason": Trouble.LAB_LOST},
        ),
        (
            RAN.reset_on("now", "m", UNIX),
            COUNTED
            | {
                "uncounted": 1,
                "resetting": True,
                "reimports": True,
                "reset": "now",
                "stopped_at": 0,
                "last_reason": Happened.RESET,
            },
        ),
        (
            RAN.renewing("m", UNIX),
            COUNTED | {"uncounted": 1, "renews": DIGEST, "last_reason": Progress.RENEWING_CONTENT},
        ),
        (
            RAN.handed_back(),
            {
                "learner": "",
                "noted": "alice k eu-1",
                "session": None,
                "closing_reason": NO_REASON,
                "collected_at": 0,
                "verdict": None,
                "lent_by": "",
                "lent_back": "warm",
                "resetting": True,
                "stopped_at": 0,
            },
        ),
    ],
    ids=["restarted", "reset", "renewing", "handed back"],
)
def test_verbs_that_end_a_run(row: Claim, differs: dict[str, Any]) -> None:
    found = changes(row)
    assert {found.pop(name) for name in ("started_at", "ready_at", "recoveries")} == {0}
    assert found == differs


@pytest.mark.parametrize(("lab_id", "resetting"), [("lab-1", True), ("", False)])
def test_only_a_lab_that_is_there_is_wiped(lab_id: str, *, resetting: bool) -> None:
    row = msgspec.structs.replace(RAN, lab_id=lab_id)
    assert row.restarted(Trouble.LAB_LOST, "m", UNIX).resetting is resetting
    assert row.handed_back().resetting is resetting


def test_a_start_without_a_wipe_leaves_the_lablet_ready_and_counts_its_devices() -> None:
    row = RAN.continued(("r1",), "m", UNIX).continued(("r1", "r2"), "m", UNIX)
    assert (row.ready_at, row.recoveries, row.afresh, row.device_restarts) == (UNIX - 30, 4, 1, {"r1": 2, "r2": 1})


@given(st.lists(st.sampled_from(["continued", "reset_on", "renewing", "handed_back", "restarted", "stopped"])))
def test_only_a_failure_with_a_wipe_counts_as_a_restart(verbs: list[str]) -> None:
    """A Job ends at a number of restarts: what a learner asks for, or survives, must not lead there."""
    row = RAN
    for verb in verbs:
        match verb:
            case "continued":
                row = row.continued(("r1", "r2"), "m", UNIX)
            case "reset_on":
                row = row.reset_on("now", "m", UNIX)
            case "renewing":
                row = row.renewing("m", UNIX)
            case "handed_back":
                row = row.handed_back()
            case "restarted":
                row = row.restarted(Trouble.LAB_CRASHED, "m", UNIX)
            case _:
                row = row.paused(UNIX).resumed(UNIX + 9)
    again = [verb for verb in verbs if verb not in {"handed_back", "stopped"}]
    assert row.restarts == RAN.restarts + verbs.count("restarted")
    assert row.starts_again == RAN.starts_again + len(again)
    assert row.starts_again_of("r1") == RAN.starts_again_of("r1") + len(again)
    assert row.starts_again_of("r3") == RAN.starts_again_of("r3") + len(again) - verbs.count("continued")


def test_claims_are_changed_by_their_verbs_alone() -> None:
    """The class has a verb for each change, whose docstring says what it means."""
    texts = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for package in ("pure", "controllers")
        for path in (ROOT / "vkprovider" / "labs" / package).rglob("*.py")
    }
    texts["vkprovider/labs/controllers/wrong.py"] = "changed = msgspec.structs.replace(claim, lab_id='x')\n"
    modules = [Module(path, text, ast.parse(text, path)) for path, text in texts.items()]
    assert claim_changes(modules) == ["vkprovider/labs/controllers/wrong.py:1"]
