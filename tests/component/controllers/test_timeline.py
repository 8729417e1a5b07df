"""The timeline of a Pod, as whoever looks for where time goes reads it."""

from pathlib import Path

from tests.component.controllers.harness import World
from tests.component.controllers.looking import when
from vkprovider.labs.controllers import counters


async def test_a_pod_is_followed_from_its_arrival_to_its_removal(world: World, tmp_path: Path) -> None:
    path = tmp_path / "timeline"
    running = await world.replica(VKPROVIDER_TIMELINE_FILE=str(path))
    lablet = await world.pod(await world.define(), await world.worker())
    await lablet.ready()
    await lablet.delete()
    await lablet.gone()
    index = running.replica.index  # what the API server has told the test, it may not have told the replica
    await when(lambda: lablet.uid not in index.items, "the replica has seen the removal")
    await running.stop()
    running.replica.counters.timeline.close()
    lines = [line.split(" ", 2) for line in path.read_text().splitlines()]
    times = [float(unix_s) for unix_s, _, _ in lines]
    assert times == sorted(times)
    stages = [stage for _, uid, stage in lines if uid == lablet.uid]
    assert stages[0] == counters.SEEN
    assert {"IMPORT", counters.READY_DECIDED, counters.DELETION_SEEN, counters.REMOVAL_SEEN} < set(stages)
