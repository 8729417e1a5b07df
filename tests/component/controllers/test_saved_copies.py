"""Copies of lablets' labs that somebody saved: no copy is ever touched, and no second lab is made (C10, C31, R000-022).

Export and import keep title and notes, so the mark. Whether a copy was touched is read from the worker's access log.
"""

import asyncio
import json
from typing import Any

import pytest

from tests.component.controllers.harness import PASSWORD, World
from tests.component.controllers.labhistory import existing_lab, take_away
from tests.component.controllers.looking import eventually, imports, labs, waiting, when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL
from tests.support.apiserver import CONFIG_MAPS
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology
from vkprovider.cml.factory import open_labs
from vkprovider.cml.spi import Credentials, Labs
from vkpsim.cml.world.model import Lab
from vkpsim.http.faults import Fault

PORTS = topology({"h0": "alpine"}, {"h0": ["serial:4001", "pat:4002:22"]})
LOG_IN = """curl -s {url}/api/v0/authenticate -H 'Content-Type: application/json' \\
    -d '{{"username":"admin","password":"{password}"}}' | tr -d '"'"""
STATES = ["never started", "started", "stopped"]


async def _password() -> Credentials:
    return Credentials("admin", PASSWORD)


class Somebody:
    """A person with an account on the worker, who saves copies by export and import."""

    def __init__(self, simulator: CmlSimulator) -> None:
        self.simulator = simulator
        self.labs: Labs = open_labs(simulator.url, _password)
        self.copies: list[str] = []

    async def download(self, lab: Lab) -> bytes:
        return await self.labs.download_lab(lab.id)

    async def save(self, lab: Lab, state: str = "never started") -> Lab:
        return await self.upload(await self.download(lab), lab.title, state)

    async def upload(self, file: bytes, title: str, state: str = "never started") -> Lab:
        lab_id = (await self.labs.import_lab(file.decode(), title)).id
        self.copies.append(lab_id)
        if state != "never started":
            await self.labs.start_lab(lab_id)
        if state == "stopped":
            await self.labs.stop_lab(lab_id)
        await self.labs.close()
        self.labs = open_labs(self.simulator.url, _password)
        return self.simulator.simulation.world.labs[lab_id]

    def age(self, lab: Lab, seconds: float) -> None:
        """Let a copy have been made so much later than it was."""
        lab.created += seconds

    def ids(self) -> set[str]:
        return set(self.simulator.simulation.world.labs)

    def has_only(self, copy: Lab) -> None:
        """Expect that a copy is the only lab of the worker, and that nobody else touched a copy."""
        assert self.ids() == {copy.id}
        assert self.touched() == []

    def touched(self) -> list[str]:
        """List what was done to the copies by others than this person, who makes, starts and stops each once."""
        done = [f"{e.method} {e.path}" for e in self.simulator.log.entries if e.method in {"PUT", "PATCH", "DELETE"}]
        found = [what for what in done if any(lab_id in what for lab_id in self.copies)]
        mine = [what for what in dict.fromkeys(found) if what.endswith(("/start", "/stop")) and found.count(what) == 1]
        return [what for what in found if what not in mine]


async def delete_claims(world: World, worker: str) -> None:
    await world.admin.delete(f"{CONFIG_MAPS}/{worker}-port-allocations")


async def looked_again(simulator: CmlSimulator, times: int = 4) -> None:
    """Wait until the provider has looked at the worker a few times more."""

    def looks() -> int:
        return sum(e.method == "GET" and e.path.endswith("/api/v0/labs") for e in simulator.log.entries)

    before = looks()
    await when(lambda: looks() >= before + times, "the worker is looked at again")


async def begun(world: World, simulator: CmlSimulator) -> tuple[str, Lablet]:
    """Return a definition, and a lablet of it that is Ready."""
    worker, definition = await world.worker(simulator.url), await world.define(PORTS)
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    return definition, lablet


def started(simulator: CmlSimulator) -> int:
    return sum(e.path.endswith("/start") and e.status < 300 for e in simulator.log.entries)


@pytest.mark.parametrize("state", STATES)
async def test_copy_of_a_living_lablets_lab_outlives_it(world: World, state: str) -> None:
    await world.replica()
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    _, lablet = await begun(world, simulator)
    copy = await somebody.save(existing_lab(simulator, lablet.uid), state)
    await world.until_event("UnclaimedLab", lablet.worker)
    await looked_again(simulator)
    assert len(somebody.ids()) == 2
    await lablet.delete()
    await lablet.gone()
    await looked_again(simulator)
    somebody.has_only(copy)


