"""The kubelet API of a replica: its parts, wired."""

import asyncio
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog

from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.kubelet import server as podlists
from vkprovider.labs.kubelet.callers import Callers
from vkprovider.labs.kubelet.certificate import Certificates
from vkprovider.labs.kubelet.consoles import ConsoleHandlers, OpenSessions
from vkprovider.labs.kubelet.listeners import NodeListeners
from vkprovider.labs.kubelet.logs import Logs
from vkprovider.labs.kubelet.server import NodePods, application
from vkprovider.labs.kubelet.spi import Devices
from vkprovider.labs.kubelet.story import Sources, Stories
from vkprovider.labs.kubelet.streams.inlets import SessionLimits
from vkprovider.labs.kubelet.tls import ServingTls, client_authorities
from vkprovider.labs.kubelet.usage import Meter, UsageHandlers
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.worker.endpoint import KubeletEndpoint
from vkprovider.labs.settings.cluster import KubeletSettings
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.http.tls import self_signed
from vkprovider.platform.objects import Pod
from vkprovider.platform.runtime.context import Context, own_ip
from vkprovider.platform.runtime.parts import Loops

_log: Final = structlog.get_logger(__name__)
_CLOSE_S: Final = 2.0


class Kubelet:
    """The kubelet API of the Nodes that this replica owns.

    Attributes:
        requests: Answers by path and status.
        sessions: The open ones.
        stories: Of lablets; they are told of every change of a Pod.
        certificates: Keep the serving certificate valid; None if it stays the replica's own.
    """

    def __init__(
        self,
        ctx: Context,
        settings: KubeletSettings,
        pods: Mapping[str, Pod],
        pods_on: Callable[[str], Iterable[Pod]],
        workers: Mapping[str, Worker],
        contents: Mapping[str, Content],
        devices: Devices,
        *,
        version: Callable[[], str],
    ) -> None:
        """Create it; nothing listens before `open`.

        Args:
            ctx: The replica.
            settings: Whether, where and with which certificate it is served.
            pods: All on our Nodes, by `namespace/name`.
            pods_on: Returns the Pods on a worker; called by each request for its Pods or for what they use.
            workers: Those that this replica acts for, by name.
            contents: By digest.
            devices: What sessions reach.
            version: Returns the version that the Nodes claim, "" while it is not known; called by requests for metrics.
        """
        self._ctx = ctx
        self._enabled = settings.enabled
        address = settings.internal_ip or own_ip()
        tls = ServingTls(self_signed([address]))
        self.requests: Tally[tuple[str, str]] = Tally()
        self.certificates = (
            Certificates(ctx, tls, address, settings.certificate_s) if settings.certificate == "csr" else None
        )
        self._authorities = client_authorities(ctx.kube, tls)
        known = NodePods(pods, pods_on)
        self.sessions = OpenSessions(ctx, settings.sessions_max)
        self.stories = Stories(ctx.kube)
        self._meter = Meter()
        source = Sources(workers, contents, devices, self.stories)
        routes = {
            **podlists.routes(ctx.kube, known, settings),
            **UsageHandlers(known, devices.usage, self._meter, version).routes(),
            **Logs(known, self.sessions, source.read, ctx.wall).routes(),
            **ConsoleHandlers(known, self.sessions, devices, SessionLimits()).routes(),
        }
        app = application(Callers(AccessControl(ctx.kube), tls, ctx.wall), routes, self.requests)
        self.listeners = NodeListeners(settings, app, tls, address)

    async def open(self, worker: str) -> KubeletEndpoint | None:
        """Serve a worker's Node; None if the kubelet API is off or no port is free."""
        return await self.listeners.open(worker) if self._enabled else None

    def given_up(self, worker: str) -> None:
        """Stop serving a worker's Node: it is not ours any more."""
        self.listeners.given_up(worker)
        self._meter.given_up(worker)

    @property
    def loops(self) -> Loops:
        """Its loops, by name."""
        if not self._enabled:
            return {}
        loops: Loops = {"informer-client-authorities": self._authorities.run}  # who may sign client certificates
        if self.certificates is None:
            return loops
        return {**loops, "serving-certificate": self.certificates.run}  # requests and renews ours

    async def close(self) -> None:
        """Close all listeners and connections, within the time that the end of a replica has for it."""
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self.listeners.close()
        except TimeoutError:
            _log.warning("sessions of the kubelet API are cut off", replica=self._ctx.replica)
