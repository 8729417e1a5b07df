"""The process of one replica: connect, listen, run, stop."""

import asyncio
import signal
from typing import Final

import structlog

from vkprovider.api import names
from vkprovider.api.errors import OutsideError
from vkprovider.app.page import Page
from vkprovider.app.replica.run import Replica
from vkprovider.app.settings import Settings
from vkprovider.content.parsing import shared_parser
from vkprovider.kube.api import Api
from vkprovider.kube.client import KubeClient, user_agent
from vkprovider.kube.events import EventRecorder
from vkprovider.lds.config import takes_part
from vkprovider.lds.deployments import Deployments
from vkprovider.lds.grader import HttpGrader
from vkprovider.runtime.context import Context
from vkprovider.settings.plaintext import plain_text

_log: Final = structlog.get_logger(__name__)


async def connect(settings: Settings) -> Context:
    """Reach the API server and learn which installation this is, however long it takes."""
    kube = await KubeClient.connect(settings.kube, user_agent=user_agent(settings.replica.instance_id))
    return Context(
        kube=kube,
        events=EventRecorder(kube, component=names.MANAGER, instance=settings.replica.instance_id),
        installation=await _installation(Api(kube, settings.replica.namespace)),
        replica=settings.replica.instance_id,
        namespace=settings.replica.namespace,
    )


async def _installation(api: Api) -> str:
    """Return the UID of the namespace kube-system; wait for an API server that cannot be asked."""
    while True:
        try:
            if (system := await api.namespaces.get("kube-system")) is not None:
                return system.metadata.uid
            why = "it has no namespace kube-system"
        except OutsideError as error:
            why = str(error)
        _log.warning("the API server cannot be asked yet", server=api.namespaces.kube.server, error=why)
        await asyncio.sleep(1.0)


async def main(settings: Settings) -> None:
    """Run one replica until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    for name in settings.ignored:
        _log.info("setting accepted and not used", setting=name)
    for name, text in plain_text(_services(settings)).items():
        _log.warning("a service is reached in plain text", setting=name, why=text)
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


def _services(settings: Settings) -> dict[str, str]:
    """Return the URLs of services by the settings that name them; unset ones are empty."""
    return {
        "LDS_API_URL": settings.lds.one_url,
        "VKPROVIDER_GRADER_URL": settings.grader.url,
        "S3_ENDPOINT": settings.content.endpoint,
    }


async def _serve(settings: Settings, ctx: Context, page: Page, stop: asyncio.Event) -> None:
    agent = user_agent(ctx.replica)
    deployments = Deployments(settings.lds, user_agent=agent) if takes_part(settings.lds) else None
    grader = HttpGrader(settings.grader, user_agent=agent) if settings.grader.url else None
    replica = Replica(ctx, settings, deployments=deployments, grader=grader)
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
        shared_parser().close()
        await ctx.kube.close()
        replica.counters.timeline.close()
    _log.info("stopped", replica=ctx.replica)
