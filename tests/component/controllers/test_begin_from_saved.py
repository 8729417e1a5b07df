"""A user lab that begins from what its user has saved: the devices are configured so, for this user and nobody else."""

import aiohttp
import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.running import MORTAL
from tests.component.controllers.test_archives_page import Caller, account, now_s, store
from tests.support.topologies import topology
from vkprovider.lablet.names import LABEL_PORTAL
from vkpsim.http.faults import Fault

USER, OTHER = "oidc:alice", "oidc:ben"
SAVED = {"r1": "hostname saved-$(SEAT)", "old": "hostname gone"}


@pytest.fixture
async def marked(world: World) -> World:
    """The world's namespace is that of a user lab."""
    path = f"/api/v1/namespaces/{world.namespace}"
    await world.admin.patch(path, {"metadata": {"labels": {LABEL_PORTAL: "vkprovider-system"}}})
    return world


def notes(owner: str, id_: str = "") -> dict[str, str]:
    found = {"vkprovider.io/owner": owner, "vkprovider.io/username": owner.partition(":")[2]}
    return found | ({"vkprovider.io/begin-from": id_} if id_ else {})


async def test_devices_begin_with_what_was_saved(marked: World) -> None:
    running = await marked.replica()
    simulator = await marked.simulator()
    worker, definition = await marked.worker(simulator.url), await marked.define(topology({"r1": "iosv", "r2": "iosv"}))
    id_ = await store(marked, "nublado-gone", 1, owner=USER, username="alice", at=now_s(), configs=SAVED)
    lablet = await marked.pod(definition, worker, annotations=notes(USER, id_))
    await lablet.ready()
    [lab] = simulator.simulation.world.labs.values()
    found = {node.label: node.configuration[0].content for node in lab.nodes.values()}
    assert found["r1"] == SAVED["r1"], "nothing of it is filled in"
    assert "saved" not in found["r2"]
    assert (await lablet.claim())["beginFrom"] == id_
    said = await marked.until_event("ImportWarned", lablet.name)
    assert "saved, and not in this version of the lab: old" in said["message"]

    await lablet.delete()
    await lablet.gone()
    left = await eventually(lambda: running.replica.archive.find(lablet.uid), "it is saved as it ends")
    assert left is not None
    assert (left.owner, left.configs["r1"]) == (USER, SAVED["r1"])
    again = await marked.pod(definition, worker, annotations=notes(USER, lablet.uid))
    await again.ready()


async def test_another_replica_imports_what_the_claim_says(marked: World) -> None:
    """The work is chosen with the claim: who changes the annotation later changes nothing."""
    first = await marked.replica()
    simulator = await marked.simulator()
    worker, definition = await marked.worker(simulator.url), await marked.define(topology({"r1": "iosv"}))
    id_ = await store(marked, "nublado-gone", 1, owner=USER, username="alice", at=now_s(), configs=SAVED)
    simulator.faults.add(Fault(kind="status", status=503, route="^POST .*/import"), simulator.now())
    lablet = await marked.pod(definition, worker, annotations=notes(USER, id_))
    await lablet.claim(lambda row: row.get("beginFrom") == id_)
    await first.close()
    await lablet.annotate(begin_from=None)
    simulator.faults.clear()
    await marked.replica()
    await lablet.ready()
    [lab] = simulator.simulation.world.labs.values()
    assert [node.configuration[0].content for node in lab.nodes.values()] == [SAVED["r1"]]


@pytest.mark.parametrize("owner", [OTHER, ""])
async def test_nobody_else_begins_from_it(marked: World, owner: str) -> None:
    await marked.replica()
    simulator = await marked.simulator()
    worker, definition = await marked.worker(simulator.url), await marked.define(topology({"r1": "iosv"}))
    id_ = await store(marked, "nublado-gone", 1, owner=USER, username="alice", at=now_s(), configs=SAVED)
    lablet = await marked.pod(definition, worker, annotations=notes(owner, id_))
    waits = await lablet.waits("CreateContainerConfigError")
    assert "is not kept for its user any more" in waits["message"]
    assert not simulator.simulation.world.labs


async def test_outside_a_portals_namespace_an_owner_is_a_word(world: World) -> None:
    """Who makes Pods writes any annotation: it neither reads another's work nor slips work under another's."""
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(topology({"r1": "iosv"}))
    id_ = await store(world, "nublado-gone", 1, owner=USER, username="alice", at=now_s(), configs=SAVED)
    thief = await world.pod(definition, worker, annotations=notes(USER, id_))
    await thief.waits("CreateContainerConfigError")
    giver = await world.pod(definition, worker, annotations=notes(USER))
    await giver.ready()
    await giver.delete()
    left = await eventually(lambda: running.replica.archive.find(giver.uid), "it is kept")
    assert left is not None
    assert (left.username, left.owner) == ("alice", "")


async def test_the_page_gives_each_their_own(world: World) -> None:
    running = await world.replica()
    mine = f"system:serviceaccount:{world.namespace}:alice"
    hidden = {"grader": "secret"}
    id_ = await store(
        world, "nublado-gone", 1, owner=mine, username="alice", at=now_s(), configs=SAVED | hidden, hidden=("grader",)
    )
    of_unknown = {"owner": mine, "username": "alice", "at": now_s(), "configs": SAVED, "hidden": None}
    unknown = await store(world, "nublado-gone", 4, **of_unknown)
    await store(world, "nublado-ben", 2, owner=OTHER, username="ben", at=now_s(), configs=SAVED)
    await store(world, world.namespace, 3, username="alice", at=now_s(), configs=SAVED)
    alice, ben = await account(world, "alice", may=False), await account(world, "ben", may=False)
    async with running.page() as url, aiohttp.ClientSession() as http:
        owner, other, nobody = (Caller(url, token, http) for token in (alice, ben, ""))
        entries = {entry["id"]: entry.get("devices") for entry in (await owner.get("/archives"))["items"]}
        assert entries == {id_: ["old", "r1"], unknown: None}
        assert "configs" not in await owner.get(f"/archives/{unknown}"), "it may have hidden devices"
        assert (await owner.get(f"/archives/{id_}"))["configs"] == SAVED
        assert (await other.get("/archives"))["items"] == []
        await other.get(f"/archives/{id_}", 404)
        await owner.get("/archives/00000003-0000-4000-8000-000000000000", 404)
        await owner.get("/namespaces/nublado-gone/archives", 403)
        await nobody.get("/archives", 401)
        await nobody.get(f"/archives/{id_}", 401)


async def test_work_is_saved_though_the_owner_died_before_it_wrote_that_the_lab_was_ready(marked: World) -> None:
    """The claim says so a little later than the Pod, and the next owner sees a Pod that is being deleted already."""
    first = await marked.replica(MORTAL)
    simulator = await marked.simulator()
    worker, definition = await marked.worker(simulator.url), await marked.define(topology({"r1": "iosv"}))
    lablet = await marked.pod(definition, worker, annotations=notes(USER))
    await lablet.ready()
    await first.crash()
    assert not (await lablet.claim(lambda row: row.get("labId"))).get("readyAt")
    await lablet.delete()
    again = await marked.replica(MORTAL)
    await lablet.gone()
    left = await again.replica.archive.find(lablet.uid)
    assert left is not None
    assert (left.owner, list(left.configs)) == (USER, ["r1"])
