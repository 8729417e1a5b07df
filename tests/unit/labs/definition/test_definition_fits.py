"""Whether any worker is large enough for one lablet."""

from typing import Any

import msgspec
import pytest

from vkprovider.labs.pure.definition.fitting import Room, room_of, too_large, too_new
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.platform.objects import CustomResource

NEED = Resources(8000, 2**30, 4, 10)
SMALL, LARGE = Resources(4000, 2**30, 8, 100), Resources(16000, 2**34, 8, 100)


def worker(**spec: Any) -> CustomResource:
    capacity = {"cpu": "4", "memory": "1Gi", "labNodes": 8}
    given = {"url": "https://cml-1.example.com", "capacity": capacity, **spec}
    return msgspec.convert({"metadata": {"name": "w"}, "spec": given}, CustomResource)


@pytest.mark.parametrize(
    "rooms",
    [
        [Room("default", SMALL), Room("default", LARGE)],
        [],
        [Room("other", SMALL)],
        [Room("default", SMALL), Room("default", None)],
    ],
    ids=["one holds it", "no workers", "none of that environment", "one that only CML knows"],
)
def test_nothing_is_said_of_a_lablet_that_fits_or_may_fit(rooms: list[Room]) -> None:
    assert too_large(NEED, "default", rooms) == ""


def test_what_is_lacking_is_compared_with_the_largest() -> None:
    said = too_large(NEED, "default", [Room("default", SMALL), Room("other", LARGE)])
    assert said == "no worker of environment default holds one lablet, whatever else runs: cpu 8 > 4"


def test_one_worker_must_have_enough_of_everything() -> None:
    rooms = [Room("default", Resources(9000, 2**20, 9, 99)), Room("default", Resources(1000, 2**40, 9, 99))]
    assert "has enough of everything" in too_large(NEED, "default", rooms)


def test_the_room_of_a_worker() -> None:
    assert room_of(worker(), (10000, 10099)) == Room("default", SMALL)
    assert room_of(worker(portRange={"start": 1, "end": 5}, environment="lab"), (10000, 10099)) == Room(
        "lab", Resources(4000, 2**30, 8, 5)
    )
    assert room_of(worker(capacity={}, stats="On"), (1, 2)) == Room("default", None)
    assert room_of(worker(capacity={"cpu": "many"}, environment="lab"), (1, 2)) == Room("lab", None)


OLD, NEW = Room("default", SMALL, (2, 9, 1)), Room("default", SMALL, (2, 10, 0))


@pytest.mark.parametrize(
    ("versions", "rooms"),
    [
        (["0.3.1"], [OLD, NEW]),
        (["0.3.1"], []),
        (["0.3.1"], [OLD, Room("default", SMALL)]),
        (["0.3.1"], [OLD._replace(environment="other")]),
        ([], [OLD]),
    ],
    ids=["one imports it", "no workers", "one that is not known yet", "none of that environment", "every CML does"],
)
def test_nothing_is_said_of_a_topology_that_is_or_may_be_imported(versions: list[str], rooms: list[Room]) -> None:
    assert too_new(versions, "default", rooms) == ""


def test_what_is_too_new_is_compared_with_the_newest() -> None:
    said = too_new(["0.3.1"], "default", [OLD, OLD._replace(release=(2, 8, 1)), NEW._replace(environment="other")])
    assert (
        said
        == "topology version 0.3.1 needs CML 2.10 or later, and the newest worker of environment default has CML 2.9.1"
    )


def test_the_release_of_a_worker() -> None:
    known = msgspec.convert(
        {**msgspec.to_builtins(worker()), "status": {"cmlVersion": "2.10.1+build.2"}}, CustomResource
    )
    assert (room_of(known, (1, 2)).release, room_of(worker(), (1, 2)).release) == ((2, 10, 1), None)
