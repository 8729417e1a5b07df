"""The Node, its Lease and the status of a CMLWorker, written when they differ."""

import asyncio
import contextlib
from collections.abc import Callable, Container, Sequence
from typing import Final, Protocol

import structlog

from vkprovider.lablet import names
from vkprovider.lablet.models.status import WorkerStatus
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.controllers.worker import finalizer
from vkprovider.labs.controllers.worker.status import WorkerStatusWriter
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.document import may_have_claims
from vkprovider.labs.pure.worker import node as nodes
from vkprovider.labs.pure.worker.capacity import Capacity
from vkprovider.labs.pure.worker.endpoint import KubeletEndpoint, kubelet_version, withdrawal
from vkprovider.labs.pure.worker.node import NodeView, unhealthy
from vkprovider.labs.pure.worker.registration import Bearer
from vkprovider.labs.settings.cluster import WorkerSettings
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict, Forbidden, InputError, NotFound, OutsideError
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import CustomResource, Metadata, Node
from vkprovider.platform.runtime.context import Context, ref_of
from vkprovider.platform.runtime.leases import LeaseKind
from vkprovider.platform.times import iso

_log: Final = structlog.get_logger(__name__)
_EVERY_S: Final = 300.0
"""How often the API server is asked; each replica asks once for all of its Nodes."""


class KubernetesVersion:
    """The API server's version, as a kubelet's.

    Attributes:
        kubelet: As last read; "" before.
    """

    def __init__(self, ctx: Context) -> None:
        """Create it; nothing is read yet."""
        self._ctx = ctx
        self._asking = asyncio.Lock()
        self._next_at = 0.0
        self.kubelet = ""

    async def look(self) -> str:
        """Return the version for Nodes, and ask the API server for its own if that was long ago.

        Raises:
            OutsideError: It was never read, and the API server did not answer.
        """
        async with self._asking:
            if self.kubelet and self._ctx.now() < self._next_at:
                return self.kubelet
            try:
                self.kubelet = kubelet_version(await self._ctx.kube.version())
            except Forbidden as error:
                self.kubelet = self.kubelet or kubelet_version("")
                _log.warning("the API server's version may not be read", error=str(error), nodes=self.kubelet)
            except OutsideError:
                if not self.kubelet:
                    raise
            self._next_at = self._ctx.now() + _EVERY_S
            return self.kubelet


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


class Endpoints(Protocol):
    """Serves the kubelet API of our Nodes."""

    async def open(self, worker: str) -> KubeletEndpoint | None:
        """Serve the Node of a worker that this replica owns, if it is not served yet; None if it cannot be."""


def slim(node: Node) -> Node:
    """Reduce a Node to what a replica needs that does not own it: that it exists, and whose it is."""
    seen = node.metadata
    whose = {key: value for key, value in seen.annotations.items() if key == wellknown.ANNOTATION_INSTALLATION}
    return Node(Metadata(seen.name, uid=seen.uid, resource_version=seen.resource_version, annotations=whose))


