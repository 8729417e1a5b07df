import asyncio
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest
import structlog

from vkprovider.kube.client import KubeClient


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[MutableMapping[str, Any]]]:
    """What is logged."""
    with structlog.testing.capture_logs() as entries:
        yield entries


@pytest.fixture
def client(kube: KubeClient) -> KubeClient:
    """The client, as these tests call it."""
    return kube


async def until(predicate: Callable[[], object], within_s: float = 5.0) -> None:
    """Wait for a condition that nothing announces."""
    async with asyncio.timeout(within_s):
        while not predicate():  # noqa: ASYNC110 (what is awaited has no event)
            await asyncio.sleep(0.005)
