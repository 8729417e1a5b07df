"""What learners leave: nothing that was read is lost, and one learner's work never counts as another's."""

import msgspec
import pytest

from tests.unit.labs.builders import POD_UID, claim
from vkprovider.lablet.archives import Leftovers, Verdict
from vkprovider.labs.pure.lablet import leftovers
from vkprovider.labs.pure.session.delivery import Session
from vkprovider.platform.errors import InputError
from vkprovider.platform.objects import ConfigMap, Metadata

ALICE = leftovers.of_claim(claim(), {"r1": "hostname r1"}, {"r2": "it is off"}, at=1000, username="alice")


def stored(left: Leftovers, name: str = "") -> ConfigMap:
    built = leftovers.build(left, namespace="system", installation="i", name=name)
    return msgspec.convert(built, ConfigMap)


def test_built_config_map_is_read_back() -> None:
    config_map = stored(ALICE)
    assert leftovers.read(config_map) == ALICE
    assert config_map.metadata.name == f"left-{POD_UID}"
    assert config_map.metadata.annotations["vkprovider.io/pod"] == "team/pod-1"
    assert leftovers.written_at(config_map) == 1000


def test_username_is_the_sessions_or_else_the_pods() -> None:
    assert ALICE.username == "alice"
    session = Session("eu-1", POD_UID, "bob", id="s-1")
    left = leftovers.of_claim(claim(session=session), {}, {}, at=1, username="alice")
    assert (left.username, left.session_id) == ("bob", "s-1")


def test_configuration_of_a_device_that_is_off_now_is_kept() -> None:
    later = msgspec.structs.replace(ALICE, configs={"r2": "hostname r2"}, faults={"r1": "it is off"}, at=2000)
    both = leftovers.merged(ALICE, later)
    assert (both.configs, both.faults, both.at) == ({"r1": "hostname r1", "r2": "hostname r2"}, {}, 2000)
    assert leftovers.merged(None, later) is later


@pytest.mark.parametrize("change", [{"username": "bob"}, {"session_id": "s-2"}])
def test_leftovers_of_two_learners_are_not_merged(change: dict[str, str]) -> None:
    """Both are stored: the earlier one under another name."""
    bob = msgspec.structs.replace(ALICE, configs={"r2": "x"}, at=2000, **change)
    assert not leftovers.same_learner(ALICE, bob)
    assert leftovers.merged(ALICE, bob) is bob
    aside = stored(ALICE, leftovers.earlier_name_of(ALICE))
    assert aside.metadata.name == f"left-{POD_UID}-1000"
    assert leftovers.read(aside) == ALICE
    assert leftovers.written_at(aside) == 1000, "it is deleted when its own week is over"


def test_leftovers_of_two_times_of_one_learner_are_not_merged() -> None:
    """Without a session the lab tells them apart: it is imported again in between."""
    first = msgspec.structs.replace(ALICE, session_id="", lab_id="lab-1")
    second = msgspec.structs.replace(first, configs={"r2": "x"}, at=2000, lab_id="lab-2")
    assert leftovers.merged(first, second) is second
    row = claim(learner="alice", lab_id="lab-2")
    assert leftovers.is_of(second, row)
    assert not leftovers.is_of(first, row), "what she left then is not graded now"
    assert leftovers.is_of(second, msgspec.structs.replace(row, lab_id="")), "its lab is gone"


def test_the_grade_is_added_to_what_is_stored_of_the_learner() -> None:
    """Also to why a configuration is missing, and also when a crash has it added again."""
    verdict = Verdict(passed=True, message="9 of 10")
    row = claim(learner="alice")
    once = leftovers.graded(ALICE, row, verdict, at=2000)
    assert once == msgspec.structs.replace(ALICE, grade=verdict)
    assert leftovers.merged(ALICE, once).faults == {"r2": "it is off"}
    assert leftovers.graded(once, row, verdict, at=3000) == once


@pytest.mark.parametrize("left", [None, msgspec.structs.replace(ALICE, username="bob")])
def test_a_grade_without_anything_else_is_of_the_claims_learner_alone(left: Leftovers | None) -> None:
    verdict = Verdict(passed=False, message="0 of 10")
    graded = leftovers.graded(left, claim(learner="alice"), verdict, at=2000)
    assert (graded.username, graded.configs, graded.faults, graded.grade, graded.at) == ("alice", {}, {}, verdict, 2000)


def test_damaged_object_raises() -> None:
    for data in ({}, {leftovers.KEY: "!"}, {leftovers.KEY: "AAAA"}):
        with pytest.raises(InputError, match="KeptInvalid: ConfigMap left-x cannot be read"):
            leftovers.read(ConfigMap(Metadata("left-x"), binary_data=data))


def test_object_without_a_time_is_never_old() -> None:
    assert leftovers.written_at(ConfigMap(Metadata("left-x"))) is None
