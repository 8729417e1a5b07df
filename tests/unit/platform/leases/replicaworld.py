"""Real replicas in virtual time: `Membership`, `Ownership`, their informers and a queue, and an API server in memory.

The API server keeps objects with resourceVersion and UID, refuses what a precondition forbids, and sends watches in
order. Between it and a replica requests and answers take time, get lost, or are held up and arrive late, also when the
replica that sent them has been fenced, or has ended. A replica may be stopped like a process (SIGSTOP) between any two
steps of its tasks. Each has a monotonic clock that is a little fast or slow, and a wall clock that is up to a day off.

All chance comes from the seed of the world: the same world takes the same steps every time.
"""

import asyncio
import bisect
import contextlib
import hashlib
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from tests.support.virtualtime import Process, now_s
from tests.unit.machines import DAY_S
from tests.unit.platform.leases.apistore import Server
from vkprovider.labs.controllers.worker.node_writer import NODES
from vkprovider.platform.errors import Fenced, OutsideError, Unavailable
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.kube.http.credentials import ClusterAccess
from vkprovider.platform.kube.queue import DONE, KeyedQueue, Result
from vkprovider.platform.leases import Duty
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.ownership import Ownership
from vkprovider.platform.settings import KubeSettings, ReplicaSettings

ACT_S: Final = 1.5
"""How often a replica acts for each of its Nodes."""
PROBE_S: Final = 5.0
"""How often the reconciler of workers looks at one that this replica owns."""
REST_S: Final = 10.0
"""How long work in hand may hold up a handover, as in the reconciler of workers; half of all have nothing in hand."""
TAKE_AGAIN_S: Final = 1.0
ASK_AGAIN_S: Final = 2.0
SAMPLE_S: Final = 0.2


class Network(KubeClient):
    """The client of one replica, whose transport is a network that delays, loses and holds up."""

    def __init__(self, world: "World", line: "Line", now: Callable[[], float]) -> None:
        async def reload() -> ClusterAccess:
            raise AssertionError

        access, dice = ClusterAccess("http://memory", "home"), line.rand.random
        super().__init__(access, reload, KubeSettings(in_flight_max=1000), now=now, dice=dice)
        self._transport = Wire(world, line)  # type: ignore[assignment]


@dataclass(eq=False)
class Line:
    """The way between a process and the API server.

    Attributes:
        rand: Its chance, and that of the process.
        cut_until: Nothing passes before.
        sent: How many requests were sent, without those that open watches.
    """

    process: Process
    rand: random.Random
    cut_until: float = 0.0
    sent: int = 0


class Wire:
    """What a transport does, without sockets."""

    def __init__(self, world: "World", line: Line) -> None:
        self.world = world
        self.line = line
        self.errors: dict[str, int] = {}
        self.requests_total = 0

    def count_error(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def _late_s(self) -> float:
        """Return how long a message takes: what a cut holds up arrives after it."""
        rand, late_s = self.line.rand, self.line.rand.uniform(0, self.world.late_s)
        held_s = self.line.cut_until - now_s()
        return late_s if held_s <= 0 else held_s + late_s + rand.uniform(0, 1)

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        guard: Callable[[], None] | None = None,
        **_: Any,
    ) -> bytes:
        """Send a request: it arrives, whatever becomes of its sender, or is lost; so does its answer."""
        world, rand, loop = self.world, self.line.rand, asyncio.get_running_loop()
        answered: asyncio.Future[bytes] = loop.create_future()

        def settle(answer: bytes | OutsideError) -> None:
            if not answered.done():
                if isinstance(answer, OutsideError):
                    answered.set_exception(answer)
                else:
                    answered.set_result(answer)

        def arrive() -> None:
            answer: bytes | OutsideError
            try:
                answer = world.server.answer(method, urlsplit(path).path, body)
            except OutsideError as error:
                answer = error
            if rand.random() >= world.lossy:
                loop.call_later(self._late_s(), settle, answer)

        if self.line.process.dead:
            raise asyncio.CancelledError
        if guard is not None:
            guard()
        self.line.sent += 1
        if rand.random() >= world.lossy:
            loop.call_later(self._late_s(), arrive)
        return await answered

    @contextlib.asynccontextmanager
    async def lines(self, path: str, params: dict[str, str], **_: Any) -> AsyncGenerator[AsyncIterator[list[bytes]]]:
        """Follow a collection from a version."""
        await asyncio.sleep(self._late_s())
        async with contextlib.aclosing(self._follow(path, int(params["resourceVersion"]))) as batches:
            yield batches

    async def _follow(self, path: str, version: int) -> AsyncGenerator[list[bytes]]:
        """Yield what is new: every line takes its time, and none overtakes another."""
        server, news = self.world.server, asyncio.Event()
        tells, history = server.news.setdefault(path, []), server.history.setdefault(path, [])
        tells.append(news.set)
        try:
            while True:
                found = history[bisect.bisect_right(history, version, key=_version) :]
                if found:
                    version = _version(found[-1])
                    await asyncio.sleep(self._late_s() + self.world.watches_late_s)
                    yield [line for _, line in found]
                else:
                    news.clear()
                    await news.wait()
        finally:
            tells.remove(news.set)


