"""Pods have generations from Kubernetes 1.33 on, `status.observedGeneration` from 1.34 on: `make matrix` runs both."""

from tests.component.controllers.harness import World
from tests.component.controllers.looking import when
from tests.component.controllers.running import WITH_PASSES


async def test_an_idle_lablet_is_never_written(world: World) -> None:
    """The provider writes no status again because the API server drops a field of it."""
    version = (await world.admin.until("/version", bool))["minor"]
    running = await world.replica(WITH_PASSES)
    lablet = await world.pod(await world.define(), await world.worker())
    pod = await lablet.ready()
    generation = 1 if int(version) >= 34 else None
    assert pod["status"].get("observedGeneration") == generation
    counters, queue = running.replica.counters, running.replica.queues.lablets
    await lablet.claim(lambda row: row.get("readyAt"))
    await when(lambda: counters.status_writes and not queue.depth, "nothing is under way")
    written, turns = counters.status_writes, queue.runs_total
    await when(lambda: queue.runs_total >= turns + 3, "passes look at the lablet")
    assert counters.status_writes == written
