"""A warm pool takes up new content of its definition by itself, chosen by the periodic pass (R001-023)."""

from typing import Any

from tests.component.controllers.harness import World
from tests.component.controllers.looking import eventually, is_ready, labs
from tests.component.controllers.podhandle import Lablet
from tests.component.controllers.running import MORTAL, WITH_PASSES
from tests.support.topologies import topology

OLD = topology({"r1": "iosv", "r2": "iosv"}, {"r1": ["serial:4000"]})
NEW = topology({"r1": "iosv", "r2": "iosv"}, {"r2": ["serial:4000"]})
LARGER = topology({"r1": "iosv", "r2": "iosv", "r3": "iosv"}, {"r2": ["serial:4000"]})
POOL = {"vkprovider.io/pool": "warm"}


def content(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["annotations"].get("vkprovider.io/content", "")).partition("@")[0]


async def warm(world: World, definition: str, worker: str, **more: Any) -> Lablet:
    lablet = await world.pod(definition, worker, labels=POOL, **more)
    await lablet.ready()
    await lablet.claim(lambda row: row.get("readyAt"))
    return lablet


async def renewed(world: World, pool: list[Lablet], version: str) -> int:
    """Wait until a whole pool is Ready with a version; return how many were seen not Ready at once, at most."""
    most = 0
    uids = {lablet.uid for lablet in pool}

    async def look() -> bool:
        nonlocal most
        found = await world.admin.items(f"/api/v1/namespaces/{world.namespace}/pods")
        pods = [pod for pod in found if pod["metadata"]["uid"] in uids]
        most = max(most, sum(not is_ready(pod) for pod in pods))
        return all(is_ready(pod) and content(pod) == version for pod in pods)

    await eventually(look, f"the pool runs {version}")
    return most


async def test_pool_takes_up_new_content_one_lablet_at_a_time_and_never_an_assigned_one(world: World) -> None:
    for _ in range(2):
        await world.replica(WITH_PASSES)
    simulators = [await world.simulator() for _ in range(2)]
    first, second = [await world.worker(simulator.url) for simulator in simulators]
    definition = await world.define(OLD, version="1.0.0")
    pool = [await warm(world, definition, worker) for worker in (first, second, first)]
    pinned = await warm(world, definition, second, version="1.0.0")
    lent = await warm(world, definition, first)
    note = {"vkprovider.io/username": "alice", "vkprovider.io/lent-by": "warm"}
    await world.admin.patch(lent.path, {"metadata": {"annotations": note, "labels": {"vkprovider.io/pool": None}}})
    await lent.claim(lambda row: row.get("learner") == "alice")
    before = {lablet.uid: (await lablet.ready())["metadata"]["annotations"] for lablet in (pinned, lent)}
    await world.change_definition(definition, version="1.1.0", source={"inline": NEW})
    assert await renewed(world, pool, "1.1.0") == 1
    for lablet in (pinned, lent):
        after = (await lablet.ready())["metadata"]["annotations"]
        for word in ("content", "lab-id", "port-mappings"):
            assert after[f"vkprovider.io/{word}"] == before[lablet.uid][f"vkprovider.io/{word}"]
    for lablet in pool:
        row = await lablet.claim(lambda row: row["version"] == "1.1.0" and row.get("readyAt"))
        assert not row.get("renews")
        ports = (await world.ports(lablet.worker))[lablet.name]
        assert set(ports) == {"r2_serial"}
        assert len(await world.events("RenewingContent", lablet.name)) == 1
    assert sum(len(labs(simulator)) for simulator in simulators) == 5


async def test_new_content_that_does_not_boot_costs_a_pool_one_lablet(world: World) -> None:
    await world.replica(WITH_PASSES, LAB_START_TIMEOUT="600")
    simulator = await world.simulator()
    worker, definition = await world.worker(simulator.url), await world.define(OLD, version="1.0.0")
    pool = [await warm(world, definition, worker) for _ in range(2)]
    simulator.simulation.world.set_quota(simulator.now(), 2)
    await world.change_definition(definition, version="1.1.0", source={"inline": NEW})

    async def stuck() -> list[str]:
        pods = [await world.admin.get(lablet.path) or {} for lablet in pool]
        return [content(pod) for pod in pods if "LabQueued" in str(pod["status"])]

    assert await eventually(stuck, "one lablet waits") == ["1.1.0"]
    assert sum([len(await world.events("RenewingContent", lablet.name)) for lablet in pool]) == 1
    simulator.simulation.world.set_quota(simulator.now(), 20)
    assert await renewed(world, pool, "1.1.0") == 1


async def test_pod_that_was_charged_too_little_keeps_its_lab(world: World) -> None:
    await world.replica(WITH_PASSES)
    worker, definition = await world.worker(), await world.define(OLD, version="1.0.0")
    lablet, other = await warm(world, definition, worker), await world.define(OLD, version="1.0.0")
    await world.change_definition(definition, version="2.0.0", source={"inline": LARGER})
    witness = await warm(world, other, worker)
    await world.change_definition(other, version="1.1.0", source={"inline": NEW})
    await renewed(world, [witness], "1.1.0")
    await world.until_event("RenewingContent", witness.name)
    assert content(await lablet.ready()) == "1.0.0"
    assert await world.events("RenewingContent", lablet.name) == []


async def test_replica_that_crashes_while_a_lab_is_replaced_is_followed_by_one_that_goes_on(world: World) -> None:
    first = await world.replica({**MORTAL, **WITH_PASSES})
    simulator = await world.simulator(stop_seconds=7.0)
    worker, definition = await world.worker(simulator.url), await world.define(OLD, version="1.0.0")
    lablet = await warm(world, definition, worker)
    await world.change_definition(definition, version="1.1.0", source={"inline": NEW})
    await lablet.waits("RenewingContent")
    await lablet.claim(lambda row: row.get("renews"))
    await first.crash()
    await world.replica(MORTAL)
    await renewed(world, [lablet], "1.1.0")
    assert len(labs(simulator)) == 1