def _version(entry: tuple[int, bytes]) -> int:
    return entry[0]


@dataclass(eq=False)
class Replica:
    """One process with its ownership, and what the reconciler of workers does about it."""

    world: "World"
    name: str
    process: Process
    line: Line
    ctx: Context
    membership: Membership
    queue: KeyedQueue[str]
    ownership: Ownership
    records: dict[tuple[str, int], str] = field(default_factory=dict)

    def start(self) -> None:
        """Start all loops, as a replica does."""
        ownership, membership = self.ownership, self.membership
        for loop in (
            self._start,
            ownership.leases.run,
            membership.members.leases.run,
            membership.run,
            partial(membership.run_fence, fenced=lambda: None, resumed=self._resume, led=lambda: None),
            ownership.plan.run,
            ownership.run_heartbeat,
            membership.run_clear_up,
            self._work,
            self._act,
        ):
            self.process.start(loop())

    async def _start(self) -> None:
        """Become a member when all is listed, as the process does."""
        for informer in (self.ownership.leases, self.membership.members.leases):
            await informer.synced.wait()
        self.membership.ready.set()

    def _resume(self) -> None:
        for worker in self.world.workers:
            self.queue.add(worker)

    def held(self) -> list[str]:
        """Return the workers that it may act for, if it runs: those whose guards would let it."""
        return [] if self.process.stopped or self.ownership.is_fenced else list(self.ownership.epochs)

    async def _work(self) -> None:
        await self.ownership.plan.settled.wait()
        self._resume()
        await self.queue.run(self._reconcile)

    async def _reconcile(self, worker: str) -> Result:
        match self.ownership.plan.act(worker):
            case Duty.STAND_BY:
                return DONE
            case Duty.HAND_OVER:
                await asyncio.sleep(max(0.0, self.line.rand.uniform(-REST_S, REST_S)))
                if self.ownership.plan.act(worker) is Duty.OWN:
                    return Result(TAKE_AGAIN_S)
                await self.ownership.release(worker)
                return DONE
            case Duty.TAKE:
                try:
                    if not await self.ownership.acquire(worker, "uid"):
                        return Result(TAKE_AGAIN_S)
                except Unavailable:
                    return Result(ASK_AGAIN_S)
            case Duty.OWN:
                pass
        return Result(PROBE_S)

    async def _act(self) -> None:
        """Act for every Node as the guard allows: at once, and by a write that may arrive late."""
        while True:
            for worker, epoch in list(self.ownership.epochs.items()):
                with contextlib.suppress(Fenced):
                    self.ownership.guard(worker)()
                    self.world.acts.append((now_s(), worker, epoch, self.ctx.process))
                    self.process.start(self._record(worker, epoch))
            await asyncio.sleep(ACT_S)

    async def _record(self, worker: str, epoch: int) -> None:
        """Write the worker's record, read once per epoch, as claims are."""
        guard, config_maps = self.ownership.guard(worker), self.ctx.api.config_maps
        with contextlib.suppress(OutsideError, Fenced):
            version = self.records.get((worker, epoch))
            if version is None:
                found = await config_maps.get(worker)
                version = found.metadata.resource_version if found is not None else ""
            metadata = {"name": worker} | ({"resourceVersion": version} if version else {})
            body = {"metadata": metadata, "data": {"epoch": str(epoch), "process": self.ctx.process}}
            write = config_maps.replace if version else config_maps.create
            self.records.pop((worker, epoch), None)  # unless the answer comes, the next act reads it again
            written = await write(body, guard=guard)
            self.records[worker, epoch] = written.metadata.resource_version


