"""A world for each test: a whole installation in the test's own loop, on the real API server."""

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.component.controllers.harness import World, open_world
from tests.support.apiserver import ApiServer


@pytest.fixture
async def world(apiserver: ApiServer, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(apiserver, tmp_path) as world:
        yield world


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Undo what a replica does to the garbage collector of its process."""
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)
