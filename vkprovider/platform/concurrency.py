"""Work on many things, a few at a time; and the signals that end a process."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain, islice
from typing import TypeVar

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
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [results[at] for at in sorted(results)]


def stop_on_signals() -> asyncio.Event:
    """Return an event that SIGTERM and SIGINT set, from now on."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop
