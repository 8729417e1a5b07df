"""Loops beside each other: one that ends ends all, and one that does not stop holds up no shutdown; in virtual time."""

import asyncio

import pytest
import structlog

from vkprovider.platform.runtime.loops import STOP_S, running

pytestmark = pytest.mark.looptime


async def forever() -> None:
    await asyncio.Event().wait()


async def stubborn() -> None:
    """Ignore the first cancellation, as a loop does that waits for an answer while it cleans up."""
    try:
        await forever()
    finally:
        await asyncio.sleep(3600)


async def test_a_loop_that_does_not_stop_holds_up_no_shutdown() -> None:
    loop = asyncio.get_running_loop()
    with structlog.testing.capture_logs() as logs:
        began_s = loop.time()
        async with running({"good": forever(), "stubborn": stubborn()}):
            await asyncio.sleep(1)
        assert loop.time() - began_s == pytest.approx(1 + STOP_S, abs=0.1)
    assert [(entry["log_level"], entry["loop"]) for entry in logs] == [("error", "stubborn")]


async def test_a_loop_that_fails_while_it_is_stopped_is_reported() -> None:
    async def fails() -> None:
        try:
            await forever()
        finally:
            raise OSError("broken pipe")

    with structlog.testing.capture_logs() as logs:
        async with running({"fails": fails()}):
            await asyncio.sleep(1)
    assert [(entry["loop"], entry["error"]) for entry in logs] == [("fails", "OSError('broken pipe')")]


@pytest.mark.parametrize("error", [None, ValueError("odd")])
async def test_a_loop_that_ends_ends_the_block(error: Exception | None) -> None:
    async def ends() -> None:
        await asyncio.sleep(1)
        if error is not None:
            raise error

    with structlog.testing.capture_logs(), pytest.raises(ExceptionGroup) as caught:
        async with running({"ends": ends(), "good": forever()}):
            await forever()
    [found] = caught.value.exceptions
    assert found is error if error is not None else str(found) == "loop ends ended"