@pytest.mark.parametrize("when_made", ["before", "after"])
@pytest.mark.parametrize("state", STATES)
async def test_copy_whose_pod_went_with_the_claims_is_left_alone(world: World, state: str, when_made: str) -> None:
    """As when a CMLWorker is deleted and made again while its lablets go."""
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    definition, lablet = await begun(world, simulator)
    await lablet.claim(lambda row: row.get("labId"))
    lab = existing_lab(simulator, lablet.uid)
    file = await somebody.download(lab)
    copy = await somebody.upload(file, lab.title, state) if when_made == "before" else None
    await first.crash()
    await delete_claims(world, lablet.worker)
    take_away(simulator, lab, delete=True)
    copy = copy or await somebody.upload(file, lab.title, state)
    await lablet.delete(grace_s=0)
    await world.replica(MORTAL)
    late = await world.pod(definition, lablet.worker)
    await late.ready()
    await world.until_event("UnclaimedLab", lablet.worker)
    assert copy.id in somebody.ids()
    assert somebody.touched() == []
    assert set(await world.claims(lablet.worker)) <= {late.uid}
    shown = json.loads((await late.ready())["metadata"]["annotations"]["vkprovider.io/port-mappings"])
    opened = {int(part) for node in copy.nodes.values() for tag in node.tags for part in tag.split(":")[1:2]}
    assert opened.isdisjoint({info["allocated_port"] for info in shown.values()}), "the copy's ports are not given away"
    await late.delete()
    await late.gone()
    somebody.has_only(copy)


