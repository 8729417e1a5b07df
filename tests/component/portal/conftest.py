"""A world of users for each test, on the real API server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.portal.harness import PortalWorld, install, open_world
from tests.support.apiserver import ApiServer


@pytest.fixture(scope="session")
def portal_server(apiserver: ApiServer) -> ApiServer:
    """The API server, with the rights of the portal."""
    install(apiserver)
    return apiserver


@pytest.fixture
async def world(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[PortalWorld]:
    async with open_world(portal_server, tmp_path) as world:
        yield world
