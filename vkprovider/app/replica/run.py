"""One replica: how its controllers are wired, and every loop that it runs, by name.

What wakes a controller adds a key to its queue; the queues and what is known of workers and lablets are built first.
"""

import asyncio
from collections import Counter as Tally
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final

import structlog

from vkprovider.app.kubelet import Kubelet, devices_of
from vkprovider.app.replica.changes import queue_all, queue_changes
from vkprovider.app.replica.ending import hand_over
from vkprovider.app.replica.informers import informers
from vkprovider.app.replica.loops import running, work
from vkprovider.app.replica.queues import Queues
from vkprovider.app.settings import Settings, node_definitions
from vkprovider.app.tunnels import agents_notes, carriers, dialled, listening
from vkprovider.content.objects import open_store
from vkprovider.content.parsing import shared_parser
from vkprovider.controllers.console.open import Opened
from vkprovider.controllers.counters import Counters
from vkprovider.controllers.definition.impediments import Impediments
from vkprovider.controllers.definition.ldscontent import LdsContent
from vkprovider.controllers.definition.packages import Packages
from vkprovider.controllers.definition.reconciler import Definitions
from vkprovider.controllers.lablet.archive import Archive
from vkprovider.controllers.lablet.effects import Effects
from vkprovider.controllers.lablet.environment import Environments
from vkprovider.controllers.lablet.exports import Exports
from vkprovider.controllers.lablet.gather import Gatherer
from vkprovider.controllers.lablet.index import LabletIndex
from vkprovider.controllers.lablet.passes import Passes
from vkprovider.controllers.lablet.portcheck import PortCheck
from vkprovider.controllers.lablet.publish import Publisher
from vkprovider.controllers.lablet.reconciler import Lablets
from vkprovider.controllers.lablet.recovery import Recovery
from vkprovider.controllers.lablet.renewals import Renewals
from vkprovider.controllers.lablet.twins import Twins
from vkprovider.controllers.session.inbox import Inbox
from vkprovider.controllers.session.sessions import Sessions
from vkprovider.controllers.session.strays import StraySessions, live_sessions
from vkprovider.controllers.timeline import Timeline
from vkprovider.controllers.worker.connection import Connector
from vkprovider.controllers.worker.fleet import Fleet
from vkprovider.controllers.worker.node_leases import NODES
from vkprovider.controllers.worker.node_writer import NodeWriter
from vkprovider.controllers.worker.observer import Observer
from vkprovider.controllers.worker.readers import Readers
from vkprovider.controllers.worker.reconciler import Workers
from vkprovider.controllers.worker.registration import Registration
from vkprovider.controllers.worker.tunnels import Tunnels
from vkprovider.domain.worker.identity import Identities
from vkprovider.domain.worker.secrets import secrets_of
from vkprovider.kube.informer import Informer
from vkprovider.lds.deployments import Deployments
from vkprovider.lds.grader import HttpGrader
from vkprovider.runtime.context import Context
from vkprovider.runtime.membership import Membership
from vkprovider.runtime.ownership import Ownership

_log: Final = structlog.get_logger(__name__)
_DEFINITIONS_S: Final = 10.0
"""How long lablets wait for their definitions to be read at start; one that cannot be read must not hold the rest."""
_FINISH_S: Final = 4.0
"""How long steps in hand may take when the replica is asked to end; the next owner continues what is not done then."""


