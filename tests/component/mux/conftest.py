"""A world of muxes and channels for each test, on the real API server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.mux.harness import MuxWorld, install, open_world
from tests.support.apiserver import ApiServer


@pytest.fixture(scope="session")
def mux_server(apiserver: ApiServer) -> ApiServer:
    """The API server, with the rights of the program that serves muxes."""
    install(apiserver)
    return apiserver


@pytest.fixture
async def world(mux_server: ApiServer, tmp_path: Path) -> AsyncIterator[MuxWorld]:
    async with open_world(mux_server, tmp_path) as world:
        yield world
