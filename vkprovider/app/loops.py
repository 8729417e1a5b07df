"""Run endless loops beside each other, so that none ends unnoticed."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from vkprovider.kube.queue import KeyedQueue, Reconcile

_log: Final = structlog.get_logger(__name__)


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
    try:
        await loop
    except Exception as error:
        _log.exception("a loop failed", loop=name, error=repr(error))
        raise
    raise RuntimeError(f"loop {name} ended")


async def work(queue: KeyedQueue[str], reconcile: Reconcile[str], ready: asyncio.Event) -> None:
    """Work on a queue from the moment that `ready` is set."""
    await ready.wait()
    await queue.run(reconcile)