class Replica:
    """One replica of the provider."""

    def __init__(
        self,
        ctx: Context,
        settings: Settings,
        *,
        deployments: Deployments | None = None,
        grader: HttpGrader | None = None,
    ) -> None:
        """Wire the controllers; nothing runs before `run`."""
        self.ctx = ctx
        self.counters = counters = Counters(timeline=Timeline(settings.replica.timeline_file))
        self.membership = membership = Membership(ctx, settings.replica.lease_ttl_s, agents_notes(settings.http_tunnel))
        leads = membership.leads
        self.queues = queues = Queues()
        self.objects = objects = informers(ctx)
        self.fleet = Fleet()
        parser = shared_parser()
        self.index = index = LabletIndex(ctx, counters, queues.lablets, self.fleet.items)
        self.deployments = deployments
        self.lds_content = LdsContent(deployments if settings.lds.refresh_content else None, queues.lds_content)
        self.packages = Packages(
            open_store(settings.content), parser, settings.packages, queues.packages, queues.definitions.add
        )
        given = node_definitions(settings.content.node_definitions_file)
        self.definitions = Definitions(
            ctx,
            objects.definitions.items.get,
            objects.runtime_classes.items.get,
            lambda: list(objects.content.items.values()),
            leads,
            self.packages,
            Impediments(ctx, objects.workers.items.values, settings.ports.range),
            parser=parser,
            node_definitions=given,
            ports_max=settings.ports.per_instance_max,
            reconcile_s=settings.workers.reconcile_s,
            form_stored=self.lds_content.changed,
            changed=index.definition_changed,
        )
        items, contents = self.definitions.items, self.definitions.contents
        self.opened, workers, pods = Opened(), self.fleet.items, objects.pods.items
        self.devices = devices_of(ctx, settings, index.items, workers, contents, self.opened, given)
        self.kubelet = Kubelet(ctx, settings.kubelet, pods, index.pods_on, workers, contents, self.devices)
        self.ownership = Ownership(
            ctx,
            membership,
            NODES,
            objects.workers.items.keys,
            levels=settings.replica.workload_levels,
            wake=queues.workers.add,
            holders=(self.fleet, index, self.opened, self.kubelet),
        )
        self.listening = listening(settings.http_tunnel, ctx.process, partial(dialled, membership))
        found = carriers(settings.mqtt, ctx.process, self.listening)
        self.tunnels = Tunnels(found, heard=self._agent_heard, happened=self._worker_changed)
        self.nodes = NodeWriter(ctx, settings.workers, self.ownership.epochs, self.tunnels.bearers, self.kubelet)
        connector, identities = Connector(ctx, self.tunnels, self.ownership.term), Identities()
        self.workers = Workers(
            ctx,
            settings.workers,
            self.ownership,
            objects.workers.items,
            self.fleet,
            index,
            self.nodes,
            Observer(ctx, settings.workers, self.definitions.need),
            counters=counters,
            identities=identities,
            connector=connector,
            ports=settings.ports,
            queue=queues.workers,
            flushes=queues.claims,
            recover=Recovery(ctx, index.items, contents, self.definitions.awaits_content).recover,
        )
        self.registration = Registration(
            ctx,
            settings.tunnels,
            self.tunnels,
            objects.workers.items,
            leads,
            reconcile_s=settings.workers.reconcile_s,
        )
        self.archive = Archive(ctx, settings.lablets, leads)
        self.inbox = Inbox(
            ctx,
            leads,
            changed=index.session_changed,
            claimed=index.has_session,
            retry_s=settings.http.events_retry_s,
        )
        self.strays = (
            StraySessions(ctx, deployments, self.inbox, items, live=partial(live_sessions, workers), leads=leads)
            if deployments is not None
            else None
        )
        self.sessions = Sessions(
            ctx,
            deployments,
            self.strays,
            grader,
            definitions=items,
            contents=contents,
            workers=workers,
            worker_secrets=lambda: secrets_of(objects.workers.items.values()),
            inbox=self.inbox,
            settings=settings.lds,
        )
        self.ports = PortCheck(
            ctx, settings.ports, index.items, workers, contents, queues.lablets.add, queues.portcheck
        )
        renewals = Renewals(index, workers, items)
        self.lablets = Lablets(
            ctx,
            counters,
            settings.lablets,
            index,
            workers,
            Gatherer(ctx, index.items, items, contents, self.sessions, renewals.due),
            Effects(
                ctx,
                counters,
                settings.ports,
                self.workers.epoch,
                items,
                contents,
                self.archive,
                self.sessions,
                Twins(index.items, objects.workers.items),
                Environments(ctx),
            ),
            Publisher(ctx, counters, settings.lablets, contents, queues.lablets.add),
            self.sessions,
            self.ports,
            observe_soon=self.workers.observe_soon,
            wake=queues.lablets.add,
        )
        self.passes = Passes(
            settings.workers.reconcile_s, index, workers, objects.workers.items.get, objects.claims, renewals
        )
        self.readers = Readers(connector.open_reader)
        self.exports = Exports(ctx, workers, objects.workers.items.get, pods, self.readers)
        self.session_events: Tally[str] = Tally()
        self.http_refusals: Tally[str] = Tally()
        self._listed, self._known = asyncio.Event(), asyncio.Event()
        objects.claims.add_handler(self.passes.claims_changed)
        objects.workers.add_handler(identities.changed)
        for pod_changed in (index.pod_changed, self.inbox.pod_changed, self.kubelet.stories.pod_changed):
            objects.pods.add_handler(pod_changed)
        objects.content.add_handler(self.definitions.content_changed)
        queue_changes(objects, self.nodes.objects, queues, self.ownership, agents=bool(self.tunnels.hubs))

    def _agent_heard(self, name: str) -> None:
        self.workers.agent_changed(name)
        self.queues.agents.add(name)

    def _worker_changed(self, name: str) -> None:
        self.workers.agent_changed(name)

    def _led(self) -> None:
        """Queue all that only the leading replica does."""
        queue_all(self.objects, self.nodes.objects, self.queues, agents=self.tunnels.names)

    def _resumed(self) -> None:
        """Queue everything: what raises `Fenced` is dropped from its queue."""
        self._led()
        self.workers.resume()
        self.index.wake_all()

    # --------------------------------------------------------------------------------------------- readiness

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """All informers."""
        ownership = self.ownership
        own = self.nodes.objects, self.inbox.objects, ownership.membership.members, ownership.leases
        return *self.objects.all(), *own

    def not_ready(self) -> list[str]:
        """List what is not known completely yet."""
        missing = [informer.name for informer in self.informers if not informer.synced.is_set()]
        return missing or ([] if self._known.is_set() else ["definitions"])

    def unready(self) -> list[str]:
        """List why this replica is not ready: what is not known yet, and a Lease that could not be renewed."""
        return self.not_ready() + (["lease"] if self.ownership.is_fenced else [])

    async def _start(self) -> None:
        """Open the queues in two stages: definitions when all is listed, then what is decided from them; then wait."""
        for informer in self.informers:
            await informer.synced.wait()
        self.ownership.membership.ready.set()
        await self.ownership.plan.settled.wait()
        self._listed.set()
        await self.queues.definitions.drain(_DEFINITIONS_S)  # else Pods would be refused for what is just not read
        _log.info("everything is known", replica=self.ctx.replica, pods=len(self.objects.pods.items))
        self.index.wake_all()
        self._known.set()
        await asyncio.Event().wait()

    # --------------------------------------------------------------------------------------------- loops

    def loops(self) -> dict[str, Coroutine[Any, Any, None]]:
        """Return every loop of a replica, by name: first those that run until the Nodes are handed over."""
        queues, ownership, listed, known = self.queues, self.ownership, self._listed, self._known
        return {
            "membership": ownership.membership.run(),  # renews this replica's Lease
            "events": self.ctx.events.run(),  # writes Events, beside the real work
            "start": self._start(),  # opens the queues, one stage after the other
            "fence": self.membership.run_fence(fenced=queues.lablets.interrupt, resumed=self._resumed, led=self._led),
            "plan": ownership.plan.run(),  # decides which Nodes to take and to hand over
            "clear-up": self.membership.run_clear_up(),  # ends memberships of dead replicas, if this one leads
            "heartbeat": ownership.run_heartbeat(),  # renews the Leases of our Nodes
            "definitions": work(queues.definitions, self.definitions.reconcile, listed),
            "packages": work(queues.packages, self.packages.fetch, listed),
            "lds-content": work(queues.lds_content, self.lds_content.refresh, listed),
            "workers": work(queues.workers, self.workers.reconcile, known),
            "claims": work(queues.claims, self.workers.flush, known),
            "lablets": work(queues.lablets, self.lablets.reconcile, known),
            "portcheck": work(queues.portcheck, self.ports.check, known),
            "readers": self.readers.run(),  # closes idle connections of downloads
            "passes": self.passes.run(),  # looks at every lablet and its claims again
            "archive": self.archive.run(),  # deletes what learners left long ago
            "inbox": self.inbox.run(),  # deletes session events that are out of date
            **self.kubelet.loops(),  # who may call the kubelet API, and its certificate
            **{f"informer-{informer.name}": informer.run() for informer in self.informers},
            **{f"tunnel-{kind}": hub.run() for kind, hub in self.tunnels.hubs.items()},  # to all workers by that way
            **({"agents": work(queues.agents, self.registration.reconcile, known)} if self.tunnels.hubs else {}),
            **({} if self.deployments is None else {"lds-deployments": self.deployments.watch()}),
            **({} if self.strays is None else {"lds-strays": self.strays.run()}),
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop`, then hand the Nodes over.

        Raises:
            ExceptionGroup: A loop ended, which none should.
        """
        loops = self.loops()
        outlasting = {name: loops.pop(name) for name in ("membership", "events")}
        async with running(outlasting):
            try:
                async with running(loops):
                    await stop.wait()
                    self.lablets.close()
                    await self.queues.lablets.drain(_FINISH_S)
            finally:
                await hand_over(self.ctx, self.workers, self.ownership, self.opened, self.kubelet)
