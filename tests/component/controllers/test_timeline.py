"""The timeline of a Pod, as whoever looks for where time goes reads it."""

from pathlib import Path

from tests.component.controllers.harness import World
from vkprovider.controllers import timeline

UP = [
    timeline.SEEN,
    timeline.TURN_BEGUN,
    "CLAIM",
    timeline.CLAIM_STORED,
    "IMPORT",
    "START",
    timeline.READY_DECIDED,
    timeline.STATUS_SENT,
    timeline.STATUS_ANSWERED,
]
DOWN = [timeline.DELETION_SEEN, "DELETE_LAB", timeline.DELETE_SENT, "DELETE_POD"]
GONE = [timeline.DELETE_SENT, timeline.REMOVAL_SEEN]
"""The watch may show that a Pod is gone before the answer to its deletion is there."""


async def test_stages_of_a_pod_are_written_in_their_order(world: World, tmp_path: Path) -> None:
    path = tmp_path / "timeline"
    running = await world.replica(VKPROVIDER_TIMELINE_FILE=str(path))
    lablet = await world.pod(await world.define(), await world.worker())
    await lablet.ready()
    await lablet.delete()
    await lablet.gone()
    await running.stop()
    running.replica.counters.timeline.close()
    lines = [line.split(" ", 2) for line in path.read_text().splitlines()]
    times = [float(unix_s) for unix_s, _, _ in lines]
    assert times == sorted(times)
    stages = [stage for _, uid, stage in lines if uid == lablet.uid]
    for wanted in UP, DOWN, GONE:
        rest = iter(stages)  # a status may be sent before the claim is stored, too
        assert all(stage in rest for stage in wanted), stages
