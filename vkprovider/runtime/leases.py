"""The Leases of nodes on the API server: read, taken, renewed, released, each time with the version that was read."""

from typing import Any

from vkprovider.api import names
from vkprovider.api.errors import Conflict, InputError, NotFound
from vkprovider.api.objects import Lease
from vkprovider.api.reasons import WorkerReason
from vkprovider.domain.replica import lease as leases
from vkprovider.kube.client import Guard
from vkprovider.kube.flow import Lane
from vkprovider.kube.informer import Informer
from vkprovider.runtime.context import Context


class NodeConflict(InputError):  # noqa: N818 (named as its reason)
    """A Node or a Node Lease of a worker's name is not of this installation: nothing may be done for the worker."""

    def __init__(self, message: str) -> None:
        super().__init__(WorkerReason.NODE_CONFLICT, message)


class NodeLeases:
    """The Leases of all nodes.

    Attributes:
        seen: As the watch showed them last: which replica holds which Node, in which epoch.
    """

    def __init__(self, ctx: Context, may_act: Guard) -> None:
        """Describe the Leases; nothing is read before the informer runs.

        Args:
            ctx: The replica.
            may_act: Called right before every write.
        """
        self._ctx = ctx
        self._may_act = may_act
        self.seen: Informer[Lease] = Informer(
            ctx.kube,
            ctx.api.node_leases.path,
            Lease,
            name="node-leases",
            label_selector=f"{names.LABEL_MANAGED_BY}={names.MANAGER}",
        )

    def known(self, worker: str) -> Lease | None:
        """Return a worker's Lease as the watch showed it last; None if it shows none of this installation."""
        lease = self.seen.items.get(f"{names.NODE_LEASE_NAMESPACE}/{names.node_name(worker)}")
        return lease if lease is not None and self._is_ours(lease) else None

    async def read(self, worker: str) -> Lease | None:
        """Read a worker's Lease as it is now; None if there is none.

        Raises:
            NodeConflict: A Lease of that name is not of this installation.
            OutsideError: The API server refused or did not answer.
        """
        name = names.node_name(worker)
        lease = await self._ctx.api.node_leases.get(name)
        if lease is None:
            return None
        if not self._is_ours(lease):
            raise NodeConflict(
                f"Lease {names.NODE_LEASE_NAMESPACE}/{name} exists and is not of this installation; rename the "
                "CMLWorker, or delete that node",
            )
        return lease

    def _is_ours(self, lease: Lease) -> bool:
        return lease.metadata.annotations.get(names.ANNOTATION_INSTALLATION) == self._ctx.installation

    async def write(self, worker: str, old: Lease | None, uid: str, *, holder: str, anew: bool = False) -> Lease | None:
        """Write a worker's Lease; None if another client has written it since.

        Args:
            worker: The CMLWorker's name.
            old: What is replaced; None creates.
            uid: The CMLWorker's UID; the Lease belongs to it, so that the epoch outlives a deleted Node.
            holder: The replica that holds it; "" releases it.
            anew: The holder takes it over: the epoch grows.

        Raises:
            Fenced: This replica may not act.
            OutsideError: The API server refused or did not answer.
        """
        name = names.node_name(worker)
        owner = {"apiVersion": names.API_VERSION, "kind": "CMLWorker", "name": worker, "uid": uid}
        body: dict[str, Any] = leases.body(
            name=name,
            namespace=names.NODE_LEASE_NAMESPACE,
            holder=holder,
            old=old,
            now=self._ctx.now_utc,
            seconds=leases.NODE_LEASE_SECONDS,
            anew=anew,
            metadata={
                "labels": {names.LABEL_MANAGED_BY: names.MANAGER},
                "annotations": {names.ANNOTATION_INSTALLATION: self._ctx.installation},
                "ownerReferences": [owner],
            },
        )
        node_leases = self._ctx.api.node_leases
        write = node_leases.create if old is None else node_leases.replace
        try:
            return await write(body, lane=Lane.AT_ONCE, guard=self._may_act)
        except (Conflict, NotFound):
            return None


def epoch_of(lease: Lease) -> int:
    """Return the epoch that a Lease names."""
    return lease.spec.lease_transitions or 0


def owner_uid_of(lease: Lease) -> str:
    """Return the UID of the CMLWorker that owns a Lease."""
    return next((owner.uid for owner in lease.metadata.owner_references), "")
