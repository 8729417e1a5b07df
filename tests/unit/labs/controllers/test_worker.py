"""What is known of a worker: whether it can be used, and which connections a key of the queue closes."""

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from tunnels.base import ByteChannel
from vkprovider.lablet.models.worker import parse_worker_spec
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.controllers.claims.store import ClaimStore
from vkprovider.labs.controllers.console.open import OpenConsoles
from vkprovider.labs.controllers.worker.connection import WorkerConnection
from vkprovider.labs.controllers.worker.worker import Fleet, Observation, Worker
from vkprovider.labs.pure.topology.resources import Resources
from vkprovider.labs.pure.worker.capacity import Capacity
from vkprovider.labs.pure.worker.node import unhealthy
from vkprovider.platform.errors import InputError, Unavailable

SPEC = {"url": "https://cml.example.com", "credentialsSecretName": "s"}


@dataclass
class Claims:
    """As much of a claim store as health depends on."""

    fault: InputError | None = None
    claims: dict[str, object] = field(default_factory=dict)


def worker(name: str = "w1", claims_fault: InputError | None = None, **seen: object) -> Worker:
    connection = WorkerConnection(parse_worker_spec(SPEC), None, None, lambda: None, int, lambda: False)  # type: ignore[arg-type]  # (not asked)
    claims = cast("ClaimStore", Claims(claims_fault))
    return Worker(name, f"uid-{name}", SPEC, connection, claims, lambda: None, None, Observation(**seen))  # type: ignore[arg-type]  # (words)


ANSWERS = {"reached": True, "version": "2.9.1"}
SILENT = unhealthy(WorkerReason.WORKER_UNREACHABLE, "no answer")
FULL = InputError(WorkerReason.CLAIM_STORE_FULL, "too many")
UNKNOWN = Capacity(Resources(), 0, Resources(), InputError(WorkerReason.CAPACITY_UNKNOWN, "spec.capacity lacks cpu"))


@pytest.mark.parametrize(
    ("seen", "claims_fault", "offered", "reason"),
    [
        ({}, None, None, "Starting"),
        (ANSWERS, None, None, "WorkerReady"),
        (ANSWERS, FULL, None, "ClaimStoreFull"),
        (ANSWERS | {"version": "2.7.0"}, None, None, "UnsupportedVersion"),
        (ANSWERS, None, UNKNOWN, "CapacityUnknown"),
        (ANSWERS, FULL, UNKNOWN, "ClaimStoreFull"),
        ({"reached": False, "fault": SILENT}, FULL, UNKNOWN, "WorkerUnreachable"),
    ],
)
def test_health_names_the_fault_that_must_be_mended_first(
    seen: dict[str, object], claims_fault: InputError | None, offered: Capacity | None, reason: str
) -> None:
    known = worker("w1", claims_fault, **seen)
    known.capacity = offered
    assert known.health.reason == reason
    assert known.health.ready is (reason == "WorkerReady")


def test_learners_reach_the_resolved_address_once_it_is_known() -> None:
    assert worker().address == "cml.example.com"
    assert worker(ip="198.51.100.7").address == "198.51.100.7"


def test_what_was_given_up_is_closed_under_its_own_name_only() -> None:
    fleet = Fleet()
    first, second, again = worker("a"), worker("b"), worker("a")
    for each in (first, second):
        fleet.add(each)
        fleet.given_up(each.name)
    fleet.add(again)
    fleet.given_up("a")
    assert not fleet.items
    assert sorted(map(id, fleet.pop_given_up("a"))) == sorted(map(id, (first, again)))
    assert list(fleet.pop_given_up("a")) == []
    assert list(fleet.pop_given_up("b")) == [second]


class Channel:
    """A connection to a port of a lab."""

    def __init__(self) -> None:
        self.closed = False

    async def close(self) -> None:
        self.closed = True


async def test_a_connection_that_comes_about_after_its_worker_was_given_up_is_closed() -> None:
    consoles, dialled, comes = OpenConsoles(lambda _: None), Channel(), asyncio.Event()

    async def dial() -> ByteChannel:
        await comes.wait()
        return cast("ByteChannel", dialled)

    connecting = asyncio.create_task(consoles.connect(worker(), dial))
    await asyncio.sleep(0)
    consoles.given_up("w1")
    comes.set()
    with pytest.raises(Unavailable):
        await connecting
    assert dialled.closed
    kept = await consoles.connect(worker(), dial)
    consoles.given_up("w1")
    dialled.closed = False
    await asyncio.sleep(0)
    assert dialled.closed, f"{kept} ends with the worker"
