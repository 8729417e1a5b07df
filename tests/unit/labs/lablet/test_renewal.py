"""New content for warm pools (R001-023): whose turn it is, and how a lab is replaced."""

from typing import Any

import msgspec
import pytest

from tests.support.topologies import topology
from tests.unit.labs.builders import BOOTED, DEFINITION_UID, DIGEST, claim, devices, facts_with, pod
from vkprovider.lablet import names, observations
from vkprovider.lablet.inputs import inputs_of
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet import steps
from vkprovider.labs.pure.lablet.decisions.decide import decide
from vkprovider.labs.pure.lablet.facts import Decision
from vkprovider.labs.pure.lablet.intent import Definition, Member, WarmPool, member_of, next_up, pool_of
from vkprovider.labs.pure.lablet.memory import Presence
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.pure.topology.topology import parse
from vkprovider.labs.settings.cluster import LabletSettings
from vkprovider.platform import wellknown
from vkprovider.platform.objects import Pod

NOW = 5000.0
UNIX = 1_800_000_000
NEW = "e" * 64
READY = claim(lab_id="lab-1", started_at=UNIX - 600, ready_at=UNIX - 500)
GOING = msgspec.structs.replace(READY, renews=DIGEST, restarts=1, afresh=1, started_at=0, ready_at=0)
SHOWN = {"conditions": [{"type": "Ready", "status": "True"}]}


def warm(*, image: str = "netlab", ready: bool = True, pool: str = "warm", **words: str) -> Pod:
    """Make a Pod of a pool, which reports the old content."""
    notes = {f"{wellknown.GROUP}/{key.replace('_', '-')}": value for key, value in words.items()}
    notes[names.ANNOTATION_CONTENT] = f"1.0@sha256:{DIGEST}"
    status = SHOWN if ready else {}
    item = pod(phase="Running", containers=(("lab", image),), annotations=notes, status=status)
    labels = {names.LABEL_POOL: pool} if pool else {}
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, labels=labels))


def content(digest: str, version: str, need: Resources) -> Content:
    return Content("netlab", version, digest, 1, parse(topology({"r1": "iosv"})), need, f"netlab-{version}")


# ------------------------------------------------------------------------------------------ whose turn it is


def test_one_lablet_of_a_pool_at_a_time() -> None:
    old, current = Member("b", ready=True, digest=NEW), Member("a", ready=True, digest="")
    assert next_up([]) is None
    assert next_up([current]) is None
    assert next_up([Member("c", ready=True, digest=NEW), old, current]) == old
    assert next_up([old, Member("a", ready=False, digest="")]) is None
    assert next_up([Member("b", ready=False, digest=NEW)]) is None


@pytest.mark.parametrize(
    ("item", "pool"),
    [
        (warm(), WarmPool("team", "warm", "netlab")),
        (warm(pool=""), None),
        (warm(username="alice"), None),
        (warm(lent_by="warm"), None),
        (warm(desired_state="STOPPED"), None),
    ],
)
def test_only_free_lablets_of_a_pool_count(item: Pod, pool: WarmPool | None) -> None:
    assert pool_of(item) == pool


def test_the_newest_version_that_fits_is_taken_up() -> None:
    small, large = Resources(cpu_m=0), Resources(cpu_m=99_000)

    def newer(item: Pod, *versions: Content) -> str:
        definition = Definition("netlab", DEFINITION_UID, "default", tuple(versions))
        return member_of(item, {"netlab": definition}).digest

    old, new = content(DIGEST, "1.0", small), content(NEW, "1.1", small)
    assert newer(warm(), new, old) == NEW
    assert newer(warm(image="netlab:latest"), new, old) == NEW
    assert newer(warm(), old) == ""
    assert newer(warm(image="netlab:1.0"), new, old) == ""
    assert newer(warm(), content(NEW, "1.1", large), old) == ""
    assert newer(warm(), content(NEW, "1.1", large)) == ""
    assert newer(warm()) == ""
    assert member_of(warm(), {}) == Member(warm().metadata.uid, ready=True, digest="")
    assert not member_of(warm(ready=False), {}).ready


