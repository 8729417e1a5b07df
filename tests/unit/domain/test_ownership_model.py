"""Up to seven replicas and fifty nodes in simulated time, with everything that may go wrong (R004-024 to R004-039)."""

import os
import random
from collections import Counter
from typing import Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.domain.membership_model import World

EXAMPLES = int(os.environ.get("OWNERSHIP_EXAMPLES", "40"))
"""A few thousand take minutes, and find what is rare."""
TROUBLE_S, CALM_S = 90.0, 60.0
Kind = Literal["crash", "restart", "pause", "cut", "join"]

troubles = st.lists(
    st.tuples(
        st.floats(5, TROUBLE_S),
        st.sampled_from(["crash", "restart", "pause", "cut", "join"]),
        st.integers(0, 6),
        st.floats(0.5, 40),
    ),
    max_size=8,
)


def play(
    seed: int, replicas: int, workers: int, lossy: float, late_s: float, story: list[tuple[float, Kind, int, float]]
) -> World:
    """Let things go wrong for a while, then let them be well for a while."""
    world = World(random.Random(seed), [f"w{number}" for number in range(workers)], lossy=lossy, late_s=late_s)
    for number in range(replicas):
        world.start(f"r{number}")
    for when, kind, which, seconds in story:
        world.at(when, lambda k=kind, w=which, s=seconds: strike(world, k, w, s))  # type: ignore[misc]
    world.run(TROUBLE_S)
    world.lossy, world.late_s = 0.0, 0.05
    for replica in world.replicas.values():
        replica.paused_until = replica.cut_until = 0.0 if replica.dead else min(replica.paused_until, world.now)
    world.run(TROUBLE_S + CALM_S)
    return world


def strike(world: World, kind: Kind, which: int, seconds: float) -> None:
    """Let one thing go wrong."""
    names = [name for name, replica in world.replicas.items() if not replica.dead]
    name = names[which % len(names)]
    replica = world.replicas[name]
    until = min(world.now + seconds, TROUBLE_S)
    match kind:
        case "crash" if len(names) > 1:
            replica.die()
        case "restart":
            replica.die()
            world.start(name)
        case "pause":
            replica.paused_until = until
        case "cut":
            replica.cut_until = until
        case "join" if len(world.replicas) < 7:
            world.start(f"r{len(world.replicas)}")


def check_acts(world: World) -> None:
    """Assert that in one epoch one process acted, and that nobody acted after one of a later epoch."""
    who: dict[tuple[str, int], str] = {}
    latest: dict[str, int] = {}
    for when, worker, epoch, process in sorted(world.acts):
        assert who.setdefault((worker, epoch), process) == process, f"two act for {worker} in epoch {epoch} at {when}"
        assert latest.setdefault(worker, epoch) <= epoch, f"{process} acts for {worker} at {when}, but was replaced"
        latest[worker] = epoch


def check_peace(world: World) -> None:
    """Assert that every node has an owner that lives and knows it, and that all have their share."""
    living = {name: replica for name, replica in world.replicas.items() if not replica.dead}
    held = {worker: found.spec.holder_identity for worker, found in world.server.nodes.items()}
    assert set(held) == set(world.workers)
    for worker, holder in held.items():
        assert holder in living, f"{worker} is {holder}'s"
        assert worker in living[holder].epochs, f"{holder} does not act for {worker}"
    loads = Counter(held.values())
    assert max(loads[name] for name in living) - min(loads[name] for name in living) <= 1
    assert set(world.server.members) == set(living)


@given(
    seed=st.integers(0, 2**32),
    replicas=st.integers(1, 7),
    workers=st.integers(0, 50),
    lossy=st.sampled_from([0.0, 0.02, 0.2]),
    late_s=st.sampled_from([0.05, 0.5, 2.5]),
    story=troubles,
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_never_two_owners_and_peace_in_the_end(
    seed: int, replicas: int, workers: int, lossy: float, late_s: float, story: list[tuple[float, Kind, int, float]]
) -> None:
    world = play(seed, replicas, workers, lossy, late_s, story)
    check_acts(world)
    check_peace(world)
