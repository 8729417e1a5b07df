"""Stories: what goes wrong among some replicas for a minute, after which all is well; and what must be true then.

A story and its seed say everything: it takes the same course every time.
"""

import asyncio
import random
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, get_args

import structlog

from tests.support import virtualtime
from tests.support.virtualtime import now_s
from tests.unit.platform.leases.apistore import MEMBERS, NODE_LEASES
from tests.unit.platform.leases.replicaworld import SAMPLE_S, World
from vkprovider.platform.runtime.members import MEMBER_PREFIX

TROUBLE_S: Final = 60.0
CALM_S: Final = 43.0
OWNED_S: Final = 20.0
"""How soon after the troubles every Node has an owner that acts."""
EVEN_S: Final = 40.0
"""How soon the shares are even."""
MOVE_S: Final = 1.0
"""How long a Node that is handed over may have no owner, at any time."""
REPLICAS_MAX: Final = 5
Kind = Literal["crash", "restart", "stop", "cut", "join"]


class Trouble(NamedTuple):
    """One thing that goes wrong.

    Attributes:
        at: When, in seconds.
        which: The replica, among the living ones.
        for_s: How long a stop or a cut lasts.
    """

    at: float
    kind: Kind
    which: int
    for_s: float


@dataclass(frozen=True)
class Story:
    """What is there, and what goes wrong.

    Attributes:
        lossy: How likely a request or an answer is lost.
        late_s: How long a message takes at most.
        watches_late_s: How much longer the lines of watches take.
    """

    seed: int
    replicas: int
    workers: int
    troubles: tuple[Trouble, ...]
    lossy: float = 0.0
    late_s: float = 0.05
    watches_late_s: float = 0.0


def wild(seed: int) -> Story:
    """Return a random story with many troubles."""
    rand = random.Random(f"story {seed}")
    troubles = [
        Trouble(rand.uniform(5, TROUBLE_S), rand.choice(get_args(Kind)), rand.randrange(5), rand.uniform(0.5, 40))
        for _ in range(rand.randint(4, 8))
    ]
    return Story(
        seed,
        rand.randint(2, 4),
        rand.randint(3, 12),
        tuple(sorted(troubles)),
        lossy=rand.choice([0.0, 0.02, 0.2]),
        late_s=rand.choice([0.05, 0.5, 2.5]),
        watches_late_s=rand.choice([0.0, 0.0, 3.0]),
    )


def played(story: Story, *, calm_s: float = CALM_S) -> World:
    """Return the world after a story."""
    with structlog.testing.capture_logs() as logs:
        world = virtualtime.run(_play(story, calm_s))
    bugs = [entry for entry in logs if entry.get("exc_info")]
    assert not bugs, bugs[0]
    return world


async def _play(story: Story, calm_s: float) -> World:
    """Let things go wrong for a while, then let them be well for a while."""
    names = [f"w{number}" for number in range(story.workers)]
    world = World(story.seed, names, story.lossy, story.late_s, story.watches_late_s)
    for number in range(story.replicas):
        world.start(f"r{number}")
    watching = asyncio.ensure_future(world.watch())
    for trouble in sorted(story.troubles):
        await asyncio.sleep(max(0.0, trouble.at - now_s()))
        _strike(world, trouble)
    await asyncio.sleep(TROUBLE_S - now_s())
    world.lossy, world.late_s, world.watches_late_s = 0.0, 0.05, 0.0
    await asyncio.sleep(calm_s)
    watching.cancel()
    world.faults += _faults(world)
    for replica in world.replicas.values():
        replica.process.kill()
    await asyncio.sleep(1)
    return world


def _strike(world: World, trouble: Trouble) -> None:
    """Let one thing go wrong."""
    names = list(world.living)
    name = names[trouble.which % len(names)]
    replica, until = world.replicas[name], min(now_s() + trouble.for_s, TROUBLE_S)
    match trouble.kind:
        case "crash" if len(names) > 1:
            replica.process.kill()
        case "restart":
            replica.process.kill()
            world.start(name)
        case "stop":
            replica.process.stopped_until = until
        case "cut":
            replica.line.cut_until = until
        case "join" if len(world.replicas) < REPLICAS_MAX:
            world.start(f"r{len(world.replicas)}")
        case _:
            pass


# ------------------------------------------------------------------------------------------------ what must be true


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


class Peace(NamedTuple):
    """How long after the troubles it took.

    Attributes:
        owned_s: Until every Node had an owner that acts, but for moments of a handover.
        even_s: Until the shares were even.
    """

    owned_s: float
    even_s: float


def peace(world: World) -> Peace:
    """Return how soon there was peace."""
    owned_at = 0.0
    for moments in world.bare.values():
        begun = before = moments[0]
        for at in moments:
            if at - before > 1.5 * SAMPLE_S:
                begun = at
            if at - begun >= MOVE_S:
                owned_at = max(owned_at, at)
            before = at
    return Peace(max(0.0, owned_at - TROUBLE_S), max(0.0, world.uneven_at - TROUBLE_S))


def check_peace(world: World) -> None:
    """Assert that peace came in time, and that the Leases said the same as the replicas in the end."""
    took = peace(world)
    assert took.owned_s <= OWNED_S, f"a Node had no owner {took.owned_s:.1f} s after the troubles"
    assert took.even_s <= EVEN_S, f"the shares were uneven {took.even_s:.1f} s after the troubles"
    assert not world.faults, world.faults


def _faults(world: World) -> list[str]:
    """Return where the Leases say something else than the replicas."""
    found, living = world.server.objects, world.living
    faults = []
    for worker in world.workers:
        lease = found.get(f"{NODE_LEASES}/vnode.{worker}")
        holder = living.get(lease["spec"]["holderIdentity"]) if lease is not None else None
        if holder is None or worker not in holder.held():
            faults.append(f"{worker}: {lease}")
    members = {path.rpartition(MEMBER_PREFIX)[2] for path in found if path.startswith(MEMBERS)}
    return faults if members == set(living) else [*faults, f"{members} are members, {set(living)} live"]
