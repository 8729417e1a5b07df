"""CMLWorker → Node: whose node it is, its claims, its connection, and when it is observed.

One key per worker in one queue: no task or timer of its own for any of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from vkprovider.lablet.models.status import worker_status
from vkprovider.lablet.models.worker import CMLWorkerSpec, parse_worker_spec
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.controllers.claims.store import ClaimStore
from vkprovider.labs.controllers.counters import Counters
from vkprovider.labs.controllers.worker.connection import Connector
from vkprovider.labs.controllers.worker.finalizer import Finalizer
from vkprovider.labs.controllers.worker.node_writer import NodeConflict, NodeWriter
from vkprovider.labs.controllers.worker.observer import Observer
from vkprovider.labs.controllers.worker.worker import FOREVER, NEVER, Fleet, Worker, WorkerLablets
from vkprovider.labs.pure.claims.document import may_have_claims
from vkprovider.labs.pure.worker.capacity import Capacity, capacity
from vkprovider.labs.pure.worker.identity import Identities, access_in, entries_of, evidence_of, same_controller
from vkprovider.labs.pure.worker.reach import entries_of_address, same_address
from vkprovider.labs.pure.worker.registration import unapproved
from vkprovider.labs.settings.cluster import PortSettings, WorkerSettings
from vkprovider.platform.errors import Fenced, Forbidden, InputError, Invalid, OutsideError, Unavailable
from vkprovider.platform.kube.queue import KeyedQueue, Result
from vkprovider.platform.leases import Duty
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.ownership import Ownership

_log: Final = structlog.get_logger(__name__)
_TAKE_AGAIN_S: Final = 1.0
_ASK_AGAIN_S: Final = 2.0
"""After a request for a Node without an owner got no answer: a back-off would outlast what kept the answer away."""
_CLAIM_WRITES_MAX: Final = 6
"""Workers whose claims are written at once. The others wait, and what their lablets claim meanwhile joins that write: a
busy API server gets fewer and larger writes, an idle one each at once."""
_PARK_S: Final = 10.0
"""How long work in hand may hold up a handover; what is not done then is continued by the next owner."""


class Workers:
    """Brings the workers of this replica to what their CMLWorkers ask for.

    Attributes:
        items: Those that this replica acts for, by name.
    """

    def __init__(
        self,
        ctx: Context,
        settings: WorkerSettings,
        ownership: Ownership,
        resources: Mapping[str, CustomResource],
        fleet: Fleet,
        lablets: WorkerLablets,
        nodes: NodeWriter,
        observer: Observer,
        *,
        counters: Counters,
        identities: Identities,
        connector: Connector,
        ports: PortSettings,
        queue: KeyedQueue[str],
        flushes: KeyedQueue[str],
        recover: Callable[[Worker], Awaitable[None]],
    ) -> None:
        """Create the reconciler.

        Args:
            ctx: The replica.
            settings: How often workers are asked.
            ports: The external ports of workers without a range of their own.
            ownership: Which workers this replica acts for.
            resources: All CMLWorkers, by name.
            fleet: What is known of those workers.
            lablets: Those on them.
            nodes: Writes their Nodes.
            observer: Asks them what they have.
            counters: Count the writes of claims.
            identities: The CMLWorkers by what identifies their controllers.
            connector: Opens the connections to them.
            queue: Of workers, by name.
            flushes: Of workers whose claims are to be written, by name.
            recover: Rebuilds the claims of a worker whose ConfigMap was lost.
        """
        self._ctx = ctx
        self._counters = counters
        self._settings = settings
        self._ports = ports
        self._ownership = ownership
        self._resources = resources
        self._identities = identities
        self._fleet = fleet
        self._lablets = lablets
        self._nodes = nodes
        self._observer = observer
        self._connector = connector
        self._queue = queue
        self._flushes = flushes
        self._claim_writes = asyncio.Semaphore(_CLAIM_WRITES_MAX)
        self._recover = recover
        self.items: Mapping[str, Worker] = fleet.items
        self._left: dict[str, str] = {}

    def observe_soon(self, name: str, uid: str = "", *, newer_than: float = FOREVER) -> None:
        """Observe a worker by name at the pace of transitions; for the other arguments see `Observer.await_look`."""
        worker = self.items.get(name)
        if worker is not None and (after_s := self._observer.await_look(worker, uid, newer_than)) is not None:
            self._queue.add(name, after_s=after_s)

    def epoch(self, name: str) -> int:
        """Return the epoch in which this replica acts for a worker."""
        return self._ownership.epochs.get(name, 0)

    def resume(self) -> None:
        """Queue every worker, and the claims of ours: this replica could not act for a while."""
        for name in self._resources.keys() | self._ownership.epochs.keys() | self.items.keys():
            self._queue.add(name)
        for name in self.items:
            self._flushes.add(name)

    async def flush(self, name: str) -> Result:
        """Write the changed claims of a worker; rebuild them first, if they were lost.

        Raises:
            Fenced: This replica no longer owns the Node, or may not act for a while.
            InputError: They cannot be written.
        """
        worker = self.items.get(name)
        if worker is None:
            return Result()
        before = worker.unrebuilt, str(worker.claims.fault)
        try:
            if not worker.claims.complete:
                await self._rebuild(worker)
                self._lablets.worker_changed(worker)
            return Result(await worker.claims.flush())
        finally:
            if (worker.unrebuilt, str(worker.claims.fault)) != before:
                self._lablets.worker_changed(worker)
                self._queue.add(name)

    async def _rebuild(self, worker: Worker) -> None:
        """Rebuild the claims of a worker; note why that fails, unless it does not answer yet, which is said anyway."""
        try:
            await self._recover(worker)
        except OutsideError as error:
            resource = self._resources.get(worker.name)
            had_claims = resource is not None and may_have_claims(resource)
            if had_claims or worker.seen.reached:
                worker.unrebuilt = error.message
            raise
        worker.unrebuilt = ""

    # --------------------------------------------------------------------------------------------- reconcile

    async def reconcile(self, name: str) -> Result:
        """Bring a worker's Node up to date and observe the worker.

        Raises:
            Fenced: This replica no longer owns the Node, or may not act for a while.
        """
        resource = self._resources.get(name)
        for given_up in self._fleet.pop_given_up(name):
            await given_up.connection.close()
        if resource is None or self._left.get(name) == resource.metadata.uid:
            return await self._clear(name, resource)
        known = self.items.get(name)
        if known is not None and known.uid != resource.metadata.uid:
            await self._forget(name)  # created again: Lease and claims are to be the new one's
        match self._ownership.plan.act(name):
            case Duty.STAND_BY:
                self._nodes.forget(name)
                return Result()
            case Duty.HAND_OVER:
                return await self._hand_over(name)
            case duty:
                taking = duty is Duty.TAKE
        try:
            if taking and (wait := await self._take(name, resource)) is not None:
                return wait
            worker = await self._open(name, resource)
        except Unavailable as error:
            if error.status or name in self.items:
                raise
            _log.warning("cannot act for a node yet; tries again", worker=name, error=error.message)
            return Result(_ASK_AGAIN_S)
        except InputError as fault:
            self._stop_using(name, fault)
            return await self._refuse(resource, fault)
        if await self._begin_term_anew(worker):
            return Result(_TAKE_AGAIN_S)
        before, was_silent = worker.offer, bool(worker.seen.silent_because)
        if self._observer.is_due(worker) and (news := await self._observer.observe(worker)):
            self._lablets.wake(news)
        if was_silent and not worker.seen.silent_because and not worker.claims.complete:
            self._flushes.add(name)  # what could not be rebuilt can be now
        await self._observer.check_login(worker)
        await self._observer.ask_more(worker)
        worker.capacity = self._capacity(worker)
        worker.running = self._lablets.count_running(name)
        self._identify(resource, worker)
        if worker.offer != before:  # whether or not the Node can be written: the next run finds nothing new
            self._lablets.worker_changed(worker)
        try:
            leaving = await self._nodes.write(resource, worker, self._ownership.epochs.get(name, 0))
        except InputError as fault:
            return await self._refuse(resource, fault)
        except (Invalid, Forbidden) as error:
            return await self._refuse(resource, InputError(WorkerReason.NODE_REFUSED, error.message))
        if leaving:
            self._left[name] = resource.metadata.uid
            await self._forget(name)
            return Result()
        return Result(self._observer.next_s(worker))

    async def _take(self, name: str, resource: CustomResource) -> Result | None:
        """Take a Node; return None if its worker is to be opened at once."""
        await self._nodes.check(name, resource.metadata.uid)
        if not await self._ownership.acquire(name, resource.metadata.uid):
            return Result(_TAKE_AGAIN_S)
        if self._ownership.plan.planned.get(name) != self._ctx.replica:
            return None
        self._queue.add(name)  # behind the others that a replica left when it died: their Leases expire
        return Result()

    def _capacity(self, worker: Worker) -> Capacity:
        """Return what a worker offers, without the ports that others hold there."""
        offered = capacity(worker.spec, worker.seen.usage, self._ports.range, self._nodes.known(worker.name))
        own = worker.spec.port_range
        first, last = self._ports.range if own is None else (own.start, own.end)
        left = sum(first <= port <= last for _, port in worker.lab_index.ports - worker.claims.ports.holders.keys())
        return offered.without_ports(worker.claims.count_foreign(first, last) + left)

    async def _begin_term_anew(self, worker: Worker) -> bool:
        """Take a Node anew whose agent has heard a later owner than this one; return whether that was so.

        The later one is another replica, or was one in a time that the cluster has forgotten: etcd was restored. The
        agent refuses each of our requests until our number is the greater one. A Lease that is another's stays so.
        """
        name, heard = worker.name, worker.connection.heard_term()
        ours, beyond = self._ownership.term(name), self._ownership.epoch_in(name, heard)
        if heard <= ours or beyond is None:
            return False
        _log.warning("an agent has heard a later owner; takes the node anew", worker=name, heard=heard, ours=ours)
        await self._ownership.take_anew(name, beyond=beyond)
        return True

    def _identify(self, resource: CustomResource, worker: Worker) -> None:
        """Record the identity of the worker's controller, and whether an earlier CMLWorker has it, or its ports."""
        seen = worker.seen
        lab_ids = seen.lab_ids if seen.labs_at > NEVER else None
        published, url = worker_status(resource).identity or (), seen.access.url or worker.access.url
        if lab_ids is None and worker.claims.complete and not worker.claims.claims and url != worker.access.url:
            published, url = (), worker.access.url  # nothing of ours is where it was, which may be another's by now
        worker.identity = evidence_of(url, seen.host, lab_ids, published)
        entries = entries_of(worker.identity, lab_ids or frozenset())
        reached = self._identities.sharing(entries_of_address(resource))
        worker.same_as = same_controller(resource, entries, self._identities.sharing(entries)) or same_address(
            resource, reached, self._ports.range
        )
        worker.unapproved = unapproved(resource)

    async def _clear(self, name: str, resource: CustomResource | None) -> Result:
        """Clear up after a CMLWorker that is gone, or of which only our copy does not know it yet."""
        if resource is None:
            self._left.pop(name, None)
            if name in self._ownership.epochs or self._ownership.membership.leads():
                if await self._ctx.api.workers.metadata_only.get(name) is not None:
                    return Result(_TAKE_AGAIN_S)  # our watch is late
                await self._nodes.remove(name)
        await self._forget(name)
        return Result()

    async def _hand_over(self, name: str) -> Result:
        """Finish what is in hand for a worker, then release its node: it is planned for another replica."""
        worker = self.items.get(name)
        if worker is not None:
            worker.parked = True
            await self._lablets.wait_idle(name, _PARK_S)
            if self._ownership.plan.act(name) is Duty.OWN:  # whom it was for has gone
                worker.parked = False
                self._lablets.worker_changed(worker)
                return Result(_TAKE_AGAIN_S)
            await worker.write_rest()
        await self._ownership.release(name)
        await self._forget(name)
        _log.info("node handed over", worker=name, to=self._ownership.plan.planned.get(name))
        return Result()

    async def _refuse(self, resource: CustomResource, fault: InputError) -> Result:
        name = resource.metadata.name
        if isinstance(fault, NodeConflict):
            await self._forget(name)  # our Lease would make another owner's Node look alive
        guard = self._ownership.guard(name) if name in self._ownership.epochs else None
        if resource.metadata.deletion_timestamp is not None and await self._nodes.abandon(resource, guard):
            self._left[name] = resource.metadata.uid
            await self._forget(name)
            return Result()
        await self._nodes.refuse(resource, fault, owner=self._ownership.epochs.get(name))
        return Result(self._settings.reconcile_s)

    def _stop_using(self, name: str, fault: InputError) -> None:
        """Record that a CMLWorker was made unusable, and queue the lablets of its worker."""
        worker = self.items.get(name)
        if worker is not None and self._observer.refuse(worker, fault):
            self._lablets.wake(list(worker.claims.claims))

    async def _open(self, name: str, resource: CustomResource) -> Worker:
        worker = self.items.get(name)
        if worker is not None and worker.raw_spec == resource.spec:
            return worker
        spec = parse_worker_spec(resource.spec)
        if worker is None:
            return await self._open_first(name, resource, spec)
        if worker.spec != spec:
            connection = self._connector.connect(name, spec, worker.guard, worker.connection)
            before, worker.connection = worker.connection, connection
            self._observer.reconnected(worker, before.spec)
            await before.close()
        worker.raw_spec = resource.spec
        return worker

    async def _open_first(self, name: str, resource: CustomResource, spec: CMLWorkerSpec) -> Worker:
        """Read the claims of a worker whose Node was just taken."""
        guard = self._ownership.guard(name)
        connection = self._connector.connect(name, spec, guard)
        finalizer = Finalizer(self._ctx, name, guard, self._resources.get)
        claims = ClaimStore(
            self._ctx,
            self._counters,
            self._settings,
            name,
            resource.metadata.uid,
            guard=guard,
            turns=self._claim_writes,
            hold=finalizer.hold,
            flush_in=lambda after_s: self._flushes.add(name, after_s=after_s),
            saved=self._lablets.claims_saved,
        )
        try:
            await claims.load()
            guard()  # another replica may own it already
        except (InputError, OutsideError, Fenced):
            await connection.close()
            raise
        connection.labs.recall({claim.lab_id: claim.started_at > 0 for claim in claims.claims.values() if claim.lab_id})
        worker = Worker(name, resource.metadata.uid, resource.spec, connection, claims, guard, finalizer)
        status = worker_status(resource)
        worker.seen.access = access_in(status.identity or (), status.user or "")
        if status.observed_generation == resource.metadata.generation:
            worker.seen.recall(status)
        self._fleet.add(worker)
        self._lablets.worker_changed(worker)
        if not claims.complete:
            self._flushes.add(name)
        return worker

    async def _forget(self, name: str) -> None:
        self._ownership.forget(name)
        self._nodes.forget(name)
        for worker in self._fleet.pop_given_up(name):
            await worker.connection.close()

    async def close(self) -> None:
        """Write what is left and close every connection."""
        for worker in list(self.items.values()):
            await worker.write_rest()
            await worker.connection.close()
        for given_up in self._fleet.pop_all_given_up():  # their turn did not come any more
            await given_up.connection.close()
        if self._ownership.membership.living() <= {self._ctx.replica}:  # another one would write its own address
            await asyncio.gather(*(self._withdraw(worker) for worker in list(self.items.values())))

    async def _withdraw(self, worker: Worker) -> None:
        try:
            await self._nodes.withdraw(worker.name, worker.guard)
        except (OutsideError, Fenced) as error:
            _log.warning("the Node still declares a kubelet API", worker=worker.name, error=str(error))
