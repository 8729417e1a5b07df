"""Replicas, an API server and the network between them, in simulated time, around the pure functions of ownership.

Every replica has a clock of its own that runs a little fast or slow, a wall clock that is minutes off, and a watch that
tells of changes in order but late. Requests take time, may get lost on their way, and so may their answers. What the
shells in `vkprovider.controllers` do with the pure functions is done here in as few words as possible.
"""

import contextlib
import heapq
import itertools
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from vkprovider.api.objects import Lease
from vkprovider.domain.replica import lease as leases
from vkprovider.domain.replica import plan
from vkprovider.domain.replica.lease import LeaseVerdict, Seen
from vkprovider.domain.replica.plan import Duty

TIMES: Final = leases.times(15.0)
LOOK_S, ACT_S = 0.5, 0.7
EPOCH_ZERO: Final = datetime(2026, 1, 1, tzinfo=UTC)

Work = Generator["Wait", Any, None]
Store = dict[str, Lease]


@dataclass(frozen=True)
class Wait:
    """What a piece of work waits for: time to pass, or an answer."""

    seconds: float = 0.0
    ask: Callable[[], object] | None = None


class RefusedError(Exception):
    """404 or 409, or no answer at all."""


class LostError(RefusedError):
    """There was no answer; nobody knows whether the request was carried out."""


class MissingError(RefusedError):
    """404."""


class ConflictError(RefusedError):
    """409."""


def epoch_of(lease: Lease) -> int:
    """Give a node's epoch."""
    return lease.spec.lease_transitions or 0


@dataclass
class Server:
    """The API server: Leases by name, changed only with the right resourceVersion, and everybody told in order."""

    members: Store = field(default_factory=dict)
    nodes: Store = field(default_factory=dict)
    told: list[Callable[[bool, str, Lease | None], None]] = field(default_factory=list)
    _versions: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def _put(self, store: Store, name: str, found: Lease | None) -> Lease | None:
        if found is not None:
            metadata = msgspec.structs.replace(found.metadata, name=name, resource_version=str(next(self._versions)))
            found = store[name] = msgspec.structs.replace(found, metadata=metadata)
        else:
            del store[name]
        for tell in self.told:
            tell(store is self.members, name, found)
        return found

    def write(self, store: Store, name: str, body: dict[str, Any]) -> Lease:
        """Create, or replace with the version that `body` names."""
        version, old = body["metadata"].get("resourceVersion"), store.get(name)
        if version is not None and old is None:
            raise MissingError
        if (old.metadata.resource_version if old else None) != version:
            raise ConflictError
        made = self._put(store, name, msgspec.convert(body, Lease))
        assert made is not None
        return made

    def end(self, name: str, version: str | None) -> None:
        """Delete a membership, if it still has this version."""
        if name not in self.members:
            raise MissingError
        if version is not None and self.members[name].metadata.resource_version != version:
            raise ConflictError
        self._put(self.members, name, None)

    def get(self, store: Store, name: str) -> Lease:
        """Read one."""
        if name not in store:
            raise MissingError
        return store[name]


@dataclass
class World:
    """Simulated time, and what happens in it.

    Attributes:
        acts: Every side effect: time, worker, epoch, and which process.
        lossy: How likely a request or its answer is lost.
    """

    rand: random.Random
    workers: list[str]
    server: Server = field(default_factory=Server)
    now: float = 0.0
    lossy: float = 0.0
    late_s: float = 0.3
    acts: list[tuple[float, str, int, str]] = field(default_factory=list)
    replicas: "dict[str, Replica]" = field(default_factory=dict)
    _agenda: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _turns: "itertools.count[int]" = field(default_factory=itertools.count)

    def at(self, when: float, do: Callable[[], None]) -> None:
        """Have something done."""
        heapq.heappush(self._agenda, (max(when, self.now), next(self._turns), do))

    def run(self, until: float) -> None:
        """Let time pass."""
        while self._agenda and self._agenda[0][0] <= until:
            self.now, _, do = heapq.heappop(self._agenda)
            do()
        self.now = until

    def start(self, name: str) -> "Replica":
        """Start a process, perhaps under the name of one that is dead."""
        replica = self.replicas[name] = Replica(self, name)
        replica.begin()
        return replica


