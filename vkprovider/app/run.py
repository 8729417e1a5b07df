"""One replica: everything wired, every loop listed by name.

CMLWorker ─informer→ workers ─probe, observe→ CML          workers ─domain.node→ Node, CMLWorker status
LabletDefinition ─informer→ definitions → content ConfigMap, RuntimeClass        definitions → packages → object store
Pod ─informer→ lablets ─domain.lablet→ claims → CML        lablets ─domain.podstatus→ Pod status
session event → any replica's inbox ─informer→ the replica with the session's lablet
Lease ↔ ownership → which workers this replica may act for
"""

import asyncio
import gc
import signal
from collections import Counter as Tally
from collections.abc import Coroutine
from typing import Any, Final

import msgspec
import structlog

from vkprovider.api import names
from vkprovider.api.errors import OutsideError
from vkprovider.api.objects import ConfigMap, CustomResource, Metadata, Node, Pod, RuntimeClass, shared
from vkprovider.api.podsharing import PodSharing
from vkprovider.app import memory
from vkprovider.app.page import Page
from vkprovider.app.settings import Settings
from vkprovider.content.objects import open_store
from vkprovider.controllers.context import Context
from vkprovider.controllers.definition.ldscontent import LdsContent
from vkprovider.controllers.definition.reconciler import Definitions
from vkprovider.controllers.lablet.exports import Exports
from vkprovider.controllers.lablet.keeper import Keeper
from vkprovider.controllers.lablet.reconciler import Lablets
from vkprovider.controllers.replica.membership import Membership
from vkprovider.controllers.replica.ownership import Ownership
from vkprovider.controllers.session.inbox import Inbox
from vkprovider.controllers.session.sessions import Sessions
from vkprovider.controllers.worker.nodes import NodeWriter, slim
from vkprovider.controllers.worker.observer import Observer
from vkprovider.controllers.worker.reconciler import Workers
from vkprovider.domain.definition.content import ANNOTATION_DEFINITION
from vkprovider.kube.client import KubeClient, user_agent
from vkprovider.kube.events import EventRecorder
from vkprovider.kube.informer import Informer
from vkprovider.lds.deployments import Deployments
from vkprovider.lds.grader import HttpGrader
from vkprovider.web.logins import LoginUrl

_log: Final = structlog.get_logger(__name__)
_GROUP: Final = f"/apis/{names.API_VERSION}"
_DEFINITIONS_S: Final = 10.0
"""How long lablets wait for their definitions to be read at start; one that cannot be read must not hold the rest."""
_FINISH_S: Final = 4.0
"""How long steps in hand may go on when we are asked to end; what is not done then is continued by the next replica."""
_GOODBYE_S: Final = 8.0
_LEAVE_S: Final = 2.0
"""All of them within the default grace of a Pod, with room to spare."""


