"""The Leases of Nodes: the stock node controller watches them, and the replica that owns a Node renews its Lease."""

from typing import Final

from vkprovider.lablet import names
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.runtime.leases import LeaseKind


class NodeConflict(InputError):  # noqa: N818 (named as its reason)
    """A Node or a Node Lease of a worker's name is not of this installation: nothing may be done for the worker."""

    def __init__(self, message: str) -> None:
        super().__init__(WorkerReason.NODE_CONFLICT, message)


def _worker(name: str, uid: str) -> ObjectRef:
    return ObjectRef(wellknown.API_VERSION, "CMLWorker", "", name, uid)


def _foreign(lease: str) -> NodeConflict:
    return NodeConflict(
        f"Lease {wellknown.NODE_LEASE_NAMESPACE}/{lease} exists and is not of this installation; rename the CMLWorker, "
        "or delete that node"
    )


NODES: Final = LeaseKind(
    noun="node",
    key="worker",
    namespace=wellknown.NODE_LEASE_NAMESPACE,
    seconds=40,  # as a kubelet sets it
    labels={wellknown.LABEL_MANAGED_BY: wellknown.MANAGER},
    name_of=names.node_name,
    key_of=names.worker_of,
    about=_worker,
    taken_over=WorkerReason.TAKEN_OVER,
    owner=_worker,
    foreign=_foreign,
)
"""The Nodes of CMLWorkers, by the CMLWorker's name. It owns the Lease, so that the epoch outlives a deleted Node."""
