"""The process of one replica: connect, listen, run, stop."""

import asyncio
from typing import Final

import structlog

from vkprovider.labs.content.parsing import shared_parser
from vkprovider.labs.lds.config import takes_part
from vkprovider.labs.lds.deployments import Deployments
from vkprovider.labs.lds.grader import HttpGrader
from vkprovider.labs.settings.process import Settings
from vkprovider.labs.settings.services import plain_text
from vkprovider.labs.wiring.page import page_of
from vkprovider.labs.wiring.provider import provider
from vkprovider.labs.wiring.tunnels import agent_tokens
from vkprovider.platform.concurrency import stop_on_signals
from vkprovider.platform.http.page import Page
from vkprovider.platform.kube.client import user_agent
from vkprovider.platform.runtime.connecting import connect
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)


async def main(settings: Settings) -> None:
    """Run one replica until SIGTERM or SIGINT."""
    stop = stop_on_signals()
    for name in settings.ignored:
        _log.info("setting accepted and not used", setting=name)
    for name, text in plain_text(_services(settings)).items():
        _log.warning("a service is reached in plain text", setting=name, why=text)
    agent_tokens(settings.http_tunnel)  # what cannot be used is refused before the API server is waited for
    page = page_of(settings)
    await page.run(
        lambda: connect(settings.kube, settings.replica, page.wait_for),
        lambda ctx: _serve(settings, ctx, page, stop),
        stop,
    )


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
    replica = provider(ctx, settings, deployments=deployments, grader=grader)
    page.serve(replica.process)
    _log.info(
        "started",
        replica=ctx.replica,
        server=ctx.kube.server,
        context=ctx.kube.context or "in-cluster",
        installation=ctx.installation,
        http_port=page.port,
    )
    try:
        await replica.process.run(stop)
    finally:
        if deployments is not None:
            await deployments.close()
        if grader is not None:
            await grader.close()
        shared_parser().close()
        await ctx.kube.close()
        replica.base.counters.timeline.close()
    _log.info("stopped", replica=ctx.replica)
