"""Which Nodes this replica owns.

The *node* Lease says which replica acts for the node; its `leaseTransitions` is the epoch. Every replica computes the
same plan from the living replicas and the present owners (`domain.replica.plan`). A replica takes over a Node that is
planned for it as soon as no living replica owns it, and hands over one that is planned for another. Every side effect
passes `guard` in the same step of the event loop: it checks whether this replica may act at all, and whether the epoch
is still the one in which the work began.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

import structlog

from vkprovider.api import names
from vkprovider.api.errors import Fenced, InputError, OutsideError
from vkprovider.api.objects import Lease
from vkprovider.api.reasons import WorkerReason
from vkprovider.concurrency import at_most
from vkprovider.domain.replica import lease as leases
from vkprovider.domain.replica.lease import LeaseVerdict
from vkprovider.kube.client import Guard
from vkprovider.kube.events import ObjectRef
from vkprovider.runtime.context import Context
from vkprovider.runtime.leases import NodeLeases, epoch_of, owner_uid_of
from vkprovider.runtime.membership import Membership
from vkprovider.runtime.planning import Planning
from vkprovider.settings.cluster import ReplicaSettings

_log: Final = structlog.get_logger(__name__)

_RENEW_AGAIN_S: Final = 5.0
_AT_ONCE: Final = 16
"""Leases renewed or released at once."""
_CLEAR_UP_S: Final = 5.0


class Holder(Protocol):
    """Holds what is known of workers while this replica acts for them."""

    def given_up(self, worker: str) -> None:
        """Drop what is known of a worker: its Node was released or lost, and another replica may act for it."""


class Ownership:
    """The Nodes of this replica.

    Attributes:
        membership: This replica among the others.
        epochs: Epoch by worker, of the Nodes that this replica owns.
        plan: Which replica should own which Node, and what this one has to do about it.
        fenced_total: Side effects that were stopped because their Node was not this replica's (any more).
        takeovers_total: Nodes taken from a silent replica.
    """

    def __init__(
        self,
        ctx: Context,
        settings: ReplicaSettings,
        workers: Callable[[], Collection[str]],
        *,
        wake: Callable[[str], None],
        led: Callable[[], None],
        holders: Sequence[Holder] = (),
    ) -> None:
        """Create a replica that owns no Node.

        Args:
            ctx: The replica.
            settings: Its lease, and its levels of load.
            workers: Returns the names of all CMLWorkers.
            wake: Called with a worker whose Node is to be taken or handed over, or was lost.
            led: Called when this replica begins to lead.
            holders: Called in this order, before anything else runs, for every worker whose Node is not owned any more.
        """
        self._ctx = ctx
        self._wake = wake
        self._holders = holders
        self._node_renew_s = leases.NODE_LEASE_SECONDS / 2.35
        self._held: dict[str, Lease] = {}
        self._renewed_at: dict[str, float] = {}
        self._news = asyncio.Event()
        self.epochs: dict[str, int] = {}
        self.fenced_total = 0
        self.takeovers_total = 0
        self.membership = Membership(
            ctx,
            settings.lease_ttl_s,
            changed=self._news.set,
            ended=lambda: self._lose_all("its membership was ended by another replica"),
        )
        self._leases = NodeLeases(ctx, self._may_act)
        self.leases = self._leases.seen
        self.leases.add_handler(self._lease_changed)
        self.plan = Planning(
            ctx,
            settings.workload_levels,
            workers,
            self.membership,
            self._leases,
            epochs=self.epochs,
            news=self._news,
            wake=wake,
            led=led,
        )

    @property
    def is_fenced(self) -> bool:
        """Whether this replica must not act."""
        return self.membership.is_fenced

    def guard(self, worker: str) -> Guard:
        """Make the check that runs right before every side effect for a worker, for as long as it is ours now."""
        epoch = self.epochs.get(worker)

        def check() -> None:
            if epoch is None or self.epochs.get(worker) != epoch or self.is_fenced:
                self.fenced_total += 1
                raise Fenced(f"worker {worker} is not ours (any more)")

        return check

    def term(self, worker: str) -> int:
        """Return the number by which an agent tells this owner of a Node from earlier ones; 0 if it is not ours."""
        lease = self._held.get(worker)
        return leases.term_of(lease) if lease is not None else 0

    # --------------------------------------------------------------------------------------------- what the watch shows

    def _lease_changed(self, old: Lease | None, new: Lease | None) -> None:
        lease = new or old
        worker = names.worker_of(lease.metadata.name) if lease is not None else None
        if worker is None:
            return
        holder = new.spec.holder_identity if new is not None else None
        if worker in self.epochs and holder != self._ctx.replica and self._is_later(worker, old, new):
            self._lose(worker, f"its Lease shows {holder or 'nobody'}")
        if (old.spec.holder_identity if old is not None else None) != holder:
            self._news.set()

    def _is_later(self, worker: str, old: Lease | None, new: Lease | None) -> bool:
        """Return whether our watch, which may be late, shows something that happened after our own last write."""
        ours = self._held.get(worker)
        if ours is None:
            return True
        if new is None:
            return old is not None and old.metadata.uid == ours.metadata.uid
        return epoch_of(new) > epoch_of(ours)

    @property
    def oldest_renewal_s(self) -> float:
        """How long ago the Lease of an owned Node was renewed, of the one that has waited longest."""
        return self._ctx.now() - min((self._renewed_at[worker] for worker in self._held), default=self._ctx.now())

    # --------------------------------------------------------------------------------------------- taking

    async def acquire(self, worker: str, uid: str) -> bool:
        """Acquire a worker's Node if it is free or its holder is gone; return whether this replica owns it.

        Args:
            worker: The CMLWorker's name.
            uid: Its UID; the Lease belongs to it, so that the epoch outlives a deleted Node.

        Raises:
            NodeConflict: A Lease of that name is not of this installation.
            OutsideError: The API server refused or did not answer.
        """
        if self.is_fenced:
            return False
        if worker in self.epochs:
            return True
        # As the watch shows it, because a replica that dies leaves hundreds; if it was written since, the API server
        # refuses ours.
        seen = self._leases.known(worker)
        if seen is not None and await self._take(worker, seen, uid):
            return True
        return await self._take(worker, await self._leases.read(worker), uid)

    async def _take(self, worker: str, lease: Lease | None, uid: str) -> bool:
        """Write a Lease that is free, or whose holder is gone, in our name; return whether we own its Node then."""
        holder = lease.spec.holder_identity if lease is not None else None
        gone = not holder or self.membership.is_gone(holder)
        verdict = leases.judge(lease, self._ctx.replica, holder_is_gone=gone)
        if verdict is LeaseVerdict.WAIT:
            return False
        if verdict is LeaseVerdict.TAKE and holder and not await self.membership.end(holder):
            return False
        if not await self._write(worker, lease, uid, anew=True):
            return False
        if verdict is LeaseVerdict.TAKE and holder:
            self.takeovers_total += 1
            _log.info("node taken over", worker=worker, holder=holder)
            ref = ObjectRef(names.API_VERSION, "CMLWorker", "", worker, uid)
            note = f"replica {self._ctx.replica} acts for it; replica {holder} had been silent"
            self._ctx.events.emit(ref, "Warning", WorkerReason.TAKEN_OVER, note, guard=self.guard(worker))
        return True

    async def _write(self, worker: str, old: Lease | None, uid: str, *, anew: bool = False) -> bool:
        """Write the Lease of a Node; return whether this replica owns the Node by it."""
        began = self._ctx.now()
        lease = await self._leases.write(worker, old, uid, holder=self._ctx.replica, anew=anew)
        if not anew:
            lease = lease or await self._write_again(worker, old, holder=self._ctx.replica)
            if self._held.get(worker) is not old:
                return False  # it was released, or lost, meanwhile
        if lease is None:
            self._lose(worker, "its Lease was written by another replica")
            return False
        known = self._leases.known(worker)
        overtaken = known is not None and epoch_of(known) > epoch_of(lease)  # the news of it was quicker
        if overtaken or self.is_fenced:
            return False
        self._held[worker] = lease
        self._renewed_at[worker] = began
        self.epochs[worker] = epoch_of(lease)
        return True

    async def _write_again(self, worker: str, old: Lease | None, *, holder: str) -> Lease | None:
        """Write a Lease again after a conflict if it still shows this replica and epoch: an answer was lost."""
        seen = await self._leases.read(worker)
        if old is None or seen is None or seen.metadata.uid != old.metadata.uid:
            return None
        if seen.spec.holder_identity != self._ctx.replica or epoch_of(seen) != epoch_of(old):
            return None
        return await self._leases.write(worker, seen, owner_uid_of(seen), holder=holder)

    def _may_act(self) -> None:
        if self.is_fenced:
            self.fenced_total += 1
            raise Fenced("this replica could not renew its membership")

    # --------------------------------------------------------------------------------------------- keeping

    async def run_heartbeat(self) -> None:
        """Renew the Leases of our Nodes, slowly: the stock node controller only has to see them change.

        Several at once: one after the other, a thousand would be late where the API server takes a tenth of a second.
        """
        while True:
            await asyncio.sleep(1.0)
            due = self._ctx.now() - self._node_renew_s
            waiting = [worker for worker in self._held if self._renewed_at[worker] <= due]
            await at_most(_AT_ONCE, self._renew, waiting)

    async def _renew(self, worker: str) -> None:
        lease = self._held.get(worker)
        if lease is None or self.is_fenced:
            return
        try:
            await self._write(worker, lease, owner_uid_of(lease))
        except (OutsideError, InputError, Fenced) as error:
            if worker in self._renewed_at:
                self._renewed_at[worker] += _RENEW_AGAIN_S
            _log.warning("cannot renew a node's Lease", worker=worker, error=str(error))

    async def run_clear_up(self) -> None:
        """End the memberships of replicas that are gone, while this one leads, for ever."""
        while True:
            await asyncio.sleep(_CLEAR_UP_S)
            if not self.plan.leads:
                continue
            try:
                await self.membership.end_all_gone()
            except OutsideError as error:
                _log.warning("cannot end the membership of a replica that is gone", error=str(error))

    # --------------------------------------------------------------------------------------------- releasing

    def _lose_all(self, why: str) -> None:
        for worker in list(self.epochs):
            self._lose(worker, why)

    def _lose(self, worker: str, why: str) -> None:
        was_ours = worker in self.epochs
        self.forget(worker)
        if was_ours:
            _log.warning("node lost", worker=worker, replica=self._ctx.replica, why=why)
            self._wake(worker)

    def forget(self, worker: str) -> None:
        """Stop acting for a worker, and leave its Lease as it is."""
        was_ours = self.epochs.pop(worker, None) is not None
        self._held.pop(worker, None)
        self._renewed_at.pop(worker, None)
        if was_ours:
            for holder in self._holders:
                holder.given_up(worker)
            self._news.set()  # its CMLWorker may have been created again: nothing else would say that it is free

    async def release(self, worker: str) -> None:
        """Release a Node, so that the next owner need not wait; nothing may be in hand for it any more."""
        lease = self._held.get(worker)
        self.forget(worker)
        if lease is None:
            return
        try:
            if await self._leases.write(worker, lease, owner_uid_of(lease), holder="") is None:
                await self._write_again(worker, lease, holder="")  # a renewal was under way
        except (OutsideError, InputError, Fenced) as error:
            _log.warning("cannot release a node's Lease", worker=worker, error=str(error))

    async def release_all(self) -> None:
        """Release all Nodes."""
        await at_most(_AT_ONCE, self.release, list(self.epochs))
