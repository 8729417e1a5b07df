"""Real replicas in virtual time: `Membership`, `Ownership` and their informers, and an API server in memory.

The API server keeps objects with resourceVersion and UID, refuses what a precondition forbids, and sends watches in
order. Between it and a replica requests and answers take time, get lost, or are held up and arrive late, also when the
replica that sent them has been fenced, or has ended. A replica may be stopped like a process (SIGSTOP) between any two
steps of its tasks. Each has a monotonic clock that runs a little fast or slow, and a wall clock that is minutes off.
"""

import asyncio
import contextlib
import random
import types
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from tests.unit.domain.replica.apistore import Server, now_s
from vkprovider.api.errors import Fenced, InputError, OutsideError
from vkprovider.controllers.worker.node_leases import NODES
from vkprovider.domain.replica.plan import Duty
from vkprovider.kube.client import KubeClient
from vkprovider.kube.events import EventRecorder
from vkprovider.kube.http.credentials import ClusterAccess
from vkprovider.runtime.context import Context
from vkprovider.runtime.membership import Membership
from vkprovider.runtime.ownership import Ownership
from vkprovider.settings.cluster import KubeSettings, ReplicaSettings

ACT_S: Final = 0.7
"""How often a replica acts for each of its Nodes."""
TURN_S: Final = 0.5
"""How often it looks after what it has to take or to hand over."""
SAMPLE_S: Final = 0.2