async def test_ports_of_a_copy_are_not_given_to_another_lablet(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    definition, lablet = await begun(world, simulator)
    held = set((await world.ports(lablet.worker))[lablet.name].values())
    await somebody.save(existing_lab(simulator, lablet.uid), "started")
    await world.until_event("UnclaimedLab", lablet.worker)
    await lablet.delete()
    await lablet.gone()
    await lablet.unclaimed()
    successor = await world.pod(definition, lablet.worker)
    await successor.ready()
    await successor.claim(lambda row: row.get("labId"))
    given = set((await world.ports(lablet.worker))[successor.name].values())
    assert len(given) == 2
    assert given.isdisjoint(held)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("left", ["the original too", "the copy alone"])
async def test_lost_claims_of_a_living_pod_name_the_lab_that_it_shows(world: World, state: str, left: str) -> None:
    first = await world.replica(MORTAL)
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    _, lablet = await begun(world, simulator)
    await lablet.claim(lambda row: row.get("labId"))
    lab = existing_lab(simulator, lablet.uid)
    copy = await somebody.save(lab, state)
    await first.crash()
    await delete_claims(world, lablet.worker)
    if left == "the copy alone":
        take_away(simulator, lab, delete=True)
    await world.replica(MORTAL)
    if left == "the copy alone":
        said = (await lablet.waits("NeedsAttention"))["message"]
        assert copy.id in said
    else:
        assert (await lablet.claim(lambda row: row.get("labId")))["labId"] == lab.id
        await lablet.ready()
    await world.until_event("UnclaimedLab", lablet.worker)
    await looked_again(simulator)
    assert len(imports(simulator)) == 2, "the lablet's and the copy"
    await lablet.delete()
    await lablet.gone()
    somebody.has_only(copy)


async def imported_without_answer(world: World, simulator: CmlSimulator) -> tuple[Lablet, Lab]:
    """Let a replica die between an import and its answer."""
    first = await world.replica(MORTAL)
    worker, definition = await world.worker(simulator.url), await world.define(PORTS)
    simulator.faults.add(Fault(kind="lost_answer", route="^POST .*/import"), simulator.now())
    simulator.faults.add(Fault(kind="status", status=503, route="^GET .*/labs$"), simulator.now())
    lablet = await world.pod(definition, worker)
    await when(lambda: labs(simulator), "the lab is imported")
    await lablet.claim(lambda row: not row.get("labId"))
    lab = existing_lab(simulator, lablet.uid)
    await first.crash()
    simulator.faults.clear()
    return lablet, lab


@pytest.mark.parametrize("state", ["never started", "started"])
@pytest.mark.parametrize("left", ["the original too", "the copy alone"])
async def test_lost_answer_finds_the_lab_and_not_a_later_copy(world: World, state: str, left: str) -> None:
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    lablet, lab = await imported_without_answer(world, simulator)
    copy = await somebody.save(lab, state)
    somebody.age(copy, 90.0)
    if left == "the copy alone":
        take_away(simulator, lab, delete=True)
    await world.replica(MORTAL)
    await lablet.ready()
    row = await lablet.claim(lambda row: row.get("labId"))
    assert row["labId"] != copy.id
    assert len(somebody.ids()) == 2
    assert (row["labId"] == lab.id) == (left == "the original too"), "no second lab is made"
    await lablet.delete()
    await lablet.gone()
    somebody.has_only(copy)


async def test_lost_answer_with_a_copy_of_the_same_minute_waits_for_a_person(world: World) -> None:
    """And the command in the Event removes the copy."""
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    lablet, lab = await imported_without_answer(world, simulator)
    copy = await somebody.save(lab, "started")
    await world.replica(MORTAL)
    said = (await lablet.waits("NeedsAttention"))["message"]
    for words in (lab.id, copy.id, "Nothing is imported", "UnclaimedLab"):
        assert words in said
    assert await world.until_event("NeedsAttention", lablet.name)

    async def told() -> dict[str, str]:
        notes = [event["message"] for event in await world.events("UnclaimedLab", lablet.worker)]
        return {lab_id: note for note in notes for lab_id in (lab.id, copy.id) if lab_id in note}

    async def both() -> dict[str, str] | None:
        return found if len(found := await told()) == 2 else None

    notes = await eventually(both, "both labs are reported")
    assert notes is not None
    assert len(imports(simulator)) == 2
    assert somebody.touched() == []
    command = notes[copy.id].partition("or with: ")[2].partition(" (TOKEN")[0]
    shell = await asyncio.create_subprocess_exec(
        "bash", "-c", f"TOKEN=$({LOG_IN.format(url=simulator.url, password=PASSWORD)}); {command}"
    )
    assert await asyncio.wait_for(shell.wait(), 60) == 0
    assert somebody.ids() == {lab.id}
    await lablet.ready()
    assert len(imports(simulator)) == 2


async def test_two_labs_of_a_pod_that_shows_none_wait_for_a_person_and_both_outlive_it(world: World) -> None:
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    lablet, lab = await imported_without_answer(world, simulator)
    await delete_claims(world, lablet.worker)
    copy = await somebody.save(lab)
    somebody.age(copy, 600.0)
    await world.replica(MORTAL)
    await lablet.waits("NeedsAttention")
    await lablet.delete()
    await lablet.gone()
    await looked_again(simulator)
    assert somebody.ids() == {lab.id, copy.id}
    assert len(imports(simulator)) == 2
    assert started(simulator) == 0


async def test_row_of_an_older_version_finds_its_only_lab_and_waits_if_there_are_two(world: World) -> None:
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    lablet, lab = await imported_without_answer(world, simulator)
    path = f"{CONFIG_MAPS}/{lablet.worker}-port-allocations"
    document = json.loads((await world.admin.get(path) or {})["data"]["allocations.json"])
    for row in document["lablets"]:
        assert row.pop("asked") > 1_700_000_000
    await world.admin.patch(path, {"data": {"allocations.json": json.dumps(document)}})
    copy = await somebody.save(lab)
    second = await world.replica(MORTAL)
    await lablet.waits("NeedsAttention")
    await second.crash()
    take_away(simulator, copy, delete=True)
    await world.replica(MORTAL)
    await lablet.ready()
    assert (await lablet.claim(lambda row: row.get("labId")))["labId"] == lab.id
    assert len(imports(simulator)) == 2


async def test_late_lab_of_our_own_import_is_removed_and_a_copy_of_it_stays(world: World) -> None:
    """Its note is that of an import whose answer never came."""
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    lablet, lab = await imported_without_answer(world, simulator)
    hidden = simulator.simulation.world.labs.pop(lab.id)
    await world.replica(MORTAL)
    await lablet.ready()
    await lablet.claim(lambda row: row.get("firstAsked"))
    simulator.simulation.world.labs[lab.id] = hidden  # the import arrives now
    await when(lambda: lab.id not in somebody.ids(), "what the first import left is removed")
    copy = await somebody.save(existing_lab(simulator, lablet.uid))
    await looked_again(simulator)
    assert copy.id in somebody.ids()
    assert somebody.touched() == []


async def test_lab_that_somebody_deleted_is_imported_again_and_its_copy_is_not_taken_for_it(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    somebody = Somebody(simulator)
    _, lablet = await begun(world, simulator)
    lab = existing_lab(simulator, lablet.uid)
    copy = await somebody.save(lab, "started")
    simulator.faults.add(Fault(kind="drop", route="^POST .*/import", count=1), simulator.now())
    take_away(simulator, lab, delete=True)

    def again(pod: dict[str, Any]) -> object:
        shown = pod["metadata"]["annotations"]["vkprovider.io/lab-id"]
        return shown not in {lab.id, copy.id} and not waiting(pod)

    await lablet.until(again, "a new lab")
    assert len(imports(simulator)) == 3
    await lablet.delete()
    await lablet.gone()
    somebody.has_only(copy)
