"""The Leases of nodes on the API server: read, taken, renewed, released, each time with the version that was read."""

from typing import Any, Final

import msgspec

from vkprovider.api import names
from vkprovider.api.errors import Conflict, InputError, NotFound
from vkprovider.api.objects import Lease
from vkprovider.controllers.context import Context
from vkprovider.domain.replica import lease as leases
from vkprovider.kube.client import Guard
from vkprovider.kube.informer import Informer

_PATH: Final = f"/apis/coordination.k8s.io/v1/namespaces/{names.NODE_LEASE_NAMESPACE}/leases"

_decoder: Final = msgspec.json.Decoder(Lease)


class NodeConflict(InputError):  # noqa: N818 (named as its reason)
    """A Node or a Node Lease of a worker's name is not of this installation: nothing may be done for the worker."""

    def __init__(self, message: str) -> None:
        super().__init__("NodeConflict", message)


class NodeLeases:
    """The Leases of all nodes.

    Attributes:
        seen: What the watch told of them last: who has which node, in which epoch.
    """

    def __init__(self, ctx: Context, may_act: Guard) -> None:
        """Take the replica, and what is called right before every write."""
        self._ctx = ctx
        self._may_act = may_act
        self.seen: Informer[Lease] = Informer(
            ctx.kube,
            _PATH,
            Lease,
            name="node-leases",
            label_selector=f"{names.LABEL_MANAGED_BY}={names.MANAGER}",
        )

    def known(self, worker: str) -> Lease | None:
        """Give a worker's Lease as the watch told of it last."""
        return self.seen.items.get(f"{names.NODE_LEASE_NAMESPACE}/{names.node_name(worker)}")

    async def read(self, worker: str) -> Lease | None:
        """Read a worker's Lease as it is now; None if there is none.

        Raises:
            NodeConflict: A Lease of that name is not of this installation.
            OutsideError: The API server was no help.
        """
        name = names.node_name(worker)
        try:
            lease = _decoder.decode(await self._ctx.kube.get(f"{_PATH}/{name}"))
        except NotFound:
            return None
        if lease.metadata.annotations.get(names.ANNOTATION_INSTALLATION) != self._ctx.installation:
            raise NodeConflict(
                f"Lease {names.NODE_LEASE_NAMESPACE}/{name} exists and is not of this installation; rename the "
                "CMLWorker, or delete that node",
            )
        return lease

    async def write(self, worker: str, old: Lease | None, uid: str, *, holder: str, anew: bool = False) -> Lease | None:
        """Write a worker's Lease; None if somebody else has written it since.

        Args:
            worker: The CMLWorker's name.
            old: What is replaced; None creates.
            uid: The CMLWorker's UID; the Lease belongs to it, so that the epoch outlives a deleted Node.
            holder: Who holds it; "" releases it.
            anew: The holder takes it: the epoch grows.

        Raises:
            Fenced: This replica may not act.
            OutsideError: The API server was no help.
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
        kube, raw = self._ctx.kube, msgspec.json.encode(body)
        try:
            if old is None:
                answer = await kube.create(_PATH, raw, urgent=True, guard=self._may_act)
            else:
                answer = await kube.replace(f"{_PATH}/{name}", raw, urgent=True, guard=self._may_act)
        except (Conflict, NotFound):
            return None
        return _decoder.decode(answer)


def epoch_of(lease: Lease) -> int:
    """Give the epoch that a Lease names."""
    return lease.spec.lease_transitions or 0


def owner_uid_of(lease: Lease) -> str:
    """Give the UID of the CMLWorker that a Lease belongs to."""
    return next((owner.uid for owner in lease.metadata.owner_references), "")
