"""What learners leave: nothing that was found is lost, and nobody's work is taken for another's."""

import msgspec
import pytest

from tests.unit.domain.builders import POD_UID, claim
from vkprovider.api.errors import InputError
from vkprovider.api.objects import ConfigMap, Metadata
from vkprovider.domain.lablet import leftovers
from vkprovider.domain.lablet.leftovers import Left
from vkprovider.domain.session.delivery import Session

ALICE = leftovers.left_by(claim(), {"r1": "hostname r1"}, {"r2": "it is off"}, at=1000, username="alice")


def stored(left: Left, name: str = "") -> ConfigMap:
    built = leftovers.build(left, namespace="system", installation="i", name=name)
    return msgspec.convert(built, ConfigMap)


def test_what_is_kept_is_read_again() -> None:
    config_map = stored(ALICE)
    assert leftovers.read(config_map) == ALICE
    assert config_map.metadata.name == f"left-{POD_UID}"
    assert config_map.metadata.annotations["vkprovider.io/pod"] == "team/pod-1"
    assert leftovers.kept_at(config_map) == 1000


def test_learner_is_the_sessions_or_the_pods() -> None:
    assert ALICE.username == "alice"
    session = Session("eu-1", POD_UID, "bob", id="s-1")
    left = leftovers.left_by(claim(session=session), {}, {}, at=1, username="alice")
    assert (left.username, left.session_id) == ("bob", "s-1")


def test_device_that_is_off_by_now_has_told_its_configuration() -> None:
    later = msgspec.structs.replace(ALICE, configs={"r2": "hostname r2"}, faults={"r1": "it is off"}, at=2000)
    both = leftovers.merged(ALICE, later)
    assert (both.configs, both.faults, both.at) == ({"r1": "hostname r1", "r2": "hostname r2"}, {}, 2000)
    assert leftovers.merged(None, later) is later


@pytest.mark.parametrize("change", [{"username": "bob"}, {"session_id": "s-2"}])
def test_next_learner_gets_nothing_of_the_one_before(change: dict[str, str]) -> None:
    """Both stay: the earlier one under a name of its own."""
    bob = msgspec.structs.replace(ALICE, configs={"r2": "x"}, at=2000, **change)
    assert not leftovers.same_learner(ALICE, bob)
    assert leftovers.merged(ALICE, bob) is bob
    aside = stored(ALICE, leftovers.earlier_name_of(ALICE))
    assert aside.metadata.name == f"left-{POD_UID}-1000"
    assert leftovers.read(aside) == ALICE
    assert leftovers.kept_at(aside) == 1000, "it is dropped when its own week is over"


def test_damaged_object_is_told() -> None:
    for data in ({}, {leftovers.KEY: "!"}, {leftovers.KEY: "AAAA"}):
        with pytest.raises(InputError, match="KeptInvalid: ConfigMap left-x cannot be read"):
            leftovers.read(ConfigMap(Metadata("left-x"), binary_data=data))


def test_time_that_nobody_wrote_drops_nothing() -> None:
    assert leftovers.kept_at(ConfigMap(Metadata("left-x"))) is None
