"""The process of one replica: connect, listen, run, stop."""

import asyncio
import signal
from typing import Final

import msgspec
import structlog

from vkprovider.api import names
from vkprovider.api.errors import OutsideError
from vkprovider.api.objects import Metadata
from vkprovider.app.page import Page
from vkprovider.app.run import Replica
from vkprovider.app.settings import Settings
from vkprovider.content.objects import open_store
from vkprovider.controllers.context import Context
from vkprovider.kube.client import KubeClient, user_agent
from vkprovider.kube.events import EventRecorder
from vkprovider.lds.deployments import Deployments

_log: Final = structlog.get_logger(__name__)


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata


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
