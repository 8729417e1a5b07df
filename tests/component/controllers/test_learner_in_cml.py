"""The list of labs in CML shows whose each is: the learner before the author's description."""

import asyncio

from tests.component.controllers.harness import World
from tests.component.controllers.labhistory import existing_lab
from tests.component.controllers.looking import when
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.test_saved_copies import Somebody
from tests.support.cmlapi.simulator import CmlSimulator
from tests.support.topologies import topology
from vkprovider.labs.kubelet.spi import LogOptions, Target
from vkpsim.http.faults import Fault

AUTHORS = "OSPF in two areas.\nSee the board."
OSPF = topology({"h0": "alpine"}).replace("description: ''", '"description": "OSPF in two areas.\\nSee the board."')
ALICE = "Learner: alice (vkprovider)"
BOB = "Learner: bob (vkprovider)"


def changes(simulator: CmlSimulator) -> int:
    """Count the requests that change what a lab says of itself."""
    return sum(entry.method == "PATCH" for entry in simulator.log.entries)


async def is_described(simulator: CmlSimulator, lablet: Lablet, text: str) -> None:
    await when(lambda: existing_lab(simulator, lablet.uid).description == text, f"the description {text!r}")


async def lend(world: World, lablet: Lablet, learner: str) -> None:
    note = {"vkprovider.io/username": learner, "vkprovider.io/lent-by": "warm"}
    await world.admin.patch(lablet.path, {"metadata": {"annotations": note, "labels": {"vkprovider.io/pool": None}}})
    await lablet.claim(lambda row: row.get("noted") == learner)


async def give_back(lablet: Lablet) -> None:
    await lablet.annotate(**{"desired-state": "COLLECTING"})
    await lablet.until(lambda pod: pod["metadata"]["labels"].get("vkprovider.io/pool"), "not back in its pool")
    await lablet.ready()


async def test_a_lablet_of_a_pool_shows_its_learner_as_long_as_it_has_one(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    lablet = await world.pod(await world.define(OSPF), worker, labels={"vkprovider.io/pool": "warm"})
    await lablet.ready()
    lab = existing_lab(simulator, lablet.uid)
    assert (lab.description, changes(simulator)) == (AUTHORS, 0)
    title = lab.title
    await lend(world, lablet, "alice")
    await is_described(simulator, lablet, f"{ALICE}\n\n{AUTHORS}")
    assert changes(simulator) == 1, "with the notes"
    assert lab.notes.startswith("vkprovider installation=")
    await give_back(lablet)
    assert existing_lab(simulator, lablet.uid) is not lab, "a wipe would bring back what was extracted of alice's work"
    await is_described(simulator, lablet, AUTHORS)
    again = existing_lab(simulator, lablet.uid)
    again.description = f"{AUTHORS}\r\nAsk me about area 1."  # somebody edits it
    await lend(world, lablet, "bob")
    await is_described(simulator, lablet, f"{BOB}\n\n{AUTHORS}\r\nAsk me about area 1.")
    assert (changes(simulator), again.title) == (2, title)
    assert existing_lab(simulator, lablet.uid) is again


async def test_no_log_goes_on_into_the_lab_of_the_next_learner(world: World) -> None:
    """The API server asked for the rights of who follows it when the request began; that was long ago."""
    running = await world.replica()
    worker = await world.worker((await world.simulator()).url)
    pool = {"vkprovider.io/pool": "warm"}
    lablet = await world.pod(await world.define(OSPF), worker, labels=pool, devices=["h0"], typed=True)
    await lablet.ready()
    await lend(world, lablet, "alice")
    target, follow = Target(lablet.namespace, lablet.name, lablet.uid, "h0"), LogOptions(follow=True)
    seen: list[str] = []

    async def read() -> None:
        seen.extend([line.text async for line in running.replica.devices.log(target, follow)])

    reading = asyncio.create_task(read())
    await when(lambda: running.replica.devices._followed, "alice follows")
    await give_back(lablet)
    await asyncio.wait_for(reading, 60)
    assert seen[-1] == "[the learner's time with it is over]"
    assert seen[0] == "h0: power on"


async def test_a_lablet_that_begins_with_a_learner_shows_it_without_a_request(world: World) -> None:
    """Also one of a topology that somebody saved of another learner's lab."""
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    note = {"vkprovider.io/username": "alice"}
    alice = await world.pod(await world.define(OSPF), worker, annotations=note)
    await alice.ready()
    lab = existing_lab(simulator, alice.uid)
    assert lab.description == f"{ALICE}\n\n{AUTHORS}"
    somebody = Somebody(simulator)
    saved = await somebody.download(lab)
    await somebody.labs.close()
    assert b"Learner: alice" in saved
    definition = await world.define(saved.decode())
    for notes, expected in (({"vkprovider.io/username": "bob"}, f"{BOB}\n\n{AUTHORS}"), ({}, AUTHORS)):
        lablet = await world.pod(definition, worker, annotations=notes)
        await lablet.ready()
        assert existing_lab(simulator, lablet.uid).description == expected
    assert changes(simulator) == 0


async def test_a_cml_that_refuses_the_description_holds_up_no_lablet(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker = await world.worker(simulator.url)
    lablet = await world.pod(await world.define(OSPF), worker, labels={"vkprovider.io/pool": "warm"})
    await lablet.ready()
    simulator.faults.add(Fault(kind="status", status=400, route="^PATCH .*/labs/", count=1), simulator.now())
    await lend(world, lablet, "alice")
    lab = existing_lab(simulator, lablet.uid)
    assert '"learner":"alice"' in lab.notes
    assert (lab.description, changes(simulator)) == (AUTHORS, 2)
    await lablet.ready()
    assert lablet.uid in await world.claims(worker)
