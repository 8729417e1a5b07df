"""Run endless loops beside each other, so that none ends unnoticed."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from vkprovider.platform.kube.queue import KeyedQueue, Reconcile

_log: Final = structlog.get_logger(__name__)

STOP_S: Final = 3.0
"""How long a cancelled loop may take to end: handing over comes after it, within the 30 s that a Pod has to end."""


@asynccontextmanager
async def running(loops: Mapping[str, Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run `loops` beside the block and cancel them at its end; a loop that ends cancels the block."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_endless(name, loop), name=name) for name, loop in loops.items()]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def _endless(name: str, loop: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(loop, name=name)
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        await _stop(task)
        raise
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a loop failed", loop=name, error=repr(error), exc_info=error)
        raise error
    raise RuntimeError(f"loop {name} ended")


async def _stop(task: asyncio.Task[None]) -> None:
    """Cancel a loop and wait for its end, but not for ever; whatever it still does, its guards are asked before."""
    task.cancel()
    await asyncio.wait((task,), timeout=STOP_S)
    if not task.done():
        _log.error("a loop does not stop; goes on without it", loop=task.get_name(), within_s=STOP_S)
    elif not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("a loop failed while it was stopped", loop=task.get_name(), error=repr(error))


async def work(queue: KeyedQueue[str], reconcile: Reconcile[str], ready: asyncio.Event) -> None:
    """Work on a queue from the moment that `ready` is set."""
    await ready.wait()
    await queue.run(reconcile)
