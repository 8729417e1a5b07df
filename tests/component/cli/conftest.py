"""`kubectl lablet` through the real kubectl, on a real API server with a replica in the test's own loop."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.cli.desk import Desk
from tests.component.cli.instructor import Instructor
from tests.component.controllers.harness import World, open_world
from tests.support.apiserver import ApiServer


@pytest.fixture
async def world(apiserver: ApiServer, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(apiserver, tmp_path) as world:
        yield world


@pytest.fixture
async def desk(world: World, apiserver: ApiServer, tmp_path: Path) -> AsyncIterator[Desk]:
    """Where a user sits, with the administrator's kubeconfig and the test's namespace."""
    async with Desk(apiserver, world, tmp_path) as desk:
        yield desk


@pytest.fixture
async def instructor(world: World, desk: Desk, tmp_path: Path) -> AsyncIterator[Instructor]:
    """A user without rights, until the test has `kubectl lablet grant` run."""
    made = Instructor(world, desk, tmp_path)
    await made.begin()
    yield made
    await made.end()
