"""Muxes while the API server is away, refuses, hangs, or keeps a watch open and says nothing: no number is given twice,
none is lost, and soon after all is as it should be.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Final

import pytest

from tests.component.controllers.looking import when
from tests.component.mux.harness import PREFIX, MuxWorld, Running
from tests.component.mux.lending import expose, exposed, until_answer
from tests.support.faultyapi import FaultyApi
from tests.support.muxhistory import MuxHistory
from vkprovider.lablet import exposure

MUXES: Final = ("mux-a", "mux-b", "mux-c")
AWAY_S: Final = 14.0
"""Longer than a replica may act without its Lease, and than others wait for it."""
BACK_S: Final = 15.0
"""The time until a mux is served again."""


@contextlib.asynccontextmanager
async def refused(api: FaultyApi) -> AsyncIterator[None]:
    await api.refuse()
    yield
    await api.accept()


@contextlib.asynccontextmanager
async def hangs(api: FaultyApi) -> AsyncIterator[None]:
    """It takes requests and answers none; what was asked and happened meanwhile comes when it goes on."""
    goes_on = asyncio.Event()
    api.silence_watches()
    api.fault("", count=None, first=lambda _: goes_on.wait())
    yield
    api.heal()
    goes_on.set()


@contextlib.asynccontextmanager
async def unavailable(api: FaultyApi) -> AsyncIterator[None]:
    api.fault("", count=None, status=503)
    api.end_watches()
    yield
    api.heal()


@contextlib.asynccontextmanager
async def throttles(api: FaultyApi) -> AsyncIterator[None]:
    api.fault("", count=None, status=429, headers={"Retry-After": "1"})
    api.end_watches()
    yield
    api.heal()


async def at_work(world: MuxWorld) -> tuple[Running, Running]:
    """Start two replicas with the settings of users, and muxes with two channels each."""
    both = (await world.shipped(), await world.shipped())
    for name in MUXES:
        await world.mux(name)
        for channel in ("stays", "goes"):
            await world.channel(f"{channel}-{name}", "http:auto", mux=f"{PREFIX}/{name}.{world.edge}")
            await world.admin.until(
                world.path(f"{channel}-{name}"),
                lambda found: found["metadata"].get("annotations", {}).get(f"{PREFIX}/ports"),
            )
    owned = [each.replica.ownership.epochs for each in both]
    await when(lambda: all(owned) and sum(map(len, owned)) == len(MUXES), "each has a share")
    return both


@pytest.mark.parametrize("fault", [refused, hangs, unavailable, throttles])
async def test_mux_numbers_survive_an_api_server_that_is_away(
    muxes: MuxWorld, fault: Callable[[FaultyApi], AbstractAsyncContextManager[None]]
) -> None:
    both = await at_work(muxes)
    history = MuxHistory(muxes, *MUXES)
    async with history.watched():
        async with AsyncExitStack() as away:
            for each in both:
                await away.enter_async_context(fault(each.api))
            for name in MUXES:
                await muxes.admin.delete(muxes.path(f"goes-{name}"))
                mux = f"{PREFIX}/{name}.{muxes.edge}"
                await muxes.channel(f"comes-{name}", "http:auto", mux=mux, backends=("10.1.0.11",))
            before = {name: dict(numbers) for name, numbers in history.numbers.items()}
            await asyncio.sleep(AWAY_S)
            assert history.numbers == before, "nobody decided meanwhile"
            assert all(each.replica.process.membership.is_fenced for each in both)
            assert not any(each.replica.process.unready() for each in both), "the page shows what was known"
        async with asyncio.timeout(BACK_S):
            for name in MUXES:
                await muxes.until_forwards({20000: {"10.1.0.10:8080"}, 20002: {"10.1.0.11:8080"}}, name)


SILENT_S: Final = 45.0
"""The time after which a change is seen although a watch says nothing: less than the port of a worker rests."""


async def test_a_silent_watch_hides_no_change_from_a_mux_for_long(muxes: MuxWorld) -> None:
    """Ann's lablet ends, and the worker's port is the next learner's after 60 s: her number leads there no more."""
    running = await muxes.shipped()
    await muxes.mux()
    await muxes.address("203.0.113.10")
    ann = await expose(muxes, exposed(muxes, "seat", "ann", 10011))
    await until_answer(muxes, ann, exposure.LIVE)
    await muxes.channel("goes", "http:auto")
    await muxes.until_forwards({20000: {"198.51.100.1:10011"}, 20001: {"10.1.0.10:8080"}})
    history = MuxHistory(muxes, "mux")
    async with history.watched():
        assert running.api.silence_watches() >= 4
        await muxes.admin.delete(ann)
        await muxes.admin.delete(muxes.path("goes"))
        async with asyncio.timeout(SILENT_S):
            await muxes.until_forwards({})
        bob = await expose(muxes, exposed(muxes, "seat", "bob", 10011))
        await until_answer(muxes, bob, exposure.LIVE)
        await muxes.until_forwards({20002: {"198.51.100.1:10011"}})
