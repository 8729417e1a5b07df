"""The part of the kubelet API: its servers, and the devices that its sessions reach."""

import asyncio
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.api.objects import Pod
from vkprovider.app.base import Base
from vkprovider.app.metrics.kubelet import kubelet_measures
from vkprovider.app.parts.definitions import DefinitionsPart
from vkprovider.app.settings import manners
from vkprovider.controllers.console import usage
from vkprovider.controllers.console.devices import LabletDevices
from vkprovider.controllers.console.finding import Finder
from vkprovider.controllers.console.open import Opened
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.definition.content import Content
from vkprovider.domain.worker.endpoint import Endpoint
from vkprovider.kubelet import pods as podlists
from vkprovider.kubelet.authorities import client_authorities
from vkprovider.kubelet.callers import Callers
from vkprovider.kubelet.certificate import Certificates
from vkprovider.kubelet.consoles import Consoles
from vkprovider.kubelet.listeners import Listeners
from vkprovider.kubelet.logs import Logs
from vkprovider.kubelet.server import Pods, application
from vkprovider.kubelet.sessions import Sessions
from vkprovider.kubelet.sources import Sources
from vkprovider.kubelet.spi import Devices
from vkprovider.kubelet.story import Stories
from vkprovider.kubelet.streams.limits import Limits
from vkprovider.kubelet.tls import ServingTls
from vkprovider.kubelet.usage import Meter, Usage
from vkprovider.runtime.context import Context, own_ip
from vkprovider.runtime.parts import Loops, Part
from vkprovider.serving.access import Access
from vkprovider.serving.selfsigned import self_signed
from vkprovider.settings.kubelet import KubeletSettings

_log: Final = structlog.get_logger(__name__)
_CLOSE_S: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class KubeletPart(Part):
    """The part, and what other parts use of it.

    Attributes:
        opened: The consoles that are open.
        devices: The devices that sessions reach.
        kubelet: The kubelet API of our Nodes.
    """

    opened: Opened
    devices: LabletDevices
    kubelet: "Kubelet"


def kubelet(base: Base, definitions: DefinitionsPart) -> KubeletPart:
    """Build the part.

    Args:
        base: What all parts share.
        definitions: What devices are given, and the content that names them.

    Raises:
        InputError: `SettingInvalid`: the file of the devices' prompts is missing or wrong.
    """
    ctx, consoles, index, workers = base.ctx, base.settings.consoles, base.index, base.fleet.items
    opened, contents = Opened(), definitions.definitions.contents
    finder = Finder(index.items, workers, contents)
    devices = LabletDevices(
        ctx,
        finder,
        opened,
        usage.Usage(ctx, finder, definitions.given),
        manners=manners(consoles.prompts_file),
        exec_timeout_s=consoles.exec_timeout_s,
    )
    served = Kubelet(ctx, base.settings.kubelet, base.objects.pods.items, index.pods_on, workers, contents, devices)

    async def hand_over() -> None:
        opened.end()

    return KubeletPart(
        opened=opened,
        devices=devices,
        kubelet=served,
        loops=served.loops,
        measures=tuple(kubelet_measures(served)),
        hand_over=hand_over,
        close=served.close,
    )


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
    ) -> None:
        """Create it; nothing listens before `open`.

        Args:
            ctx: The replica.
            settings: Whether, where and with which certificate it is served.
            pods: All on our Nodes, by `namespace/name`.
            pods_on: Lists those on a worker.
            workers: Those that this replica acts for, by name.
            contents: By digest.
            devices: What sessions reach.
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
        known = Pods(pods, pods_on)
        self.sessions = Sessions(ctx, settings.sessions_max)
        self.stories = Stories(ctx.kube)
        self._meter = Meter()
        source = Sources(workers, contents, devices, self.stories)
        routes = {
            **podlists.routes(ctx.kube, known, settings),
            **Usage(known, devices.usage, self._meter).routes(),
            **Logs(known, self.sessions, source.read, ctx.wall).routes(),
            **Consoles(known, self.sessions, devices, Limits()).routes(),
        }
        app = application(Callers(Access(ctx.kube), tls, ctx.wall), routes, self.requests)
        self.listeners = Listeners(settings, app, tls, address)

    async def open(self, worker: str) -> Endpoint | None:
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
