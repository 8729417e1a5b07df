"""Fault scenarios run with the settings that users have: no shortened times."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.component.mux.harness import MuxWorld, install, open_world
from tests.component.portal import harness as portal
from tests.support.apiserver import ApiServer, running
from tests.support.cluster import Cluster
from tests.support.replicas import Replicas
from tests.support.waiting import until
from vkpsandbox import Sandbox


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every scenario, so that it is chosen and timed as one."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.fault)
            item.add_marker(pytest.mark.timeout(1200))


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox of its own for each scenario: two simulated workers, one provider replica, an audit log."""
    directory = tmp_path_factory.mktemp("faults")
    with Sandbox.up("faults", directory=directory, workers=2, audit=True, tied=True) as made:
        yield made


@pytest.fixture
def replicas(cluster: Cluster) -> Replicas:
    """The replicas, each with its share."""
    replicas = Replicas(cluster)
    until(replicas.is_balanced, 90)
    return replicas


@pytest.fixture(scope="session")
def mux_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server without controllers, with the rights of the program that serves muxes."""
    with running(tmp_path_factory.mktemp("mux-api")) as server:
        install(server)
        yield server


@pytest.fixture
async def muxes(mux_server: ApiServer, tmp_path: Path) -> AsyncIterator[MuxWorld]:
    """Namespaces for muxes and channels; replicas run in the test's own loop."""
    async with open_world(mux_server, tmp_path) as world:
        yield world


@pytest.fixture(scope="session")
def portal_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server without controllers, with the rights of the portal."""
    with running(tmp_path_factory.mktemp("portal-api")) as server:
        portal.install(server)
        yield server


@pytest.fixture
async def portals(portal_server: ApiServer, tmp_path: Path) -> AsyncIterator[portal.PortalWorld]:
    """Users and definitions; replicas of the portal run in the test's own loop."""
    async with portal.open_world(portal_server, tmp_path) as world:
        yield world
