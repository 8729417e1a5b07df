"""Work on many things, a few at a time; the end of tasks; and the signals that end a process."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain, islice
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def at_most(few: int, work: Callable[[T], Awaitable[R]], items: Iterable[T]) -> list[R]:
    """Call `work` with each item, `few` at once; return the results in the order of the items.

    If one raises, the others are cancelled and awaited before the error goes on.
    """
    results: dict[int, R] = {}
    left = iter(enumerate(items))

    async def go_on(first: tuple[int, T]) -> None:
        for at, item in chain((first,), left):
            results[at] = await work(item)

    tasks = [asyncio.create_task(go_on(first)) for first in islice(left, few)]
    try:
        await asyncio.gather(*tasks)
    finally:
        await end_tasks(tasks)
    return [results[at] for at in sorted(results)]


async def end_tasks(tasks: Iterable[asyncio.Future[Any]]) -> list[Any]:
    """Cancel tasks and wait for them; return the result of each that had ended, or its exception."""
    ending = [*tasks]
    for task in ending:
        task.cancel()
    return await asyncio.gather(*ending, return_exceptions=True)


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set, from now on."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
