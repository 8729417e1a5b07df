"""Which nodes this replica may act for.

Two kinds of Lease. The *membership* Lease of each replica is renewed every few seconds and says that the replica lives.
The *node* Lease says which replica acts for the node; its `leaseTransitions` is the epoch. A node is taken from a
silent replica only after that replica's membership has been ended with the resourceVersion whose silence was observed:
a conflict there means that it lives. A replica that cannot renew its membership fences itself before anybody may think
it dead, and every side effect passes `guard` in the same step of the event loop.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import structlog

from vkprovider.api import names
from vkprovider.api.errors import Conflict, Fenced, InputError, NotFound, OutsideError
from vkprovider.api.objects import Lease
from vkprovider.controllers.context import Context
from vkprovider.domain import lease as leases
from vkprovider.domain.lease import Seen, Verdict
from vkprovider.kube.informer import Informer

_log: Final = structlog.get_logger(__name__)

MEMBER_PREFIX: Final = "vkprovider-replica-"
LABEL_MEMBER: Final = f"{names.GROUP}/replica"
_NODE_LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{names.NODE_LEASE_NAMESPACE}/leases"

_decoder: Final = msgspec.json.Decoder(Lease)


class Ownership:
    """The nodes of this replica.

    Attributes:
        epochs: Epoch by worker, of the nodes that are ours.
        lost: Called with a worker's name when its node is ours no more.
    """

    def __init__(self, ctx: Context, lost: Callable[[str], None] = lambda _: None) -> None:
        ttl_s = ctx.tuning.lease_ttl_s
        self._ctx = ctx
        self._renew_s = ttl_s / 5
        self._gone_s = ttl_s * 2 / 3
        self._fence_s = ttl_s * 8 / 15
        self._node_renew_s = min(15.0, leases.NODE_LEASE_SECONDS / 2.5)
        self._members_path = f"/apis/coordination.k8s.io/v1/namespaces/{ctx.namespace}/leases"
        self._member: Lease | None = None
        self._renew_began_at = -1e9
        self._held: dict[str, Lease] = {}
        self._renewed_at: dict[str, float] = {}
        self._seen: dict[str, Seen] = {}
        self.epochs: dict[str, int] = {}
        self.lost = lost
        self.members: Informer[Lease] = Informer(
            ctx.kube, self._members_path, Lease, name="replicas", label_selector=LABEL_MEMBER
        )
        self.members.add_handler(self._member_changed)

    # --------------------------------------------------------------------------------------------- the fence

    @property
    def is_fenced(self) -> bool:
        """Whether this replica must not act: it could not say that it lives for too long."""
        return leases.fenced(self._renew_began_at, self._ctx.now(), self._fence_s)

    def owns(self, worker: str) -> bool:
        """Tell whether this replica acts for a worker's node now."""
        return worker in self.epochs and not self.is_fenced

    def guard(self, worker: str) -> Callable[[], None]:
        """Make the check that runs right before every side effect for a worker."""

        def check() -> None:
            if not self.owns(worker):
                self._ctx.counters.fenced += 1
                raise Fenced(f"worker {worker} is not ours (any more)")

        return check

    # --------------------------------------------------------------------------------------------- membership

    def _member_changed(self, old: Lease | None, new: Lease | None) -> None:
        if new is not None:
            holder = new.metadata.name.removeprefix(MEMBER_PREFIX)
            self._seen[holder] = leases.observe(self._seen.get(holder), new, self._ctx.now())
        elif old is not None:
            self._seen.pop(old.metadata.name.removeprefix(MEMBER_PREFIX), None)

    async def run_membership(self) -> None:
        """Say that this replica lives, for ever."""
        while True:
            began = self._ctx.now()
            try:
                await self._renew_membership()
                self._renew_began_at = began
            except OutsideError as error:
                _log.warning("cannot renew the replica's Lease", replica=self._ctx.replica, error=str(error))
            await asyncio.sleep(max(0.1, self._renew_s * (0.9 + 0.2 * self._ctx.dice()) - (self._ctx.now() - began)))

    async def _renew_membership(self) -> None:
        ctx, name = self._ctx, MEMBER_PREFIX + self._ctx.replica
        body = leases.body(
            name=name,
            namespace=ctx.namespace,
            holder=ctx.replica,
            old=self._member,
            now=datetime.now(UTC),
            seconds=int(ctx.tuning.lease_ttl_s),
            metadata={"labels": {LABEL_MEMBER: "true", names.LABEL_MANAGED_BY: names.MANAGER}},
        )
        raw = msgspec.json.encode(body)
        try:
            if self._member is None:
                answer = await ctx.kube.create(self._members_path, raw, timeout_s=self._renew_s, urgent=True)
            else:
                answer = await ctx.kube.replace(
                    f"{self._members_path}/{name}", raw, timeout_s=self._renew_s, urgent=True
                )
        except NotFound:  # somebody thought us gone: the nodes may be taken by now
            self._member = None
            self._lose_all("its membership was ended by another replica")
            raise
        except Conflict:
            self._member = _decoder.decode(await ctx.kube.get(f"{self._members_path}/{name}", urgent=True))
            raise
        self._member = _decoder.decode(answer)

    def _lose_all(self, why: str) -> None:
        for worker in list(self.epochs):
            self._lose(worker, why)

    def _lose(self, worker: str, why: str) -> None:
        if self.epochs.pop(worker, None) is not None:
            _log.warning("node lost", worker=worker, replica=self._ctx.replica, why=why)
            self._held.pop(worker, None)
            self.lost(worker)

    # --------------------------------------------------------------------------------------------- nodes

    async def acquire(self, worker: str, uid: str) -> bool:
        """Take a worker's node if it is free or its holder is gone; True if it is ours.

        Args:
            worker: The CMLWorker's name.
            uid: Its UID; the Lease belongs to it, so that the epoch outlives a deleted Node.

        Raises:
            InputError: `NodeConflict`: a Lease of that name is not ours.
        """
        if self.is_fenced:
            return False
        if worker in self.epochs:
            return True
        name = names.node_name(worker)
        try:
            lease: Lease | None = _decoder.decode(await self._ctx.kube.get(f"{_NODE_LEASES}/{name}"))
        except NotFound:
            lease = None
        if (
            lease is not None
            and lease.metadata.annotations.get(names.ANNOTATION_INSTALLATION) != self._ctx.installation
        ):
            raise InputError(
                "NodeConflict",
                f"Lease {names.NODE_LEASE_NAMESPACE}/{name} exists and is not of this installation; rename the "
                "CMLWorker, or delete that node",
            )
        holder = lease.spec.holder_identity if lease is not None else None
        seen = self._seen.get(holder or "")
        silent_s = None if seen is None else self._ctx.now() - seen.at
        verdict = leases.judge(lease, self._ctx.replica, holder_silent_s=silent_s, ttl_s=self._gone_s)
        if verdict is Verdict.WAIT:
            return False
        if verdict is Verdict.TAKE and holder and seen is not None and not await self._end_membership(holder, seen):
            return False
        if verdict is Verdict.TAKE and holder:
            self._ctx.counters.takeovers += 1
            _log.info("node taken over", worker=worker, holder=holder)
        return await self._write(worker, lease, uid)

    async def _end_membership(self, holder: str, seen: Seen) -> bool:
        path = f"{self._members_path}/{MEMBER_PREFIX}{holder}"
        try:
            await self._ctx.kube.delete(path, resource_version=seen.resource_version)
        except NotFound:
            return True
        except Conflict:
            return False  # it lives: it has renewed since
        return True

    async def _write(self, worker: str, old: Lease | None, uid: str, *, holder: str | None = None) -> bool:
        name = names.node_name(worker)
        owner = {"apiVersion": names.API_VERSION, "kind": "CMLWorker", "name": worker, "uid": uid}
        body = leases.body(
            name=name,
            namespace=names.NODE_LEASE_NAMESPACE,
            holder=self._ctx.replica if holder is None else holder,
            old=old,
            now=datetime.now(UTC),
            seconds=leases.NODE_LEASE_SECONDS,
            metadata={
                "labels": {names.LABEL_MANAGED_BY: names.MANAGER},
                "annotations": {names.ANNOTATION_INSTALLATION: self._ctx.installation},
                "ownerReferences": [owner],
            },
        )
        return await self._put(worker, name, old, body)

    async def _put(self, worker: str, name: str, old: Lease | None, body: dict[str, Any]) -> bool:
        began, raw = self._ctx.now(), msgspec.json.encode(body)
        try:
            if old is None:
                answer = await self._ctx.kube.create(_NODE_LEASES, raw, urgent=True)
            else:
                answer = await self._ctx.kube.replace(f"{_NODE_LEASES}/{name}", raw, urgent=True)
        except (Conflict, NotFound):
            self._lose(worker, "its Lease was written by somebody else")
            return False
        lease = _decoder.decode(answer)
        if lease.spec.holder_identity == self._ctx.replica and not self.is_fenced:
            self._held[worker] = lease
            self._renewed_at[worker] = began
            self.epochs[worker] = lease.spec.lease_transitions or 0
            return True
        return False

    async def run_heartbeat(self) -> None:
        """Renew the Leases of our nodes, slowly: the stock node controller only wants to see them change."""
        while True:
            await asyncio.sleep(1.0)
            due = self._ctx.now() - self._node_renew_s
            for worker, lease in list(self._held.items()):
                if self._renewed_at[worker] > due or self.is_fenced:
                    continue
                try:
                    await self._write(worker, lease, _owner_uid(lease))
                except OutsideError as error:
                    self._renewed_at[worker] += 5.0
                    _log.warning("cannot renew a node's Lease", worker=worker, error=str(error))

    def forget(self, worker: str) -> None:
        """Stop acting for a worker that was deleted."""
        self.epochs.pop(worker, None)
        self._held.pop(worker, None)

    async def release(self) -> None:
        """Give all nodes back, then the membership, so that the next replica need not wait."""
        for worker, lease in list(self._held.items()):
            self.epochs.pop(worker, None)
            try:
                await self._write(worker, lease, _owner_uid(lease), holder="")
            except OutsideError as error:
                _log.warning("cannot release a node's Lease", worker=worker, error=str(error))
        self._held.clear()
        if self._member is not None:
            try:
                await self._ctx.kube.delete(f"{self._members_path}/{MEMBER_PREFIX}{self._ctx.replica}", urgent=True)
            except OutsideError as error:
                _log.warning("cannot delete the replica's Lease", error=str(error))


def _owner_uid(lease: Lease) -> str:
    return next((owner.uid for owner in lease.metadata.owner_references), "")
