"""A kubelet API in the test's loop; a test that ends leaves no session and no task."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.apiserver import until
from tests.support.kubeletserver import KubeletServer
from vkprovider.labs.kubelet.streams.inlets import SessionLimits

LIMITS = SessionLimits(opening_s=30.0, closing_s=20.0)


@pytest.fixture
async def kubelet() -> AsyncIterator[KubeletServer]:
    before = asyncio.all_tasks()
    server = KubeletServer(LIMITS)
    async with server.running():
        yield server

        async def all_ended() -> bool:
            left = {task.get_name() for task in asyncio.all_tasks() - before}
            return not server.sessions and "kubelet-session" not in left

        await until(all_ended)
