"""The periodic pass, and claims that someone deletes under their living owner."""

import asyncio
import json
from typing import Any

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, labs, rows_of, when
from tests.component.controllers.running import WITH_PASSES
from tests.component.controllers.test_sessions_flow import TOKEN, said
from tests.support.apiserver import CONFIG_MAPS
from tests.support.topologies import topology
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings

TAGGED = topology({"r1": "iosv", "h0": "alpine"}, {"r1": ["serial:4000"]})
PASSES = 3
"""How many passes are watched."""


async def test_claims_deleted_under_a_living_owner_are_written_again_by_themselves(world: World) -> None:
    await world.replica()
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(TAGGED)
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    before = await lablet.claim(lambda row: row.get("readyAt"))
    ports = await world.ports(worker)
    path = f"{CONFIG_MAPS}/{worker}-port-allocations"
    await world.admin.delete(path)
    found = await eventually(lambda: world.admin.get(path), "the claims")
    assert rows_of(found)[lablet.uid] == before
    assert await world.ports(worker) == ports
    await lablet.delete()
    await lablet.gone()
    assert labs(simulator) == {}


async def test_passes_over_calm_lablets_call_no_one_and_write_nothing(world: World) -> None:
    """R000-010, R000-022, R000-119: a warm one, one whose learner may log in, one whose learner works."""
    lds = await world.stack.enter_async_context(LdsSimulator(LdsSettings(token=TOKEN)))
    running = await world.replica(WITH_PASSES, LDS_API_URL=lds.url, LDS_API_TOKEN=TOKEN)
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(TAGGED)
    learners = [{}, {"vkprovider.io/username": "alice"}, {"vkprovider.io/username": "bob"}]
    lablets = [await world.pod(definition, worker, annotations=notes) for notes in learners]
    for lablet in lablets:
        await lablet.ready()
        await lablet.claim(lambda row: row.get("readyAt"))
    session = (await lablets[-1].claim(lambda row: row["session"].get("ready")))["session"]["id"]
    await running.replica.inbox.accept(said(lablets[-1], session, "started"))
    await lablets[-1].until(lambda pod: pod["metadata"]["annotations"]["vkprovider.io/state"] == "RUNNING")
    await lablets[-1].claim(lambda row: row["session"].get("started"))
    queue = running.replica.queues.lablets
    await when(lambda: not queue.depth, "nothing is under way")
    since_s, turns = asyncio.get_running_loop().time(), queue.runs_total
    entries, calls = len(simulator.log.entries), len(lds.log.entries)
    await when(lambda: queue.runs_total >= turns + PASSES * len(lablets), "every lablet was looked at again")
    assert queue.runs_total - turns <= (PASSES + 1) * len(lablets) * 2
    asked = [each for each in running.api.matching("^[A-Z]+ ") if each.began_s > since_s and "watch" not in each.params]
    own = {"leases", "events", "certificatesigningrequests"}  # of the replica, not of its lablets
    assert [each for each in asked if not own & set(each.path.split("/"))] == []
    assert [entry.path for entry in list(lds.log.entries)[calls:] if entry.path.startswith("/api/v1/sessions/")] == []
    assert [entry for entry in list(simulator.log.entries)[entries:] if entry.method != "GET"] == []


async def test_ports_of_rows_of_other_owners_are_not_allocatable(world: World) -> None:
    await world.replica()
    worker, definition = await world.worker(portRange={"start": 2000, "end": 2009}), await world.define()
    lablet = await world.pod(definition, worker)
    await lablet.ready()
    path = f"{CONFIG_MAPS}/{worker}-port-allocations"
    found = await world.admin.get(path)
    assert found is not None
    document = json.loads(found["data"]["allocations.json"])
    static: dict[str, Any] = {"namespace": "app", "service": "api", "protocol": "TCP", "source": "static"}
    rows = [static | {"portName": f"p{port}", "port": port} for port in (2003, 2004, 9000)]
    document["portClaims"] += rows
    await world.admin.patch(path, {"data": {"allocations.json": json.dumps(document)}})
    await (await world.pod(definition, worker)).ready()  # its row conflicts with the edit, and what is there is read
    node = await world.node(worker, lambda node: node["status"]["allocatable"]["vkprovider.io/ports"] == "8")
    assert node["status"]["capacity"]["vkprovider.io/ports"] == "10"
    kept = json.loads((await world.admin.get(path) or {})["data"]["allocations.json"])["portClaims"]
    assert kept == rows