@dataclass(eq=False)
class World:
    """Some replicas and their API server.

    Attributes:
        seed: Of all chance.
        lossy: How likely a request or an answer is lost.
        late_s: How long a message takes at most.
        watches_late_s: How much longer the lines of watches take.
        acts: Every side effect that a guard allowed: the true time, worker, epoch, and process.
        doubles: Moments in which the guards of two replicas that were running let them act for one worker.
        bare: When each worker was last seen without a replica that acts for it.
        uneven_at: When the shares were last seen uneven.
        faults: What was wrong when all had been well for long enough.
    """

    seed: int
    workers: list[str]
    lossy: float
    late_s: float
    watches_late_s: float = 0.0
    server: Server = field(default_factory=Server)
    acts: list[tuple[float, str, int, str]] = field(default_factory=list)
    doubles: list[tuple[float, str, list[str]]] = field(default_factory=list)
    replicas: dict[str, Replica] = field(default_factory=dict)
    started: list[Replica] = field(default_factory=list)
    bare: dict[str, list[float]] = field(default_factory=dict)
    uneven_at: float = 0.0
    faults: list[str] = field(default_factory=list)

    def start(self, name: str) -> None:
        """Start a process, perhaps under the name of one that is dead."""
        number, loop = len(self.started) + 1, asyncio.get_running_loop()
        rand = random.Random(f"{self.seed} {number}")
        rate, wall_s = rand.uniform(0.99, 1.01), rand.uniform(-DAY_S, DAY_S)
        line = Line(Process(), rand)

        def now() -> float:
            return loop.time() * rate

        kube = Network(self, line, now)
        ctx = Context(
            kube=kube,
            events=EventRecorder(kube, component="vkprovider", instance=name, now=now),
            installation="i",
            replica=name,
            namespace="home",
            now=now,
            wall=lambda: 1.8e9 + loop.time() + wall_s,
            dice=rand.random,
            process=f"host{number}-1-abcd",
        )
        membership = Membership(ctx, ReplicaSettings().lease_ttl_s)
        queue = KeyedQueue[str](name="workers", workers=64, now=loop.time, rand=rand.random)
        levels = ReplicaSettings().workload_levels
        ownership = Ownership(ctx, membership, NODES, lambda: self.workers, levels=levels, wake=queue.add)
        replica = Replica(self, name, line.process, line, ctx, membership, queue, ownership)
        self.replicas[name] = replica
        self.started.append(replica)
        replica.start()

    @property
    def living(self) -> dict[str, Replica]:
        """The replicas that were not killed, by name."""
        return {name: replica for name, replica in self.replicas.items() if not replica.process.dead}

    async def watch(self) -> None:
        """Look again and again whether each worker has a replica that may act for it, and one only."""
        while True:
            now, living = now_s(), self.living
            holders: dict[str, list[str]] = {worker: [] for worker in self.workers}
            loads = dict.fromkeys(living, 0)
            for name, replica in living.items():
                for worker in replica.held():
                    holders[worker].append(name)
                    loads[name] += 1
            for worker, may in holders.items():
                if len(may) > 1:
                    self.doubles.append((now, worker, may))
                elif not may:
                    self.bare.setdefault(worker, []).append(now)
            if max(loads.values()) - min(loads.values()) > 1:
                self.uneven_at = now
            await asyncio.sleep(SAMPLE_S)

    def digest(self) -> str:
        """Return a number that differs between any two histories."""
        history = [lines for _, lines in sorted(self.server.history.items())]
        return hashlib.sha256(msgspec.json.encode([self.acts, self.server.records, history])).hexdigest()[:16]