# ------------------------------------------------------------------------------------------ replacing the lab


def ask(item: Pod, *states: str, **known: Any) -> Decision:
    facts: dict[str, Any] = {
        "pod": item,
        "claim": READY,
        "presence": Presence.PRESENT,
        "devices": devices(*states),
        "inputs": inputs_of(item.metadata),
        "renewal": NEW,
        "now_unix": UNIX,
        "extracted": True,
    }
    return decide(facts_with(**(facts | known)), NOW, LabletSettings())


def test_a_free_lablet_whose_turn_it_is_leaves_ready_first() -> None:
    decision = ask(warm(), *BOOTED)
    row, report = decision.claim, decision.report
    assert row is not None
    assert report is not None
    assert (type(decision.step), row.renews, row.lab_id, row.digest) == (steps.Save, DIGEST, "lab-1", DIGEST)
    assert report.waiting is not None
    assert (report.waiting.reason, report.phase, report.ready) == ("RenewingContent", "Running", False)
    assert [event.reason for event in decision.events] == ["RenewingContent"]


@pytest.mark.parametrize(
    ("item", "known"),
    [
        (warm(), {"renewal": ""}),
        (warm(), {"renewal": DIGEST}),
        (warm(pool=""), {}),
        (warm(username="alice"), {}),
        (warm(lent_by="warm"), {}),
        (warm(username="alice"), {"claim": msgspec.structs.replace(READY, learner="alice")}),
        (warm(), {"claim": msgspec.structs.replace(READY, lent_back="warm")}),
    ],
)
def test_any_other_lablet_is_not_touched(item: Pod, known: dict[str, Any]) -> None:
    decision = ask(item, *BOOTED, **known)
    assert decision.claim is None or not decision.claim.renews
    assert type(decision.step) not in {steps.Stop, steps.Wipe, steps.DeleteLab, steps.Renew}


def test_the_lab_goes_only_when_the_pod_is_seen_not_ready_and_the_claim_is_saved() -> None:
    going: dict[str, Any] = {"claim": GOING}
    assert (type(ask(warm(), *BOOTED, **going).step), ask(warm(), *BOOTED, **going).after_s) == (steps.Wait, 1.0)
    hidden = warm(ready=False)
    assert type(ask(hidden, *BOOTED, **going, claim_saved=False).step) is steps.Wait
    shown = (BOOTED, ("PAUSED",), (observations.STOPPED,), (observations.DEFINED,))
    taken = [type(ask(hidden, *states, **going).step) for states in shown]
    assert taken == [steps.Stop, steps.Stop, steps.Wipe, steps.DeleteLab]
    assert type(ask(hidden, **going).step) is steps.DeleteLab
    assert type(ask(hidden, **going, presence=Presence.ABSENT).step) is steps.Renew
    assert type(ask(hidden, **going, presence=Presence.UNKNOWN).step) is steps.Wait


@pytest.mark.parametrize("ready", [True, False])
def test_a_lablet_that_is_assigned_at_the_same_moment_keeps_its_lab(*, ready: bool) -> None:
    item = warm(ready=ready, pool="", username="alice", lent_by="warm")
    for states in (BOOTED, (observations.STOPPED,), (observations.DEFINED,)):
        decision = ask(item, *states, claim=GOING)
        assert decision.claim is not None
        assert (type(decision.step), decision.claim.renews, decision.claim.learner) == (steps.Save, "", "alice")


def test_the_new_lab_is_imported_booted_and_then_ready() -> None:
    hidden, row = warm(ready=False), msgspec.structs.replace(GOING, digest=NEW, lab_id="")
    assert type(ask(hidden, claim=row, claim_saved=False).step) is steps.Wait
    assert type(ask(hidden, claim=row, searched=True).step) is steps.Import
    booted = ask(hidden, *BOOTED, claim=msgspec.structs.replace(row, lab_id="lab-2", started_at=UNIX - 60)).claim
    assert booted is not None
    assert (booted.renews, booted.ready_at) == ("", UNIX)