class NodeWriter:
    """Writes Nodes and the statuses of their CMLWorkers.

    Attributes:
        objects: The Nodes of all workers; complete only if this replica owns them.
    """

    def __init__(
        self,
        ctx: Context,
        settings: WorkerSettings,
        owned: Container[str],
        bearers: Callable[[str], Sequence[Bearer]],
        endpoints: Endpoints,
        kubernetes: KubernetesVersion,
        *,
        page_url: str,
    ) -> None:
        """Create the writer.

        Args:
            ctx: The replica.
            settings: What all Nodes say.
            owned: Workers whose Nodes this replica owns; other Nodes are kept without labels, see `slim`.
            bearers: Returns the agents that bear a worker's name.
            endpoints: Serves the kubelet API.
            kubernetes: The version that Nodes claim.
            page_url: Where people reach the page; "" if that is not known.
        """
        self._ctx = ctx
        self._settings = settings
        self._owned = owned
        self._endpoints = endpoints
        self._kubernetes = kubernetes
        self.objects: Informer[Node] = Informer(
            ctx.kube,
            ctx.api.nodes.path,
            Node,
            name="nodes",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_VNODE}",
            slim=lambda node: node if names.worker_of(node.metadata.name) in owned else slim(node),
        )
        self._read_nodes: dict[str, Node] = {}
        self._agreed: dict[
            str, tuple[Node, NodeView]
        ] = {}  # Nodes that say what they should; compared every few seconds
        self._status = WorkerStatusWriter(ctx, bearers, page_url)

    # --------------------------------------------------------------------------------------------- writing

    async def write(self, resource: CustomResource, worker: Worker, epoch: int) -> bool:
        """Bring Node and status up to date; return whether the deleted worker is gone for good.

        Raises:
            NodeConflict: A Node of that name is not of this installation.
        """
        if await self._leave(resource, worker):
            return True
        kubelet_version = await self._kubernetes.look()
        view = self._view(resource, worker, await self._endpoints.open(worker.name), kubelet_version)
        await self._write_node(view, worker.guard)
        await worker.finalizer.follow(resource, needed=lambda: _is_needed(resource, worker))
        await self._status.report(resource, worker, epoch)
        return False

    async def abandon(self, resource: CustomResource, guard: Guard | None) -> bool:
        """Release a deleted, unusable CMLWorker if its annotation asks for that; return whether it does.

        Args:
            resource: The CMLWorker.
            guard: Called right before every write; None if the Node is not this replica's.
        """
        if not _is_abandoned(resource):
            return False
        name, claims = resource.metadata.name, names.claims_name(resource.metadata.name)
        note = f"labs of this installation may be left on it; their claims were in ConfigMap {claims}"
        self._status.warn(resource, WorkerReason.ABANDONED, note)
        await self.remove(name, guard)
        await self._ctx.api.config_maps.delete(claims, guard=guard)
        self._status.forget(resource.metadata.uid)
        with contextlib.suppress(NotFound):
            await finalizer.write(self._ctx, resource, needed=False, guard=guard)
        return True

    async def _clear(self, worker: Worker) -> None:
        """Delete the Node and the claims of a deleted CMLWorker.

        The garbage collector would delete the claims as well, but not once the CRD is gone: rows of lablets that have
        ended would then keep their LabletDefinition `InUse` for ever.
        """
        await self.remove(worker.name, worker.guard)
        await worker.claims.delete()

    async def refuse(self, resource: CustomResource, fault: InputError, *, owner: int | None) -> None:
        """Report on the CMLWorker, and on its Node if that is ours, why it cannot be used."""
        health = unhealthy(fault.reason, fault.message)
        known = WorkerStatus() if owner is None else WorkerStatus(owner=self._ctx.replica, epoch=owner)
        await self._status.write(resource, health, known)
        self._status.warn(resource, fault.reason, fault.message)
        node = self._node(names.node_name(resource.metadata.name))
        if node is None or not nodes.ours(node, self._ctx.installation) or isinstance(fault, NodeConflict):
            return
        now = iso(self._ctx.now_unix)
        ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
        if ready is not None and (ready.status, ready.reason, ready.message) == ("False", fault.reason, fault.message):
            return
        condition = {
            "type": "Ready",
            "status": "False",
            "reason": fault.reason,
            "message": fault.message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        status = {"status": {"conditions": [condition]}}
        await self._ctx.api.nodes.metadata_only.patch_status(node.metadata.name, status, strategic=True)

    async def check(self, worker: str, uid: str) -> None:
        """Check that the Node of a CMLWorker with a UID, if there is one, is ours.

        Raises:
            NodeConflict: A Node of that name is not of this installation; nothing may be done for the worker.
        """
        seen = self.objects.items.get(names.node_name(worker))
        if seen is None or not nodes.ours(seen, self._ctx.installation):
            await self._find(worker, uid)

    async def _find(self, worker: str, uid: str) -> Node | None:
        """Find a worker's Node, if there is one.

        Raises:
            NodeConflict: A Node of that name is not of this installation; nothing may be done for the worker.
        """
        name = names.node_name(worker)
        node = self._node(name)
        if node is None and (node := await self._ctx.api.nodes.get(name)) is not None:
            self._read_nodes[name] = node
        if node is not None and not nodes.ours(node, self._ctx.installation, uid):
            raise NodeConflict(
                f"Node {name} exists and is not of this installation; rename the CMLWorker, or delete that node",
            )
        return node

    async def _write_node(self, view: NodeView, guard: Guard) -> None:
        name, now, api = names.node_name(view.worker), self._ctx.now_unix, self._ctx.api.nodes
        node = await self._find(view.worker, view.uid)
        if node is None:
            with contextlib.suppress(Conflict):  # it exists already: its event queues the worker again
                await api.metadata_only.create(nodes.create(view, now), guard=guard)
            return
        known = self._agreed.get(name)
        if known is not None and known[0] is node and known[1] == view:
            return
        self._emit_ready(node, view, guard)
        with contextlib.suppress(Conflict, NotFound):  # what is known of it is old: its event queues the worker again
            changes = nodes.metadata_patch(node, view)
            if changes is not None:
                node = await api.patch(name, changes, guard=guard)
            status = nodes.status_patch(node, view, now)
            if status is not None:
                await api.metadata_only.patch_status(name, status, guard=guard)
            if changes is None and status is None:
                self._agreed[name] = node, view

    def _emit_ready(self, node: Node, view: NodeView, guard: Guard) -> None:
        """Emit an Event on the Node when its worker went away or came back."""
        before = next((c.status for c in node.status.conditions if c.type == "Ready"), "")
        health = view.health
        if before == ("True" if health.ready else "False"):
            return
        ref = ObjectRef("v1", "Node", "", node.metadata.name, node.metadata.uid)
        self._ctx.events.emit(ref, "Normal" if health.ready else "Warning", health.reason, health.message, guard=guard)

    def _node(self, name: str) -> Node | None:
        """Return a worker's Node if all of it is known: by the watch, or because it was read when it became ours."""
        seen, read = self.objects.items.get(name), self._read_nodes.get(name)
        if seen is not None and not seen.metadata.labels and read is not None:
            return read if read.metadata.resource_version == seen.metadata.resource_version else None
        self._read_nodes.pop(name, None)
        return seen if seen is not None and seen.metadata.labels else None

    def known(self, worker: str) -> Node | None:
        """Return a worker's Node as it is known now; None unless all of it is."""
        return self._node(names.node_name(worker))

    def forget(self, worker: str) -> None:
        """Drop what was read of a worker's Node, unless this replica owns it; the next event slims the cached copy."""
        if worker not in self._owned:
            self._read_nodes.pop(names.node_name(worker), None)
            self._agreed.pop(names.node_name(worker), None)

    def _view(
        self, resource: CustomResource, worker: Worker, endpoint: KubeletEndpoint | None, kubelet_version: str
    ) -> NodeView:
        """Return the Node that follows from the state of its worker."""
        address = nodes.address_of(worker.spec)
        capacity, allocatable = (worker.capacity or Capacity()).amounts()
        return NodeView(
            worker=worker.name,
            uid=resource.metadata.uid,
            installation=self._ctx.installation,
            spec=worker.spec,
            version=worker.seen.version,
            ip=worker.seen.ip,
            dns="" if nodes.is_ip(address) else address,
            endpoint=endpoint,
            capacity=capacity,
            allocatable=allocatable,
            health=worker.health,
            taint_effect=self._settings.taint_effect,
            kubelet_version=kubelet_version,
            cordoned=worker.unapproved is not None,
            identified=self._settings.provider_id,
            images=worker.seen.images if worker.spec.images == "On" else (),
        )

    # --------------------------------------------------------------------------------------------- the CMLWorker

    async def _leave(self, resource: CustomResource, worker: Worker) -> bool:
        """Retire a deleted CMLWorker: cordon, wait for its lablets, then remove its Node."""
        if resource.metadata.deletion_timestamp is None:
            return False
        claims, abandoned = worker.claims.claims, _is_abandoned(resource)
        if abandoned and claims:
            left = ", ".join(sorted(claim.title for claim in claims.values()))
            self._ctx.events.emit(
                ref_of(resource, "CMLWorker"), "Warning", WorkerReason.ABANDONED, f"labs left behind: {left}"
            )

        def is_needed() -> bool:
            return not abandoned and (worker.running > 0 or _is_needed(resource, worker))

        if await worker.finalizer.drop(resource, needed=is_needed, clear=lambda: self._clear(worker)):
            self._status.forget(resource.metadata.uid)
            return True
        node = self._node(names.node_name(worker.name))
        if node is not None and not node.spec.unschedulable:
            body = {"spec": {"unschedulable": True}}
            await self._ctx.api.nodes.metadata_only.patch(node.metadata.name, body, guard=worker.guard)
        return False

    async def withdraw(self, worker: str, guard: Guard) -> None:
        """Declare no kubelet API on a worker's Node any more."""
        node = self.known(worker)
        patch = withdrawal(node) if node is not None else None
        if node is not None and patch is not None:
            with contextlib.suppress(Conflict, NotFound):
                await self._ctx.api.nodes.metadata_only.patch_status(node.metadata.name, patch, guard=guard)

    async def remove(self, worker: str, guard: Guard | None = None) -> None:
        """Delete a worker's Node, if it is of this installation.

        It is read first: a CMLWorker may be deleted before the watch has shown the Node that was just created for it.
        """
        node = await self._ctx.api.nodes.get(names.node_name(worker))
        if node is None or not nodes.ours(node, self._ctx.installation):
            return
        with contextlib.suppress(Conflict):
            await self._ctx.api.nodes.delete(node.metadata.name, uid=node.metadata.uid, guard=guard)


def _is_abandoned(resource: CustomResource) -> bool:
    """Return whether a CMLWorker does not wait for its lablets once it is deleted."""
    return resource.metadata.annotations.get(names.ANNOTATION_ABANDON) == "true"


def _is_needed(resource: CustomResource, worker: Worker) -> bool:
    """Return whether a CMLWorker must wait for lablets: it has claims, or had some that are not rebuilt yet."""
    return bool(worker.claims.claims) or (may_have_claims(resource) and not worker.claims.complete)
