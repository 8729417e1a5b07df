"""The process of one replica of the portal: connect, listen, run, stop."""

import asyncio
from typing import Final

import structlog

from vkprovider.platform.concurrency import stop_on_signals
from vkprovider.platform.http.page import Page
from vkprovider.platform.http.tls import page_tls
from vkprovider.platform.runtime.connecting import connect
from vkprovider.platform.runtime.context import Context
from vkprovider.portal.parts import PORTAL, portal_process
from vkprovider.portal.settings import PortalProcessSettings

_log: Final = structlog.get_logger(__name__)


async def main(settings: PortalProcessSettings) -> None:
    """Run one replica until SIGTERM or SIGINT."""
    stop = stop_on_signals()
    page = page_of(settings)
    await page.run(
        lambda: context_of(settings, page),
        lambda ctx: _serve(settings, ctx, page, stop),
        stop,
    )


def page_of(settings: PortalProcessSettings) -> Page:
    """Return the page of a replica; nothing listens before `Page.start`.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    own = ["localhost", "127.0.0.1", f"{PORTAL.name}.{settings.replica.namespace}.svc"]
    return Page(
        settings.http,
        settings.replica.instance_id,
        tls=page_tls(settings.http, own),
        starting={},
        headers=settings.portal.headers,
    )


async def context_of(settings: PortalProcessSettings, page: Page) -> Context:
    """Reach the API server, however long it takes."""
    return await connect(settings.kube, settings.replica, page.wait_for, program=PORTAL)


async def _serve(settings: PortalProcessSettings, ctx: Context, page: Page, stop: asyncio.Event) -> None:
    replica = portal_process(ctx, settings)
    page.serve(replica.process)
    if settings.portal.callers == "token" and settings.portal.cookie_key is None:
        _log.warning("nobody can log in with a browser", why="VKPROVIDER_PORTAL_COOKIE_KEY is not set")
    _log.info(
        "started",
        replica=ctx.replica,
        server=ctx.kube.server,
        context=ctx.kube.context or "in-cluster",
        prefix=settings.portal.namespace_prefix,
        dialect=settings.portal.dialect,
        http_port=page.port,
    )
    try:
        await replica.process.run(stop)
    finally:
        await ctx.kube.close()
    _log.info("stopped", replica=ctx.replica)
