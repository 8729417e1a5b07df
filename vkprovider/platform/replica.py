"""One replica of a program from its start to its end: listen, reach the API server, build, run, stop.

Its page listens before the API server has answered, so that probes see a process that waits.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

import structlog

from vkprovider.platform.concurrency import stop_on_signals
from vkprovider.platform.http.page import Page
from vkprovider.platform.runtime.context import Context, Program, connect
from vkprovider.platform.runtime.process import Process
from vkprovider.platform.settings import ReplicaProgramSettings

_log: Final = structlog.get_logger(__name__)


async def run(
    program: Program,
    settings: ReplicaProgramSettings,
    page: Page,
    build: Callable[[Context, AsyncExitStack], Process],
    **about: object,
) -> None:
    """Run one replica until SIGTERM or SIGINT.

    Args:
        program: Whose replica it is.
        settings: How to reach the API server, and who this process is.
        page: The replica's; nothing has listened yet.
        build: Makes the process, once the API server is reached; what the stack is given is closed after it has ended.
        about: Shown when it has started, in the log.

    Raises:
        InputError: `SettingInvalid`, from `Page.start`, `connect` and `build`.
        ExceptionGroup: A loop of the process ended, which none should.
    """
    stop = stop_on_signals()
    await page.start()
    connecting = asyncio.create_task(connect(settings.kube, settings.replica, page.wait_for, program=program))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([connecting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if connecting.done():
            await _serve(connecting.result(), page, build, stop, about)
    finally:
        connecting.cancel()
        stopping.cancel()
        await page.stop()


async def _serve(
    ctx: Context,
    page: Page,
    build: Callable[[Context, AsyncExitStack], Process],
    stop: asyncio.Event,
    about: dict[str, object],
) -> None:
    async with AsyncExitStack() as closing:
        closing.push_async_callback(ctx.kube.close)
        process = build(ctx, closing)
        page.serve(process)
        cluster = {
            "server": ctx.kube.server,
            "context": ctx.kube.context or "in-cluster",
            "installation": ctx.installation,
        }
        _log.info("started", replica=ctx.replica, **cluster, http_port=page.port, **about)
        await process.run(stop)
    _log.info("stopped", replica=ctx.replica)
