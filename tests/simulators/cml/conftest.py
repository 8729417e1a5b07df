"""A simulator on the loopback interface, and which release of Cisco's client the tests run with."""

from collections.abc import AsyncIterator
from importlib.metadata import version

import pytest
from packaging.version import Version

from tests.simulators.cml.cisco import quick
from tests.support.cmlapi.simulator import CmlSimulator


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a scenario that calls what a former release of Cisco's client does not have."""
    marker = item.get_closest_marker("client_since")
    if marker is not None and Version(version("virl2-client")) < Version(marker.args[0]):
        pytest.skip(f"virl2-client {marker.args[0]} brought what it calls")


@pytest.fixture
async def simulator() -> AsyncIterator[CmlSimulator]:
    """Serve HTTP, with nodes that boot quickly."""
    async with quick() as simulator:
        yield simulator
