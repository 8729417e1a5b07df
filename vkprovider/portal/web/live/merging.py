"""Waiting for news of several kinds at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager


@asynccontextmanager
async def merged(*listening: AbstractAsyncContextManager[asyncio.Event]) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set whenever one of others is; the caller clears it.

    Args:
        listening: What yields the others, such as `Index.listen`.
    """
    news = asyncio.Event()

    async def follow(one: asyncio.Event) -> None:
        while True:
            await one.wait()
            one.clear()
            news.set()

    async with AsyncExitStack() as stack:
        tasks = [asyncio.create_task(follow(await stack.enter_async_context(each))) for each in listening]
        try:
            yield news
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