class Replica:
    """One replica of the provider."""

    def __init__(
        self,
        ctx: Context,
        *,
        deployments: Deployments | None = None,
        grader: HttpGrader | None = None,
        events_retry_s: float = 600.0,
    ) -> None:
        kube = ctx.kube
        self.ctx = ctx
        self.resources: Informer[CustomResource] = Informer(
            kube, f"{_GROUP}/cmlworkers", CustomResource, name="cmlworkers"
        )
        self.definition_resources: Informer[CustomResource] = Informer(
            kube, f"{_GROUP}/labletdefinitions", CustomResource, name="labletdefinitions"
        )
        self.node_objects: Informer[Node] = Informer(
            kube,
            "/api/v1/nodes",
            Node,
            name="nodes",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_VNODE}",
            slim=self._slim_node,
        )
        self.pods: Informer[Pod] = Informer(
            kube,
            "/api/v1/pods",
            Pod,
            name="pods",
            field_selector="spec.nodeName!=",
            keep=lambda head: head.spec.node_name.startswith(names.NODE_PREFIX),
            sign=f'"nodeName":"{names.NODE_PREFIX}'.encode(),
            slim=PodSharing(),
        )
        self.stored: Informer[ConfigMap] = Informer(
            kube,
            f"/api/v1/namespaces/{ctx.namespace}/configmaps",
            ConfigMap,
            name="content",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_CONTENT}",
        )
        self.runtime_classes: Informer[RuntimeClass] = Informer(
            kube,
            "/apis/node.k8s.io/v1/runtimeclasses",
            RuntimeClass,
            name="runtimeclasses",
            label_selector=f"{names.LABEL_COMPONENT}={names.COMPONENT_RUNTIME_CLASS}",
        )
        self.membership = Membership(ctx)
        self.ownership = Ownership(ctx, self.membership, self.resources.items.keys)
        self.definitions = Definitions(
            ctx,
            self.definition_resources.items.get,
            self.runtime_classes.items.get,
            lambda: list(self.stored.items.values()),
            lambda: self.ownership.leads,
        )
        self.lds_content = LdsContent(deployments)
        self.node_writer = NodeWriter(ctx, self.node_objects.items.get)
        observer = Observer(ctx, self.definitions.need)
        self.workers = Workers(ctx, self.ownership, self.resources.items.get, self.node_writer, observer)
        self.keeper = Keeper(ctx, lambda: self.ownership.leads)
        self.inbox = Inbox(ctx, lambda: self.ownership.leads, retry_s=events_retry_s)
        self.sessions = Sessions(
            ctx,
            deployments,
            grader,
            definitions=self.definitions.items,
            contents=self.definitions.contents,
            workers=self.workers.items,
            inbox=self.inbox,
            leads=lambda: self.ownership.leads,
        )
        self.lablets = Lablets(
            ctx,
            self.workers,
            self.definitions.items,
            self.definitions.contents,
            lambda: not self.not_ready(),
            self.keeper,
            self.sessions,
        )
        self.exports = Exports(ctx, self.workers.items, self.resources.items.get, self.pods.items)
        self.session_events: Tally[str] = Tally()
        self.login_url: LoginUrl | None = self.sessions.login_url if deployments is not None else None
        self._met_definitions = False
        self._connect()

    def _connect(self) -> None:
        """Say who is told of what."""
        self.pods.add_handler(self.lablets.pod_changed)
        self.pods.add_handler(self.inbox.pod_changed)
        self.resources.add_handler(self._worker_changed)
        self.node_objects.add_handler(self._node_changed)
        self.definition_resources.add_handler(lambda old, new: self.definitions.queue.add(_name(old, new)))
        self.runtime_classes.add_handler(lambda old, new: self.definitions.queue.add(_name(old, new)))
        self.definitions.form_stored = self.lds_content.changed
        self.definitions.changed = self.lablets.definition_changed
        self.stored.add_handler(self._content_changed)
        self.inbox.changed = self.lablets.session_changed
        self.inbox.claimed = self.lablets.has_session
        self.ownership.led = self._led
        self.ownership.dropped = self._node_dropped
        self.membership.fenced = self.lablets.queue.interrupt
        self.membership.resumed = self._resumed

    def _slim_node(self, node: Node) -> Node:
        """Keep all of a Node only while it is ours."""
        return shared(node) if names.worker_of(node.metadata.name) in self.ownership.epochs else slim(node)

    def _node_dropped(self, worker: str) -> None:
        self.node_objects.slim_again(names.node_name(worker))
        self.node_writer.forget(worker)

    def _worker_changed(self, old: CustomResource | None, new: CustomResource | None) -> None:
        if old is None or new is None or _asked(old) != _asked(new):  # else it is a status that we wrote
            self.workers.queue.add(_name(old, new))
        if old is None or new is None:
            self.ownership.renew_plan()

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        worker = names.worker_of(_name(old, new))
        if worker is not None:
            self.workers.queue.add(worker)

    def _content_changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        """Have those look at a definition who do not write its content themselves."""
        config_map = new or old
        if config_map is not None and not self.ownership.leads:
            self.definitions.queue.add(config_map.metadata.annotations.get(ANNOTATION_DEFINITION, ""))

    def _led(self) -> None:
        """Begin to do what only one replica should do."""
        for name in self.definition_resources.items:
            self.definitions.queue.add(name)
        for node in self.node_objects.items:
            if (worker := names.worker_of(node)) is not None:
                self.workers.queue.add(worker)

    def _resumed(self) -> None:
        self.workers.resume()
        self.lablets.resume()

    @property
    def informers(self) -> list[Informer[Any]]:
        """All informers."""
        return [
            self.resources,
            self.definition_resources,
            self.node_objects,
            self.pods,
            self.stored,
            self.runtime_classes,
            self.inbox.objects,
            self.membership.members,
            self.ownership.leases,
        ]

    def not_ready(self) -> list[str]:
        """Name what is not known completely yet."""
        missing = [informer.name for informer in self.informers if not informer.synced.is_set()]
        return missing or ([] if self._met_definitions else ["definitions"])

    def unready(self) -> list[str]:
        """Name why this replica is not ready: what is not known yet, and a Lease that could not be renewed."""
        return self.not_ready() + (["lease"] if self.ownership.is_fenced else [])

    async def _when_synced(self) -> None:
        """Begin with workers and lablets when everything that decisions need is known completely."""
        for informer in self.informers:
            await informer.synced.wait()
        self.membership.ready.set()
        await self.ownership.settled.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.definitions.queue.run(), name="definitions")
            group.create_task(self.definitions.packages.queue.run(), name="packages")
            group.create_task(self.lds_content.queue.run(), name="lds-content")
            await self.definitions.queue.drain(_DEFINITIONS_S)  # pods should not be refused for what is just not read
            self._met_definitions = True
            gc.collect()
            gc.freeze()  # what is there now stays: code, settings, what was listed
            gc.set_threshold(5_000, 20, 50)  # what comes and goes makes few cycles; a burst of requests half a megabyte
            _log.info("everything is known", replica=self.ctx.replica, pods=len(self.pods.items))
            self.lablets.all_synced()
            group.create_task(self.workers.queue.run(), name="workers")
            group.create_task(self.workers.flushes.run(), name="claims")
            group.create_task(self.lablets.queue.run(), name="lablets")
            group.create_task(self.lablets.ports.queue.run(), name="portcheck")

    def loops(self) -> dict[str, Coroutine[Any, Any, None]]:
        """Every loop of a replica, by name."""
        return {
            "membership": self.membership.run(),  # says that this replica lives
            "fence": self.membership.run_fence(),  # stops it when it cannot say so
            "plan": self.ownership.run_plan(),  # tells which nodes to take and to hand over
            "clear-up": self.ownership.run_clear_up(),  # ends memberships of the dead, if this replica leads
            "heartbeat": self.ownership.run_heartbeat(),  # renews the Leases of our nodes
            "trim": memory.run_trim(),  # gives memory back
            "events": self.ctx.events.run(),  # writes Events, beside the real work
            "keeper": self.keeper.run(),  # drops what learners left long ago
            "sessions": self.sessions.run(),  # archives sessions that no lablet has
            "inbox": self.inbox.run(),  # drops session events that nobody asks for
            **{f"informer-{informer.name}": informer.run() for informer in self.informers},
            "controllers": self._when_synced(),  # workers, claims, lablets, their ports, definitions
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop`, then hand the nodes back.

        Raises:
            ExceptionGroup: A loop ended, which none should.
        """
        stopper = asyncio.create_task(stop.wait(), name="stop")
        tasks = [asyncio.create_task(loop, name=name) for name, loop in self.loops().items()]
        try:
            done, _ = await asyncio.wait([stopper, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stopper}:
                _log.error("a loop ended", loop=task.get_name(), error=repr(task.exception()))
                task.result()
            self.lablets.close()
            await self.lablets.queue.drain(_FINISH_S)
        finally:
            for task in tasks:
                if task.get_name() not in {"events", "membership"}:
                    task.cancel()
            await asyncio.wait([t for t in tasks if t.cancelling()], timeout=1.0)  # no write of theirs beside ours
            await self._goodbye()
            for task in [*tasks, stopper]:
                task.cancel()
            await asyncio.gather(*tasks, stopper, return_exceptions=True)

    async def _goodbye(self) -> None:
        try:
            async with asyncio.timeout(_GOODBYE_S):
                await self.workers.close()
                await self.ctx.events.flush(1.0)
                await self.ownership.release_all()
        except TimeoutError:
            _log.warning("the API server did not let us hand over in time", replica=self.ctx.replica)
        try:
            async with asyncio.timeout(_LEAVE_S):
                await self.membership.leave()  # who is no member holds nothing: others need not wait
        except TimeoutError:
            _log.warning("the API server did not let us leave in time", replica=self.ctx.replica)


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata


def _asked(resource: CustomResource) -> tuple[Any, ...]:
    meta = resource.metadata
    return meta.generation, meta.deletion_timestamp, meta.annotations, meta.finalizers


def _name(old: Any, new: Any) -> str:
    return str((new or old).metadata.name)


async def connect(settings: Settings) -> Context:
    """Reach the API server and learn which installation this is, however long it takes."""
    kube = await KubeClient.connect(
        kubeconfig=settings.kubeconfig,
        qps=settings.api_qps,
        burst=settings.api_burst,
        in_flight_max=settings.api_in_flight_max,
        user_agent=user_agent(settings.instance_id),
    )
    raw = b""
    while not raw:
        try:
            raw = await kube.get("/api/v1/namespaces/kube-system")
        except OutsideError as error:
            _log.warning("the API server cannot be asked yet", server=kube.server, error=str(error))
            await asyncio.sleep(1.0)
    return Context(
        kube=kube,
        events=EventRecorder(kube, component=names.MANAGER, instance=settings.instance_id),
        installation=msgspec.json.decode(raw, type=_Object).metadata.uid,
        replica=settings.instance_id,
        namespace=settings.namespace,
        limits=settings.limits(),
        tuning=settings.tuning(),
        node_definitions=settings.node_definitions(),
        content=open_store(settings.content_place()),
        package_limits=settings.package_limits(),
    )


async def main(settings: Settings) -> None:
    """Run one replica until SIGTERM or SIGINT."""
    memory.keep_large_buffers_apart()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    for name in settings.ignored:
        _log.info("setting accepted and not used", setting=name)
    page = Page(settings)
    await page.start()
    connecting = asyncio.create_task(connect(settings))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([connecting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if connecting.done():
            await _serve(settings, connecting.result(), page, stop)
    finally:
        connecting.cancel()
        stopping.cancel()
        await page.stop()


async def _serve(settings: Settings, ctx: Context, page: Page, stop: asyncio.Event) -> None:
    source, agent = settings.lds(), user_agent(ctx.replica)
    deployments = Deployments(source, user_agent=agent) if source is not None else None
    grader = settings.grader(agent)
    replica = Replica(ctx, deployments=deployments, grader=grader, events_retry_s=settings.events_retry_s)
    page.serve(replica)
    _log.info(
        "started",
        replica=ctx.replica,
        server=ctx.kube.server,
        context=ctx.kube.context or "in-cluster",
        installation=ctx.installation,
        http_port=page.port,
    )
    try:
        await replica.run(stop)
    finally:
        if deployments is not None:
            await deployments.close()
        if grader is not None:
            await grader.close()
        await ctx.kube.close()
    _log.info("stopped", replica=ctx.replica)
