"""The part of labs: Pod → lab, the checks of its ports, what is left of it, and its downloads."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vkprovider.labs.controllers.lablet.archive import Archive
from vkprovider.labs.controllers.lablet.effects import Effects
from vkprovider.labs.controllers.lablet.exports import Exports
from vkprovider.labs.controllers.lablet.gather import Environments, Gatherer
from vkprovider.labs.controllers.lablet.passes import Passes, Renewals
from vkprovider.labs.controllers.lablet.ports import PortCheck, Slices, Twins
from vkprovider.labs.controllers.lablet.publish import Publisher
from vkprovider.labs.controllers.lablet.reconciler import Lablets
from vkprovider.labs.controllers.worker.connection import Readers
from vkprovider.labs.http.archives import ArchiveHandlers
from vkprovider.labs.http.lablets import Downloads, Logins
from vkprovider.labs.wiring.base import Base
from vkprovider.labs.wiring.metrics import labs_measures
from vkprovider.labs.wiring.parts.definitions import DefinitionsPart
from vkprovider.labs.wiring.parts.nodes import NodesPart
from vkprovider.labs.wiring.parts.sessions import SessionsPart
from vkprovider.platform.runtime.parts import Part, Route, Work

_FINISH_S: Final = 4.0
"""How long steps in hand may take when the replica is asked to end; the next owner continues what is not done then."""
NO_LABS: Final[Mapping[str, Any]] = {"instances_managed": 0, "instances_running": 0}
"""The lines of `GET /health` about labs, as long as there are none."""


@dataclass(frozen=True, kw_only=True)
class LabsPart(Part):
    """The part, and what other parts use of it.

    Attributes:
        lablets: The reconciler.
        passes: The periodic pass.
        archive: What learners left.
        exports: Labs and what is left of them, for downloads.
    """

    lablets: Lablets
    passes: Passes
    archive: Archive
    exports: Exports


def labs(
    base: Base,
    definitions: DefinitionsPart,
    nodes: NodesPart,
    sessions: SessionsPart,
    *,
    announce: Callable[[str, str, str], None],
) -> LabsPart:
    """Build the part.

    Args:
        base: What all parts share.
        definitions: The content of labs.
        nodes: The workers.
        sessions: The learners' sessions.
        announce: Called with a worker, a lab's id and a text for its open consoles when a learner's time ends soon.
    """
    ctx, settings, objects, queues, index = base.ctx, base.settings, base.objects, base.queues, base.index
    workers, contents = base.fleet.items, definitions.definitions.contents
    archive = Archive(ctx, settings.lablets, base.membership.leads)
    renewals = Renewals(index, workers, definitions.definitions.items)
    ports = PortCheck(ctx, settings.ports, index.items, workers, contents, queues.lablets.add, queues.portcheck)
    readers = Readers(nodes.connector.open_reader)
    exports = Exports(ctx, workers, objects.workers.items.get, objects.pods.items, readers)
    slices = Slices(ctx, workers, objects.slices, settings.workers.reconcile_s)
    lablets = _lablets(base, definitions, nodes, sessions, archive, renewals, ports, slices, announce=announce)
    passes = Passes(settings.workers.reconcile_s, index, workers, objects.workers.items.get, objects.claims, renewals)

    async def finish() -> None:
        lablets.close()
        await queues.lablets.drain(_FINISH_S)

    return LabsPart(
        lablets=lablets,
        passes=passes,
        archive=archive,
        exports=exports,
        informers=(objects.pods, objects.claims, objects.slices),
        works=(Work(queues.lablets, lablets.reconcile), Work(queues.portcheck, ports.check)),
        loops={
            "readers": readers.run,  # closes idle connections of downloads
            "passes": passes.run,  # looks at every lablet and its claims again
            "slices": slices.run,  # deletes slices that stand for no lablet any more
            "archive": archive.run,  # deletes what learners left long ago
        },
        measures=tuple(labs_measures(base)),
        routes=_routes(base, sessions, archive, exports),
        health=lambda: _health(base),
        stats=lambda: _stats(base),
        fenced=queues.lablets.interrupt,
        finish=finish,
    )


def _lablets(
    base: Base,
    definitions: DefinitionsPart,
    nodes: NodesPart,
    sessions: SessionsPart,
    archive: Archive,
    renewals: Renewals,
    ports: PortCheck,
    slices: Slices,
    *,
    announce: Callable[[str, str, str], None],
) -> Lablets:
    """Build the reconciler of lablets."""
    ctx, counters, settings, index, wake = base.ctx, base.counters, base.settings, base.index, base.queues.lablets.add
    items, contents, deliveries = definitions.definitions.items, definitions.definitions.contents, sessions.sessions
    return Lablets(
        ctx,
        counters,
        settings.lablets,
        index,
        base.fleet.items,
        Gatherer(
            ctx,
            index.items,
            items,
            contents,
            deliveries,
            base.objects.slices.items,
            definitions.given.timeouts,
            renewals.due,
        ),
        Effects(
            ctx,
            counters,
            settings.ports,
            settings.lablets.port_rest_s,
            nodes.workers.epoch,
            items,
            contents,
            archive,
            deliveries,
            Twins(index.items, base.objects.workers.items),
            Environments(ctx),
            slices,
        ),
        Publisher(ctx, counters, settings.lablets, contents, base.objects.slices.items, wake, announce),
        deliveries,
        ports,
        observe_soon=nodes.workers.observe_soon,
        wake=wake,
    )


def _routes(base: Base, sessions: SessionsPart, archive: Archive, exports: Exports) -> tuple[Route, ...]:
    async def created(namespace: str) -> str:
        found = await base.ctx.api.namespaces.get(namespace)
        return found.metadata.creation_timestamp if found is not None else ""

    archives = ArchiveHandlers(base.access, archive, created)
    login_url = sessions.sessions.login_url if sessions.has_lds else None
    return (
        Route("GET", "/labs/{id}/download", Downloads(base.access, exports, archive, created).handle),
        Route("GET", "/labs/{id}/login", Logins(base.access, exports, login_url).handle),
        Route("GET", "/namespaces/{namespace}/archives", archives.list),
        Route("GET", "/namespaces/{namespace}/archives/{id}", archives.get),
        Route("GET", "/archives", archives.list_own),
        Route("GET", "/archives/{id}", archives.get_own),
    )


def _health(base: Base) -> Mapping[str, Any]:
    ours = [lablet for lablet in base.index.items.values() if lablet.worker in base.fleet.items]
    return {"instances_managed": len(ours), "instances_running": sum(bool(lablet.ready_since) for lablet in ours)}


def _stats(base: Base) -> Mapping[str, Any]:
    counters, workers = base.counters, base.fleet.items
    states = Counter(
        str(lablet.state or "unreported") for lablet in base.index.items.values() if lablet.worker in workers
    )
    return {
        "lablets_by_state": dict(states),
        "claims": sum(len(worker.claims.claims) for worker in workers.values()),
        "steps": dict(counters.steps),
        "step_failures": dict(counters.step_failures),
        "transitions": {f"{old or 'none'} -> {new}": count for (old, new), count in counters.transitions.items()},
        "transitions_refused": counters.transitions_refused,
        "status_writes": counters.status_writes,
        "claim_writes": counters.claim_writes,
    }
