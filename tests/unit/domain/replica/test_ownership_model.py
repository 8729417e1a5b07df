"""Up to five real replicas and a dozen Nodes in virtual time, with everything that may go wrong (R004-024 to R004-039).

`OWNERSHIP_EXAMPLES=2000` takes an hour or so, and finds what is rare.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Literal

import looptime
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.domain.replica.apistore import MEMBERS, NODE_LEASES, now_s
from tests.unit.domain.replica.replicaworld import World
from vkprovider.runtime.members import MEMBER_PREFIX

EXAMPLES = int(os.environ.get("OWNERSHIP_EXAMPLES", "12"))
TROUBLE_S, CALM_S = 60.0, 60.0
Kind = Literal["crash", "restart", "stop", "cut", "join"]
Story = list[tuple[float, Kind, int, float]]

troubles = st.lists(
    st.tuples(
        st.floats(5, TROUBLE_S),
        st.sampled_from(["crash", "restart", "stop", "cut", "join"]),
        st.integers(0, 4),
        st.floats(0.5, 40),
    ),
    max_size=8,
)


def run(work: Coroutine[Any, Any, World]) -> World:
    """Run in virtual time."""
    loop = looptime.new_event_loop(noop_cycles=0)
    try:
        with structlog.testing.capture_logs():
            return loop.run_until_complete(work)
    finally:
        loop.close()


async def play(
    seed: int,
    replicas: int,
    workers: int,
    story: Story,
    *,
    lossy: float = 0.0,
    late_s: float = 0.05,
    watches_late_s: float = 0.0,
) -> World:
    """Let things go wrong for a while, then let them be well for a while."""
    world = World(random.Random(seed), [f"w{number}" for number in range(workers)], lossy, late_s, watches_late_s)
    for number in range(replicas):
        world.start(f"r{number}")
    sampling = asyncio.ensure_future(world.watch_guards())
    for when, kind, which, seconds in sorted(story):
        await asyncio.sleep(max(0.0, when - now_s()))
        strike(world, kind, which, seconds)
    await asyncio.sleep(TROUBLE_S - now_s())
    world.lossy, world.late_s, world.watches_late_s = 0.0, 0.05, 0.0
    await asyncio.sleep(CALM_S)
    check_peace(world)
    sampling.cancel()
    for replica in world.replicas.values():
        replica.die()
    await asyncio.sleep(1)
    return world


def strike(world: World, kind: Kind, which: int, seconds: float) -> None:
    """Let one thing go wrong."""
    names = [name for name, replica in world.replicas.items() if not replica.process.dead]
    name = names[which % len(names)]
    replica = world.replicas[name]
    until = min(now_s() + seconds, TROUBLE_S)
    match kind:
        case "crash" if len(names) > 1:
            replica.die()
        case "restart":
            replica.die()
            world.start(name)
        case "stop":
            replica.process.stopped_until = until
        case "cut":
            replica.process.cut_until = until
        case "join" if len(world.replicas) < 5:
            world.start(f"r{len(world.replicas)}")
        case _:
            pass


def check_acts(world: World) -> None:
    """Assert that in one epoch one process acted, and none after one of a later epoch."""
    who: dict[tuple[str, int], str] = {}
    latest: dict[str, int] = {}
    for when, worker, epoch, process in sorted(world.acts):
        assert who.setdefault((worker, epoch), process) == process, f"two act for {worker} in epoch {epoch} at {when}"
        assert latest.setdefault(worker, epoch) <= epoch, f"{process} acts for {worker} at {when}, but was replaced"
        latest[worker] = epoch
    assert not world.doubles


def check_records(world: World) -> None:
    """Assert that no write of a former owner was accepted after one of its successor."""
    latest: dict[str, int] = {}
    for when, worker, epoch, process in world.server.records:
        assert latest.setdefault(worker, epoch) <= epoch, f"a late write of {process} for {worker} counted at {when}"
        latest[worker] = epoch


def check_peace(world: World) -> None:
    """Assert that every Node has a living owner that knows it, and that all have their share."""
    living = {name: replica for name, replica in world.replicas.items() if not replica.process.dead}
    found = world.server.objects
    held = {worker: found[f"{NODE_LEASES}/vnode.{worker}"]["spec"]["holderIdentity"] for worker in world.workers}
    for worker, holder in held.items():
        assert holder in living, f"{worker} is {holder}'s"
        assert worker in living[holder].ownership.epochs, f"{holder} does not act for {worker}"
    loads = Counter(held.values())
    assert max(loads[name] for name in living) - min(loads[name] for name in living) <= 1
    members = {path.rpartition(MEMBER_PREFIX)[2] for path in found if path.startswith(MEMBERS)}
    assert members == set(living)


@given(
    seed=st.integers(0, 2**32),
    replicas=st.integers(1, 4),
    workers=st.integers(0, 12),
    lossy=st.sampled_from([0.0, 0.02, 0.2]),
    late_s=st.sampled_from([0.05, 0.5, 2.5]),
    watches_late_s=st.sampled_from([0.0, 0.0, 3.0]),
    story=troubles,
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_never_two_owners_and_peace_in_the_end(
    seed: int, replicas: int, workers: int, lossy: float, late_s: float, watches_late_s: float, story: Story
) -> None:
    world = run(play(seed, replicas, workers, story, lossy=lossy, late_s=late_s, watches_late_s=watches_late_s))
    check_acts(world)
    check_records(world)


def test_a_write_sent_before_the_fence_that_arrives_after_the_takeover_is_refused() -> None:
    """One of two owners is cut off and stopped with writes under way; the other takes over meanwhile."""
    world = run(play(7, 2, 6, [(20.0, "cut", 0, 30.0), (20.5, "stop", 0, 25.0)]))
    check_acts(world)
    check_records(world)
    owners = {(worker, process) for _, worker, _, process in world.acts}
    assert len(owners) > 6, "nothing was taken over"
    assert world.server.refused, "no write arrived late"


def test_a_replica_that_wakes_up_after_its_membership_was_ended_acts_for_no_node_of_its_successor() -> None:
    """Its watch is late: it learns from the refusal of its renewal."""
    world = run(play(3, 2, 6, [(20.0, "stop", 0, 30.0)], watches_late_s=3.0))
    check_acts(world)
    takers = {process for when, _, _, process in world.acts if 40 < when < 49}
    assert takers == {"host2-1-abcd"}
