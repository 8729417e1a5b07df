"""A world of people and user labs for each test, on the real API server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.portal.page.harness import PageWorld, install, open_world
from tests.support.apiserver import ApiServer


@pytest.fixture(scope="session")
def page_server(apiserver: ApiServer) -> ApiServer:
    """The API server, with the roles of people at the portal."""
    install(apiserver)
    return apiserver


@pytest.fixture
async def world(page_server: ApiServer, tmp_path: Path) -> AsyncIterator[PageWorld]:
    async with open_world(page_server, tmp_path) as world:
        yield world
