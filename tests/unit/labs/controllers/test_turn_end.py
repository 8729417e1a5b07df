"""How a turn ends its step when it ends for another reason, such as a fence that refuses both."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from vkprovider.labs.controllers.lablet import reconciler
from vkprovider.platform.errors import Fenced


async def refused_at_once() -> None:
    raise Fenced("vnode.w1", "it is fenced")


async def refused_when_cancelled() -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        raise Fenced("vnode.w1", "it is fenced")


async def endless() -> None:
    await asyncio.sleep(3600)


@pytest.mark.parametrize("step", [refused_at_once, refused_when_cancelled, endless])
async def test_no_refusal_of_a_step_stays_unread(step: Callable[[], Awaitable[None]]) -> None:
    """asyncio would log `Task exception was never retrieved`, long after the turn, at the end of the task."""
    unread: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unread.append(context))
    task = asyncio.ensure_future(step())
    await asyncio.sleep(0)
    await reconciler._cancel(task)
    assert task.done()
    del task
    gc.collect()
    assert not unread
