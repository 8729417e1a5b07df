"""The process of one replica of the program that serves muxes: connect, listen, run, stop."""

import asyncio
import dataclasses
from typing import Final

import structlog

from vkprovider.lablet import names
from vkprovider.mux.events import LoggedEvents
from vkprovider.mux.leases import DRY_RUN, MUX
from vkprovider.mux.parts import mux_process
from vkprovider.mux.settings import MuxProcessSettings
from vkprovider.platform.concurrency import stop_on_signals
from vkprovider.platform.http.page import Page
from vkprovider.platform.http.tls import page_tls
from vkprovider.platform.kube.events import EventRecorder
from vkprovider.platform.runtime.connecting import connect
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)


async def main(settings: MuxProcessSettings) -> None:
    """Run one replica until SIGTERM or SIGINT."""
    stop = stop_on_signals()
    page = page_of(settings)
    await page.run(
        lambda: context_of(settings, page),
        lambda ctx: _serve(settings, ctx, page, stop),
        stop,
    )


def page_of(settings: MuxProcessSettings) -> Page:
    """Return the page of a replica; nothing listens before `Page.start`.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    http, port = settings.http, settings.web.port
    if port is not None:
        http = http.model_copy(update={"port": port})
    own = ["localhost", "127.0.0.1", f"{names.MUX_PROXY}.{settings.replica.namespace}.svc"]
    return Page(http, settings.replica.instance_id, tls=page_tls(http, own), starting={"owned_muxes": []})


async def context_of(settings: MuxProcessSettings, page: Page) -> Context:
    """Reach the API server, however long it takes; in a dry run Events are only logged."""
    program = DRY_RUN if settings.mux.dry_run else MUX
    ctx = await connect(settings.kube, settings.replica, page.wait_for, program=program)
    if not settings.mux.dry_run:
        return ctx
    events: EventRecorder = LoggedEvents(ctx.kube, component=program.name, instance=ctx.replica)
    return dataclasses.replace(ctx, events=events)


async def _serve(settings: MuxProcessSettings, ctx: Context, page: Page, stop: asyncio.Event) -> None:
    replica = mux_process(ctx, settings)
    page.serve(replica.process)
    _log.info(
        "started",
        replica=ctx.replica,
        server=ctx.kube.server,
        context=ctx.kube.context or "in-cluster",
        prefix=settings.mux.prefix,
        dry_run=settings.mux.dry_run,
        http_port=page.port,
    )
    try:
        await replica.process.run(stop)
    finally:
        await ctx.kube.close()
    _log.info("stopped", replica=ctx.replica)