@dataclass(eq=False)
class Process:
    """One process of the operating system, which may be stopped, cut off from the API server, or dead.

    Attributes:
        stopped_until: It takes no step before; the true time.
        cut_until: Nothing passes between it and the API server before.
    """

    stopped_until: float = 0.0
    cut_until: float = 0.0
    dead: bool = False
    runs: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def stopped(self) -> bool:
        return self.dead or self.stopped_until > now_s()

    @types.coroutine
    def step(self, work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
        """Run a coroutine, and hold it between two steps while the process is stopped."""
        value: Any = None
        thrown: BaseException | None = None
        while True:
            while self.stopped and not self.dead:
                try:
                    yield from asyncio.sleep(max(0.01, self.stopped_until - now_s())).__await__()
                except asyncio.CancelledError as error:
                    thrown = error
            try:
                waits = work.send(value) if thrown is None else work.throw(thrown)
            except StopIteration:
                return
            thrown = None
            try:
                value = yield waits
            except BaseException as error:  # noqa: BLE001 (whatever is thrown belongs to the coroutine)
                thrown = error


class Network(KubeClient):
    """The client of one replica, whose transport is a network that delays, loses and holds up."""

    def __init__(self, world: "World", process: Process) -> None:
        async def reload() -> ClusterAccess:
            raise AssertionError

        super().__init__(ClusterAccess("http://memory", "home"), reload, KubeSettings(in_flight_max=1000))
        self._transport = Wire(world, process)  # type: ignore[assignment]


class Wire:
    """What a transport does, without sockets."""

    def __init__(self, world: "World", process: Process) -> None:
        self.world = world
        self.process = process
        self.errors: dict[str, int] = {}
        self.requests_total = 0

    def count_error(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def _late_s(self) -> float:
        """Return how long a message takes: what a cut holds up arrives after it."""
        world, late_s = self.world, self.world.rand.uniform(0, self.world.late_s)
        held_s = self.process.cut_until - now_s()
        return late_s if held_s <= 0 else held_s + late_s + world.rand.uniform(0, 1)

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
        world, loop = self.world, asyncio.get_running_loop()
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
            if world.rand.random() >= world.lossy:
                loop.call_later(self._late_s(), settle, answer)

        if self.process.dead:
            raise asyncio.CancelledError
        if guard is not None:
            guard()
        if world.rand.random() >= world.lossy:
            loop.call_later(self._late_s(), arrive)
        return await answered

    async def lines(
        self, path: str, params: dict[str, str], *, opened: Callable[[], None], **_: Any
    ) -> AsyncGenerator[list[bytes], None]:
        """Follow a collection from a version; every line takes its time, and none overtakes another."""
        server, at, news = self.world.server, int(params["resourceVersion"]), asyncio.Event()
        opened()
        server.news.append(news.set)
        try:
            while True:
                found = [line for of, line in server.history[at:] if of == path]
                at = len(server.history)
                if found:
                    await asyncio.sleep(self._late_s() + self.world.watches_late_s)
                    yield found
                else:
                    news.clear()
                    await news.wait()
        finally:
            server.news.remove(news.set)


@dataclass(eq=False)
class Replica:
    """One process with its ownership, and a driver in place of the reconciler of workers."""

    world: "World"
    name: str
    process: Process
    ctx: Context
    ownership: Ownership
    tasks: "set[asyncio.Task[None]]" = field(default_factory=set)
    records: dict[tuple[str, int], str] = field(default_factory=dict)

    def start(self) -> None:
        """Start all loops, as a replica does."""
        ownership, membership = self.ownership, self.ownership.membership
        membership.ready.set()
        for loop in (
            ownership.leases.run,
            membership.members.leases.run,
            membership.run,
            partial(membership.run_fence, fenced=lambda: None, resumed=lambda: None, led=lambda: None),
            ownership.plan.run,
            ownership.run_heartbeat,
            membership.run_clear_up,
            self._work,
            self._act,
        ):
            self._begin(loop)

    def _begin(self, loop: Callable[[], Coroutine[Any, Any, None]]) -> "asyncio.Task[None]":
        async def run() -> None:
            await self.process.step(loop())

        task = asyncio.ensure_future(run())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def die(self) -> None:
        """End as SIGKILL does; what was sent still arrives."""
        self.process.dead = True
        for task in list(self.tasks):
            task.cancel()

    async def _work(self) -> None:
        busy: dict[str, asyncio.Task[None]] = {}
        while True:
            for worker in self.world.workers:
                if worker not in busy or busy[worker].done():
                    busy[worker] = self._begin(partial(self._turn, worker))
            await asyncio.sleep(TURN_S)

    async def _turn(self, worker: str) -> None:
        with contextlib.suppress(OutsideError, InputError, Fenced):
            match self.ownership.plan.act(worker):
                case Duty.TAKE:
                    await self.ownership.acquire(worker, "uid")
                case Duty.HAND_OVER:
                    await self.ownership.release(worker)
                case _:
                    return

    async def _act(self) -> None:
        """Act for every Node as the guard allows: at once, and by a write that may arrive late."""
        while True:
            for worker, epoch in list(self.ownership.epochs.items()):
                with contextlib.suppress(Fenced):
                    self.ownership.guard(worker)()
                    self.world.acts.append((now_s(), worker, epoch, self.ctx.process))
                    self._begin(partial(self._record, worker, epoch))
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
        lossy: How likely a request or an answer is lost.
        late_s: How long a message takes at most.
        watches_late_s: How much longer the lines of watches take.
        acts: Every side effect that a guard allowed: the true time, worker, epoch, and process.
        doubles: Moments in which the guards of two replicas that were running let them act for one worker.
    """

    rand: random.Random
    workers: list[str]
    lossy: float
    late_s: float
    watches_late_s: float = 0.0
    server: Server = field(default_factory=Server)
    acts: list[tuple[float, str, int, str]] = field(default_factory=list)
    doubles: list[tuple[float, str, list[str]]] = field(default_factory=list)
    replicas: dict[str, Replica] = field(default_factory=dict)
    started: int = 0

    def start(self, name: str) -> None:
        """Start a process, perhaps under the name of one that is dead."""
        self.started += 1
        process, rand, loop = Process(), self.rand, asyncio.get_running_loop()
        rate, wall_s = rand.uniform(0.99, 1.01), rand.uniform(-300, 300)
        kube = Network(self, process)
        ctx = Context(
            kube=kube,
            events=EventRecorder(kube, component="vkprovider", instance=name),
            installation="i",
            replica=name,
            namespace="home",
            now=lambda: loop.time() * rate,
            wall=lambda: 1.8e9 + loop.time() + wall_s,
            dice=rand.random,
            process=f"host{self.started}-1-abcd",
        )
        ownership = Ownership(
            ctx,
            Membership(ctx, ReplicaSettings().lease_ttl_s),
            NODES,
            lambda: self.workers,
            levels=ReplicaSettings().workload_levels,
            wake=lambda _: None,
        )
        replica = self.replicas[name] = Replica(self, name, process, ctx, ownership)
        replica.start()

    async def watch_guards(self) -> None:
        """Look again and again whether two replicas that run may act for one worker."""
        while True:
            for worker in self.workers:
                may = [name for name, replica in self.replicas.items() if self._may_act(replica, worker)]
                if len(may) > 1:
                    self.doubles.append((now_s(), worker, may))
            await asyncio.sleep(SAMPLE_S)

    def _may_act(self, replica: Replica, worker: str) -> bool:
        if replica.process.stopped:
            return False
        try:
            replica.ownership.guard(worker)()
        except Fenced:
            return False
        return True
