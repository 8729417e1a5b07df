"""CMLWorker → Node, and one bulk observation of each worker for all of its lablets.

One key per worker in one queue: no task or timer of its own for any of them. While a lablet is in transition, the
worker is observed every second with two requests, however many lablets there are; otherwise every few seconds.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Final

import structlog

from vkprovider.api.errors import (
    Fenced,
    Forbidden,
    InputError,
    Invalid,
    OutsideError,
    TlsFailed,
    Unauthorized,
    Unavailable,
)
from vkprovider.api.labs import NodeFact
from vkprovider.api.models import CMLWorkerSpec, parse_worker_spec
from vkprovider.api.objects import CustomResource
from vkprovider.cml.spi import Labs
from vkprovider.cml.stats import WorkerStats
from vkprovider.controllers.claimstore import ClaimStore
from vkprovider.controllers.context import Context
from vkprovider.controllers.labfinder import LabFinder
from vkprovider.controllers.nodes import NodeWriter
from vkprovider.controllers.opening import open_stats, open_worker
from vkprovider.controllers.ownership import Ownership
from vkprovider.domain.facts import Presence
from vkprovider.domain.node import Health, Stats, check_version, down, up
from vkprovider.domain.resources import Resources
from vkprovider.domain.shard import Duty
from vkprovider.kube.client import Guard
from vkprovider.kube.queue import KeyedQueue, Result

_log: Final = structlog.get_logger(__name__)
_VERSION_EVERY_S: Final = 60.0
_TAKE_AGAIN_S: Final = 1.0
_PARK_S: Final = 10.0
"""How long work in hand may hold up a handover; what is not done then is continued by the next owner."""


async def _no_wait(_name: str, _within_s: float) -> None:
    """Wait for nothing: nobody has said what there may be in hand."""


@dataclass(slots=True)
class Worker:
    """What this replica knows of one worker whose node it owns.

    Attributes:
        asked: The spec as it came; parsing it takes longer than all the rest of a quiet turn.
        labs_at, nodes_at: When the last answer to "which labs" and "which nodes" was *asked for*.
        silent: Why the worker does not answer; "" while it does.
        awaited: Somebody waits for the next observation.
        guard: Called right before every side effect; raises Fenced when the node is not ours as it was.
        running: Pods on it that run, with or without a claim.
        ports_open: Whether the ports of the lablet that became ready last open: status, reason, message.
        parked: Nothing new is begun for it: it is being handed over.
    """

    name: str
    asked: object
    spec: CMLWorkerSpec
    claims: ClaimStore
    labs: Labs
    finder: LabFinder
    guard: Guard
    stats: WorkerStats | None = None
    version: str = ""
    version_at: float = -1e9
    lab_ids: frozenset[str] = frozenset()
    labs_at: float = -1e9
    nodes: dict[str, tuple[NodeFact, ...]] = field(default_factory=dict)
    nodes_at: float = -1e9
    failures: int = 0
    reached: bool = False
    silent: str = ""
    health: Health = field(default_factory=lambda: down("Starting", "the worker has not been asked yet"))
    awaited: bool = False
    usage: Stats | None = None
    usage_at: float = -1e9
    capacity: Resources | None = None
    pods: int = 0
    running: int = 0
    ip: str = ""
    parked: bool = False
    ports_open: tuple[str, str, str] | None = None

    def look(self, lab_id: str, since: float) -> tuple[Presence, tuple[NodeFact, ...]]:
        """Tell what is known of a lab from answers that were asked for after `since`."""
        if self.nodes_at > since and lab_id in self.nodes:
            return Presence.PRESENT, self.nodes[lab_id]
        if self.labs_at > since and lab_id not in self.lab_ids:
            return Presence.ABSENT, ()
        if self.nodes_at > since and self.labs_at > since:
            return Presence.PRESENT, ()
        return Presence.UNKNOWN, ()


class Workers:
    """The workers of this replica.

    Attributes:
        items: Those whose node is ours and whose claims are read, by name.
        changed: Called with Pod UIDs about whose labs something is new.
        met: Called with a worker once its claims are read, and when there is news of its capacity or its claims.
        gone: Called with the name of a worker that is ours no more.
        idle: Waits until nothing is in hand for a worker that is parked.
        running: Tells how many Pods run on a worker.
    """

    def __init__(
        self,
        ctx: Context,
        ownership: Ownership,
        resources: Callable[[str], CustomResource | None],
        nodes: NodeWriter,
    ) -> None:
        self._ctx = ctx
        self._ownership = ownership
        self._resource = resources
        self._nodes = nodes
        self.items: dict[str, Worker] = {}
        self.changed: Callable[[Collection[str]], None] = lambda _: None
        self.met: Callable[[Worker], None] = lambda _: None
        self.gone: Callable[[str], None] = lambda _: None
        self.idle: Callable[[str, float], Awaitable[object]] = _no_wait
        self.running: Callable[[str], int] = lambda _: 0
        self._left: dict[str, str] = {}
        self._closing: list[Worker] = []
        self.queue: KeyedQueue[str] = KeyedQueue(self.reconcile, name="workers", workers=64)
        self.flushes: KeyedQueue[str] = KeyedQueue(self._flush, name="claims", workers=64)
        ownership.changed = self.queue.add
        ownership.lost = self._lost

    def observe_soon(self, name: str) -> None:
        """Have a worker observed at the pace of transitions."""
        worker = self.items.get(name)
        if worker is not None and not worker.awaited:
            worker.awaited = True
            left = worker.nodes_at + self._ctx.tuning.transition_s - self._ctx.now()
            self.queue.add(name, after_s=max(0.0, left))

    def epoch(self, name: str) -> int:
        """Tell the epoch in which this replica acts for a worker."""
        return self._ownership.epochs.get(name, 0)

    def _lost(self, name: str) -> None:
        """Drop what is known of a worker: it may be changed by somebody else from now on."""
        worker = self.items.pop(name, None)
        if worker is not None:
            self._closing.append(worker)
            self.gone(name)
        self.queue.add(name)

    def resume(self) -> None:
        """Go on with everything: this replica could not act for a while."""
        for name in self.items:
            self.queue.add(name)
            self.flushes.add(name)

    async def _flush(self, name: str) -> Result:
        worker = self.items.get(name)
        if worker is None:
            return Result()
        before = str(worker.claims.fault)
        try:
            return Result(await worker.claims.flush())
        finally:
            if str(worker.claims.fault) != before:
                self.met(worker)
                self.queue.add(name)

    # --------------------------------------------------------------------------------------------- reconcile

    async def reconcile(self, name: str) -> Result:
        """Bring a worker's Node up to date and observe the worker."""
        resource = self._resource(name)
        ctx = self._ctx
        while self._closing:
            await self._close(self._closing.pop())
        if resource is None or self._left.get(name) == resource.metadata.uid:
            return await self._clear(name, resource)
        match self._ownership.duty(name):
            case Duty.STAND_BY:
                return Result()
            case Duty.HAND_OVER:
                return await self._hand_over(name)
            case duty:
                taking = duty is Duty.TAKE
        try:
            if taking:
                await self._nodes.find(name)
                if not await self._ownership.acquire(name, resource.metadata.uid):
                    return Result(_TAKE_AGAIN_S)
            worker = await self._open(name, resource)
        except Fenced:
            return Result(_TAKE_AGAIN_S)
        except InputError as fault:
            self._stop_using(name, fault)
            return await self._refuse(resource, fault)
        if worker.awaited or ctx.now() - worker.labs_at >= 0.9 * ctx.tuning.probe_s or worker.silent:
            await self._observe(worker)
        if not worker.silent and worker.reached:
            unfit = worker.claims.fault or check_version(worker.version)
            worker.health = down(unfit.reason, unfit.message) if unfit else up(f"CML {worker.version} answers")
        room, worker.running = (worker.capacity, worker.pods), self.running(name)
        try:
            leaving = await self._nodes.write(resource, worker, self._ownership.epochs.get(name, 0))
        except Fenced:
            return Result(_TAKE_AGAIN_S)
        except InputError as fault:
            return await self._refuse(resource, fault)
        except (Invalid, Forbidden) as error:
            return await self._refuse(resource, InputError("NodeRefused", error.message))
        if room != (worker.capacity, worker.pods):
            self.met(worker)
        if leaving:
            self._left[name] = resource.metadata.uid
            await self._forget(name)
            return Result()
        return Result(ctx.tuning.probe_s)

    async def _clear(self, name: str, resource: CustomResource | None) -> Result:
        """Clear up after a CMLWorker that is gone, or of which only our copy does not know it yet."""
        if resource is None:
            self._left.pop(name, None)
            if name in self._ownership.epochs or self._ownership.leads:
                await self._nodes.remove(name)
        await self._forget(name)
        return Result()

    async def _hand_over(self, name: str) -> Result:
        """Finish what is in hand for a worker, then release its node: it is planned for another replica."""
        worker = self.items.get(name)
        if worker is not None:
            worker.parked = True
            await self.idle(name, _PARK_S)
            try:
                await worker.claims.flush(hurry=True)
            except (InputError, OutsideError, Fenced) as error:
                _log.warning("claims not written before the handover", worker=name, error=str(error))
        await self._ownership.release(name)
        await self._forget(name)
        _log.info("node handed over", worker=name, to=self._ownership.planned.get(name))
        return Result()

    async def _refuse(self, resource: CustomResource, fault: InputError) -> Result:
        name = resource.metadata.name
        if fault.reason == "NodeConflict":
            await self._forget(name)  # our Lease would say that somebody else's node is alive
        if resource.metadata.deletion_timestamp is not None and await self._nodes.abandon(resource):
            self._left[name] = resource.metadata.uid
            await self._forget(name)
            return Result()
        await self._nodes.refuse(resource, fault, owner=self._ownership.epochs.get(name))
        return Result(self._ctx.tuning.reconcile_s)

    def _stop_using(self, name: str, fault: InputError) -> None:
        """Tell the lablets of a worker whose CMLWorker was made unusable."""
        worker = self.items.get(name)
        if worker is not None:
            worker.health = down(fault.reason, fault.message)
            before, worker.silent = worker.silent, f"worker {name}: {fault.reason}: {fault.message}"
            self._tell(worker, worker.nodes, everybody=worker.silent != before, awaited=False)

    async def _open(self, name: str, resource: CustomResource) -> Worker:
        worker = self.items.get(name)
        if worker is not None and worker.asked == resource.packed_spec:
            return worker
        spec = parse_worker_spec(resource.spec)
        if worker is not None and worker.spec == spec:
            worker.asked = resource.packed_spec
            return worker
        ctx = self._ctx
        guard = self._ownership.guard(name)
        labs, stats = open_worker(ctx, spec, guard), open_stats(ctx, spec)
        if worker is not None:  # changed: keep what is known of its lablets
            await self._close(worker)
            worker.asked, worker.spec, worker.labs, worker.stats = resource.packed_spec, spec, labs, stats
            worker.finder = LabFinder(ctx, name, labs)
            worker.version_at = worker.usage_at = worker.labs_at = worker.nodes_at = -1e9
            worker.usage = None
            return worker
        claims = ClaimStore(
            ctx,
            name,
            resource.metadata.uid,
            guard=guard,
            flush_in=lambda after_s: self.flushes.add(name, after_s=after_s),
            saved=lambda uids: self.changed(uids),  # noqa: PLW0108 (set later)
        )
        try:
            await claims.load()
        except (InputError, OutsideError):
            await labs.close()
            raise
        labs.recall({claim.lab_id: claim.started > 0 for claim in claims.claims.values() if claim.lab_id})
        worker = Worker(name, resource.packed_spec, spec, claims, labs, LabFinder(ctx, name, labs), guard, stats)
        self.items[name] = worker
        self.met(worker)
        return worker

    async def _close(self, worker: Worker) -> None:
        await worker.labs.close()
        if worker.stats is not None:
            await worker.stats.close()

    async def _forget(self, name: str) -> None:
        self._ownership.forget(name)
        worker = self.items.pop(name, None)
        if worker is not None:
            self.gone(name)
            await self._close(worker)

    async def close(self) -> None:
        """Write what is left and close every connection."""
        for worker in list(self.items.values()):
            try:
                await worker.claims.flush(hurry=True)
            except (OutsideError, InputError, Fenced) as error:
                _log.warning("claims not written at the end", worker=worker.name, error=str(error))
            await self._close(worker)

    # --------------------------------------------------------------------------------------------- observation

    async def _observe(self, worker: Worker) -> None:
        ctx, now = self._ctx, self._ctx.now()
        awaited, worker.awaited = worker.awaited, False
        full = awaited or now - worker.nodes_at >= ctx.tuning.refresh_s
        before = worker.nodes
        silent_before = worker.silent
        try:
            if now - worker.version_at >= _VERSION_EVERY_S:
                worker.version = await worker.labs.version()
                worker.version_at = now
            labs_at = ctx.now()
            lab_ids = frozenset(await worker.labs.list_labs())
            worker.lab_ids, worker.labs_at = lab_ids, labs_at
            if full:
                nodes_at = ctx.now()
                worker.nodes = await worker.labs.list_all_nodes()
                worker.nodes_at = nodes_at
            await worker.finder.scan(lab_ids, worker.claims.claims)
        except Fenced:
            return
        except OutsideError as error:
            worker.awaited = awaited
            self._failed(worker, error)
        else:
            worker.failures, worker.reached, worker.silent = 0, True, ""
        await self._ask_stats(worker)
        self._tell(worker, before, everybody=worker.silent != silent_before, awaited=awaited and full)

    def _failed(self, worker: Worker, error: OutsideError) -> None:
        worker.failures += 1
        worker.version_at = -1e9  # who comes back may have been upgraded
        if isinstance(error, Unauthorized):
            reason = "CredentialsInvalid"
        elif isinstance(error, TlsFailed):
            reason = "CertificateInvalid"
        elif isinstance(error, Unavailable):
            reason = "WorkerUnreachable"
            if worker.reached and worker.failures < self._ctx.tuning.probe_failures_max:
                return
        else:
            reason = "WorkerError"
        worker.health = down(reason, error.message)
        worker.silent = f"worker {worker.name}: {error.message}"
        worker.reached = False

    async def _ask_stats(self, worker: Worker) -> None:
        now = self._ctx.now()
        if worker.stats is None or worker.silent or now - worker.usage_at < self._ctx.tuning.reconcile_s:
            return
        try:
            worker.usage = self._nodes.stats_of(worker, await worker.stats.usage())
            worker.usage_at = now
        except OutsideError as error:
            _log.warning("worker tells no statistics", worker=worker.name, error=str(error))

    def _tell(self, worker: Worker, before: dict[str, tuple[NodeFact, ...]], *, everybody: bool, awaited: bool) -> None:
        """Wake the lablets about whose labs something is new."""
        if worker.labs.immediate and not everybody:
            return  # whoever acts knows at once
        concerned: list[str] = []
        for uid, claim in worker.claims.claims.items():
            lab_id = claim.lab_id
            if everybody or (lab_id and self._is_news(worker, before, lab_id, awaited=awaited)):
                concerned.append(uid)
        if concerned:
            self.changed(concerned)

    @staticmethod
    def _is_news(worker: Worker, before: dict[str, tuple[NodeFact, ...]], lab_id: str, *, awaited: bool) -> bool:
        nodes = worker.nodes.get(lab_id)
        if nodes != before.get(lab_id):
            return True
        if lab_id not in worker.lab_ids:
            return True
        return awaited and not _settled(nodes)


def _settled(nodes: tuple[NodeFact, ...] | None) -> bool:
    return bool(nodes) and all(node.state == "BOOTED" for node in nodes or ())
