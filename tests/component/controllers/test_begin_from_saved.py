"""A lab that begins from what its user or learner has saved: its devices are configured so, for nobody else."""

import aiohttp
import pytest

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually
from tests.component.controllers.running import MORTAL
from tests.component.controllers.test_archives_page import Caller, account, now_s, store
from tests.support.topologies import topology
from vkprovider.lablet.names import LABEL_PORTAL, link_account
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


async def test_a_class_goes_on_where_it_stopped(world: World) -> None:
    """A learner's lablet is reset to what the learner left in another one; the pool's next learner has none of it."""
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(topology({"r1": "iosv"}))
    uid = await store(world, world.namespace, 1, username="alice", at=(at := now_s() + 10), configs=SAVED)
    lent = {"vkprovider.io/lent-by": "warm", "vkprovider.io/username": "alice"}
    lablet = await world.pod(definition, worker, annotations=lent)
    await lablet.ready()
    await lablet.annotate(begin_from=f"{uid}-{at}", reset="saved")
    first = await lablet.claim(lambda row: row.get("beginFrom") and row.get("readyAt") and not row.get("reimports"))

    def texts() -> list[str]:
        return [node.configuration[0].content for lab in labs.values() for node in lab.nodes.values()]

    labs = simulator.simulation.world.labs
    assert texts() == [SAVED["r1"]]
    assert (first["learner"], list(labs)) == ("alice", [first["labId"]])

    await lablet.annotate(reset="plain")
    again = await lablet.claim(lambda row: row.get("reset") == "plain" and row.get("readyAt"))
    assert (again["labId"] != first["labId"], texts()) == (True, [SAVED["r1"]]), (
        "begun from the same, not from later work"
    )
    left = await running.replica.archive.find(lablet.uid)
    assert left is not None
    assert left.username == "alice"

    await lablet.annotate(desired_state="COLLECTING")
    back = await lablet.until(lambda pod: pod["metadata"]["labels"].get("vkprovider.io/pool") == "warm")
    assert "vkprovider.io/begin-from" not in back["metadata"]["annotations"]
    assert "saved" not in texts()[0]


async def test_work_of_this_pod_is_spared_while_the_lab_begins_from_it(world: World) -> None:
    """The same learner has the same Pod again, whose configurations are kept before the wipe."""
    running = await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(topology({"r1": "iosv"}))
    lablet = await world.pod(definition, worker, annotations={"vkprovider.io/username": "alice"})
    await lablet.ready()
    [lab] = simulator.simulation.world.labs.values()
    [node] = lab.nodes.values()
    node.configuration[0].content = "hostname first"
    await lablet.annotate(desired_state="STOPPED")
    first = await eventually(lambda: running.replica.archive.find(lablet.uid), "it is kept")
    assert first is not None
    world.ahead_s += 60
    await lablet.annotate(begin_from=f"{lablet.uid}-{first.at}", reset="saved", desired_state=None)
    await lablet.claim(lambda row: row.get("beginFrom") and row.get("readyAt") and not row.get("reimports"))
    [lab] = simulator.simulation.world.labs.values()
    assert [node.configuration[0].content for node in lab.nodes.values()] == [first.configs["r1"]]


@pytest.mark.parametrize(
    ("username", "place", "early"), [("ben", "", 0), ("alice", "-b", 0), ("alice", "", 3600)], ids=str
)
async def test_no_learner_begins_from_work_of_another_or_of_elsewhere(
    world: World, username: str, place: str, early: int
) -> None:
    """Nor from what was left in an earlier namespace of the same name."""
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(topology({"r1": "iosv"}))
    at = now_s() + 10 - early
    uid = await store(world, world.namespace + place, 1, username=username, at=at, configs=SAVED)
    learner = {"vkprovider.io/username": "alice", "vkprovider.io/begin-from": f"{uid}-{at}"}
    waits = await (await world.pod(definition, worker, annotations=learner)).waits("CreateContainerConfigError")
    assert "is not kept for its user any more" in waits["message"]
    assert not simulator.simulation.world.labs


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
    teacher, link = await account(world, "desk", may=True), await account(world, link_account("alice"), may=False)
    async with running.page() as url, aiohttp.ClientSession() as http:
        owner, nobody = Caller(url, alice, http), Caller(url, "", http)
        entries = {entry["id"]: entry.get("devices") for entry in (await owner.get("/archives"))["items"]}
        assert entries == {id_: ["old", "r1"], unknown: None}
        assert "configs" not in await owner.get(f"/archives/{unknown}"), "it may have hidden devices"
        assert (await owner.get(f"/archives/{id_}"))["configs"] == SAVED
        for other in (Caller(url, token, http) for token in (ben, teacher, link)):
            assert (await other.get("/archives"))["items"] == [], "another learner, another class, a link of hers"
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
