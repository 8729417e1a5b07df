"""The part of Nodes: CMLWorker → Node, which replica owns it, its claims and its connection to CML."""

from dataclasses import dataclass

from vkprovider.labs.controllers.lablet.recovery import Recovery
from vkprovider.labs.controllers.worker.connection import Connector
from vkprovider.labs.controllers.worker.node_leases import NODES
from vkprovider.labs.controllers.worker.node_writer import NodeWriter
from vkprovider.labs.controllers.worker.observer import Observer
from vkprovider.labs.controllers.worker.reconciler import Workers
from vkprovider.labs.pure.worker.identity import Identities
from vkprovider.labs.wiring.base import Base
from vkprovider.labs.wiring.metrics.nodes import nodes_measures
from vkprovider.labs.wiring.parts.definitions import DefinitionsPart
from vkprovider.labs.wiring.parts.kubelet import KubeletPart
from vkprovider.labs.wiring.parts.tunnels import TunnelsPart
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import Node
from vkprovider.platform.runtime.ownership import Ownership
from vkprovider.platform.runtime.parts import Part, Work


@dataclass(frozen=True, kw_only=True)
class NodesPart(Part):
    """The part, and what other parts use of it.

    Attributes:
        ownership: Which Nodes this replica owns.
        identities: The CMLWorkers by what identifies their controllers.
        nodes: The Nodes of all workers.
        workers: The reconciler.
        connector: Opens connections to workers.
    """

    ownership: Ownership
    identities: Identities
    nodes: Informer[Node]
    workers: Workers
    connector: Connector


def nodes(
    base: Base, definitions: DefinitionsPart, kubelet: KubeletPart, tunnels: TunnelsPart, observer: Observer
) -> NodesPart:
    """Build the part.

    Args:
        base: What all parts share.
        definitions: What lablets need.
        kubelet: The kubelet API of our Nodes.
        tunnels: The ways to workers that cannot be dialled.
        observer: Asks workers what they have.
    """
    ctx, settings, objects, queues = base.ctx, base.settings, base.objects, base.queues
    known = definitions.definitions
    ownership = Ownership(
        ctx,
        base.membership,
        NODES,
        objects.workers.items.keys,
        levels=settings.replica.workload_levels,
        wake=queues.workers.add,
        holders=(base.fleet, base.index, kubelet.opened, kubelet.kubelet),
    )
    writer = NodeWriter(
        ctx,
        settings.workers,
        ownership.epochs,
        tunnels.tunnels.bearers,
        kubelet.kubelet,
        base.kubernetes,
        page_url=settings.http.page_url,
    )
    connector, identities = Connector(ctx, tunnels.tunnels, ownership.term), Identities()
    workers = Workers(
        ctx,
        settings.workers,
        ownership,
        objects.workers.items,
        base.fleet,
        base.index,
        writer,
        observer,
        counters=base.counters,
        identities=identities,
        connector=connector,
        ports=settings.ports,
        queue=queues.workers,
        flushes=queues.claims,
        recover=Recovery(ctx, base.index.items, known.contents, known.awaits_content).recover,
    )
    return NodesPart(
        ownership=ownership,
        identities=identities,
        nodes=writer.objects,
        workers=workers,
        connector=connector,
        owns=(ownership,),
        informers=(objects.workers, writer.objects, ownership.leases),
        works=(Work(queues.workers, workers.reconcile), Work(queues.claims, workers.flush)),
        loops={
            "plan": ownership.plan.run,  # decides which Nodes to take and to hand over
            "heartbeat": ownership.run_heartbeat,  # renews the Leases of our Nodes
        },
        measures=tuple(nodes_measures(base, ownership)),
        health=lambda: {"owned_nodes": sorted(ownership.epochs)},
        stats=lambda: {"fenced": ownership.fenced_total, "takeovers": ownership.takeovers_total},
        hand_over=workers.close,
    )
