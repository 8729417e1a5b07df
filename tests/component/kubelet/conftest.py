"""A replica that serves the kubelet API, on a real API server, and clients with every kind of credentials."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.controllers.harness import World, open_world
from tests.component.kubelet.credentials import Credentials
from tests.support.apiserver import ApiServer


@pytest.fixture
async def world(apiserver: ApiServer, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(apiserver, tmp_path) as world:
        yield world


@pytest.fixture
async def credentials(apiserver: ApiServer, world: World, tmp_path: Path) -> AsyncIterator[Credentials]:
    """Credentials; the ServiceAccounts and roles behind them are gone afterwards."""
    credentials = Credentials(apiserver, world.admin, world.namespace, tmp_path)
    yield credentials
    await credentials.close()