class Replica:
    """One process.

    Attributes:
        paused_until, cut_until: It stands still; nothing passes between it and the API server.
    """

    _processes = itertools.count(1)

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.process = f"{name}#{next(self._processes)}"
        self.dead = False
        self.paused_until = self.cut_until = 0.0
        self.rate = world.rand.uniform(0.99, 1.01)
        self.wall_s = world.rand.uniform(-300, 300)
        self.dice = world.rand.random()
        self.members: Store = {}
        self.nodes: Store = {}
        self.lease: Lease | None = None
        self.renew_began_at = self.listening_since = -1e9
        self.seen: dict[str, Seen] = {}
        self.epochs: dict[str, int] = {}
        self.held: dict[str, Lease] = {}
        self.free_since: dict[str, float] = {}
        self.planned: dict[str, str] = {}
        self.busy: set[str] = set()
        self._heard_at = 0.0

    # What a process is made of.

    @property
    def clock(self) -> float:
        """Its monotonic clock."""
        return self.world.now * self.rate

    def begin(self) -> None:
        """List, watch, and start every loop."""
        server = self.world.server
        for of_members, store in ((True, server.members), (False, server.nodes)):
            for name, found in store.items():
                self._learn(of_members, name, found)
        server.told.append(self._hear)
        for work in (self._membership(), self._plans(), self._acts()):
            self._go_on(work, None)

    def die(self) -> None:
        """Be killed."""
        self.dead = True
        self.world.server.told.remove(self._hear)

    def _go_on(self, work: Work, value: object) -> None:
        """Run a piece of work to its next wait; not while the process stands still."""
        if self.dead:
            return
        if self.paused_until > self.world.now:
            self.world.at(self.paused_until, lambda: self._go_on(work, value))
            return
        try:
            wait = work.throw(value) if isinstance(value, RefusedError) else work.send(value)
        except StopIteration:
            return
        if wait.ask is None:
            self.world.at(self.world.now + wait.seconds / self.rate, lambda: self._go_on(work, None))
        else:
            self._ask(work, wait.ask)

    def _ask(self, work: Work, ask: Callable[[], object]) -> None:
        """Send a request; it arrives later, and so does its answer, if at all. Nobody waits longer than a renewal."""
        world, open_ = self.world, [True]

        def answered(value: object) -> None:
            if open_[0]:
                open_[0] = False
                self._go_on(work, value)

        def arrive() -> None:
            try:
                answer = ask()
            except RefusedError as error:
                answer = error
            if world.rand.random() >= world.lossy:
                world.at(self._passes(world.now + world.rand.uniform(0, world.late_s)), lambda: answered(answer))

        if world.rand.random() >= world.lossy:
            world.at(self._passes(world.now + world.rand.uniform(0, world.late_s)), arrive)
        world.at(world.now + TIMES.renew_s / self.rate, lambda: answered(LostError()))

    def _passes(self, when: float) -> float:
        """Tell when something gets through: what is held up by a cut comes after it."""
        return max(when, self.cut_until + self.world.rand.uniform(0, 1)) if self.cut_until > self.world.now else when

    def _hear(self, of_members: bool, name: str, found: Lease | None) -> None:  # noqa: FBT001 (an event's part)
        when = self._passes(self.world.now + self.world.rand.uniform(0, self.world.late_s))
        self._heard_at = max(self._heard_at, when, self.paused_until)  # in order
        self.world.at(self._heard_at, lambda: self._learn(of_members, name, found))

    def _learn(self, of_members: bool, name: str, found: Lease | None) -> None:  # noqa: FBT001 (an event's part)
        if self.dead:
            return
        if self.paused_until > self.world.now:
            self.world.at(self.paused_until, lambda: self._learn(of_members, name, found))
            return
        store = self.members if of_members else self.nodes
        if found is None:
            store.pop(name, None)
        else:
            store[name] = found
        if of_members:
            if found is None:
                self.seen.pop(name, None)
            else:
                self.seen[name] = leases.observe(self.seen.get(name), found, self.clock)
        elif name in self.epochs and (found is None or epoch_of(found) > self.epochs[name]):
            self._lose(name)

    # What the controllers do.

    @property
    def fenced(self) -> bool:
        """Whether it must not act."""
        return leases.fenced(self.renew_began_at, self.clock, TIMES.fence_s)

    def gone(self, name: str) -> bool:
        """Whether it thinks another one gone."""
        seen = self.seen.get(name)
        return leases.gone(seen, self.clock, listening_since=self.listening_since, gone_s=TIMES.gone_s)

    def living(self) -> set[str]:
        """Whom it thinks alive."""
        others = {name for name in self.seen if not self.gone(name)} - {self.name}
        return others if self.fenced else others | {self.name}

    def _body(self, name: str, holder: str, old: Lease | None, *, anew: bool = False) -> dict[str, Any]:
        wall = EPOCH_ZERO + timedelta(seconds=self.world.now + self.wall_s)
        return leases.body(
            name=name, namespace="n", holder=holder, old=old, now=wall, seconds=40, metadata={}, anew=anew
        )

    def _write(self, store: Store, name: str, body: dict[str, Any]) -> Wait:
        return Wait(ask=lambda: self.world.server.write(store, name, body))

    def _membership(self) -> Work:
        server = self.world.server
        while True:
            began, body = self.clock, self._body(self.name, self.name, self.lease)
            try:
                self.lease = yield self._write(server.members, self.name, body)
            except MissingError:
                self.lease, self.renew_began_at = None, -1e9
                for worker in list(self.epochs):
                    self._lose(worker)
            except ConflictError:
                with contextlib.suppress(RefusedError):
                    self.lease = yield Wait(ask=lambda: server.get(server.members, self.name))
            except LostError:
                pass
            else:
                if began - self.renew_began_at >= TIMES.fence_s:
                    self.listening_since = self.clock
                self.renew_began_at = began
            yield Wait(max(0.1, TIMES.renew_s - (self.clock - began)))

    def _plans(self) -> Work:
        yield Wait(1.0)
        while True:
            living = self.living()
            holders = {w: (self.nodes[w].spec.holder_identity if w in self.nodes else None) for w in self.world.workers}
            view = plan.view(self.name, mine=self.epochs, holders=holders, living=living)
            self.planned = plan.plan(living, view.owners)
            self.free_since = {worker: self.free_since.get(worker, self.clock) for worker in view.free}
            if not self.fenced:
                for worker in self.world.workers:
                    if worker not in self.busy and (work := self._duty(worker)) is not None:
                        self.busy.add(worker)
                        self._go_on(self._done(worker, work), None)
                if self.name == min(living):  # it leads
                    for name in [name for name in self.seen if self.gone(name) and name not in self.busy | {self.name}]:
                        self.busy.add(name)
                        self._go_on(self._done(name, self._end(name)), None)
            yield Wait(LOOK_S)

    def _duty(self, worker: str) -> Work | None:
        since, total = self.free_since.get(worker), len(self.world.workers)
        duty = plan.duty(
            self.name,
            mine=worker in self.epochs,
            planned=self.planned.get(worker),
            free_for_s=None if since is None else self.clock - since,
            patience_s=plan.patience_s(len(self.epochs), total, 10, self.dice),
        )
        return {Duty.TAKE: self._take, Duty.HAND_OVER: self._release}[duty](worker) if duty in _WORK else None

    def _done(self, worker: str, work: Work) -> Work:
        try:
            yield from work
        except RefusedError:
            pass
        finally:
            self.busy.discard(worker)

    def _take(self, worker: str) -> Work:
        server = self.world.server
        old: Lease | None = None
        with contextlib.suppress(MissingError):
            old = yield Wait(ask=lambda: server.get(server.nodes, worker))
        holder = old.spec.holder_identity if old is not None else None
        gone = not holder or self.gone(holder)
        verdict = leases.judge(old, self.name, holder_is_gone=gone)
        if verdict is LeaseVerdict.WAIT:
            return
        if holder and verdict is LeaseVerdict.TAKE:
            yield from self._end(holder)
        if self.fenced:
            return
        body = self._body(worker, self.name, old, anew=True)
        taken = yield self._write(server.nodes, worker, body)
        epoch, known = epoch_of(taken), self.nodes.get(worker)
        overtaken = known is not None and epoch_of(known) > epoch
        if not overtaken and not self.fenced:
            self.epochs[worker], self.held[worker] = epoch, taken

    def _end(self, holder: str) -> Work:
        """End the membership of a silent replica; raises if it lives."""
        server, seen = self.world.server, self.seen.get(holder)
        try:
            if seen is None:
                found = yield Wait(ask=lambda: server.get(server.members, holder))
                self.seen[holder] = leases.observe(None, found, self.clock)
                raise ConflictError  # noqa: TRY301 (as if it had been asked for)
            yield Wait(ask=lambda: server.end(holder, seen.resource_version))
        except MissingError:
            return
        except ConflictError:
            if seen is not None:
                self.seen[holder] = leases.heard(self.seen.get(holder, seen), self.clock)
            raise

    def _release(self, worker: str) -> Work:
        server, old = self.world.server, self.held.pop(worker)
        del self.epochs[worker]
        body = self._body(worker, "", old)
        yield self._write(server.nodes, worker, body)

    def _lose(self, worker: str) -> None:
        self.epochs.pop(worker, None)
        self.held.pop(worker, None)

    def _acts(self) -> Work:
        """Do something for every node, as the guard allows, in the step in which it asks the guard."""
        while True:
            if not self.fenced:
                for worker, epoch in self.epochs.items():
                    self.world.acts.append((self.world.now, worker, epoch, self.process))
            yield Wait(ACT_S)


_WORK: Final = {Duty.TAKE, Duty.HAND_OVER}
