"""The parts of Nodes and of tunnels: CMLWorker → Node, which replica owns it, and the agents beside workers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from vkprovider.labs.controllers.lablet.recovery import Recovery
from vkprovider.labs.controllers.worker.connection import Connector
from vkprovider.labs.controllers.worker.node_writer import NODES, NodeWriter
from vkprovider.labs.controllers.worker.observer import Observer
from vkprovider.labs.controllers.worker.reconciler import Workers
from vkprovider.labs.controllers.worker.tunnels import Registration, Tunnels
from vkprovider.labs.http.agents import Agents
from vkprovider.labs.pure.worker.identity import Identities
from vkprovider.labs.wiring.base import Base
from vkprovider.labs.wiring.metrics import nodes_measures, tunnels_measures
from vkprovider.labs.wiring.parts.definitions import DefinitionsPart
from vkprovider.labs.wiring.parts.kubelet import KubeletPart
from vkprovider.labs.wiring.tunnels import agent_tokens, carriers, dialled, listening
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import Node
from vkprovider.platform.runtime.ownership import Ownership
from vkprovider.platform.runtime.parts import Part, Route, Work


@dataclass(frozen=True, kw_only=True)
class TunnelsPart(Part):
    """The part, and what other parts use of it.

    Attributes:
        tunnels: The ways to workers through agents.
    """

    tunnels: Tunnels


def tunnels(base: Base, *, heard: Callable[[str], None], happened: Callable[[str], None]) -> TunnelsPart:
    """Build the part.

    Args:
        base: What all parts share.
        heard: Called by `Tunnels` with the name of an agent that came, left or says something else.
        happened: Called by `Tunnels` with the name of an agent that reports a change of its worker.

    Raises:
        InputError: `SettingInvalid`: a file that the settings name cannot be read.
    """
    ctx, settings, queues = base.ctx, base.settings, base.queues
    dialling = listening(settings.http_tunnel, ctx.process, partial(dialled, base.membership))
    known = Tunnels(carriers(settings.mqtt, ctx.process, dialling), heard=heard, happened=happened)
    registration = Registration(
        ctx,
        settings.tunnels,
        known,
        base.objects.workers.items,
        base.membership.leads,
        reconcile_s=settings.workers.reconcile_s,
    )
    return TunnelsPart(
        tunnels=known,
        works=(Work(queues.agents, registration.reconcile),),
        loops={f"tunnel-{kind}": hub.run for kind, hub in known.hubs.items()},  # to all workers by that way
        measures=tuple(tunnels_measures(known)),
        routes=(Route("GET", "/tunnel", Agents(agent_tokens(settings.http_tunnel), dialling).handle),),
    )


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
    known, ownership = definitions.definitions, _ownership(base, kubelet)
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


def _ownership(base: Base, kubelet: KubeletPart) -> Ownership:
    """Return which Nodes this replica owns; with one, all that it knows of it goes."""
    return Ownership(
        base.ctx,
        base.membership,
        NODES,
        base.objects.workers.items.keys,
        levels=base.settings.replica.workload_levels,
        wake=base.queues.workers.add,
        holders=(base.fleet, base.index, kubelet.opened, kubelet.kubelet),
    )
