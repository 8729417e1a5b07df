"""A simulator on the loopback interface, and which release of Cisco's client the tests run with."""

import os
from collections.abc import AsyncIterator
from importlib.metadata import version

import pytest
from packaging.version import Version

from tests.component.sim.cisco import PASSWORD
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsandbox.cml.simulation import DEFAULT_VERSION, Settings


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a scenario that calls what a former release of Cisco's client does not have."""
    marker = item.get_closest_marker("client_since")
    if marker is not None and Version(version("virl2-client")) < Version(marker.args[0]):
        pytest.skip(f"virl2-client {marker.args[0]} brought what it calls")


@pytest.fixture
async def simulator() -> AsyncIterator[CmlSimulator]:
    """Serve HTTP, with nodes that boot quickly; `SIMULATED_CML` names the release."""
    settings = Settings(
        password=PASSWORD, boot_seconds=(0.05, 0.1), version=os.environ.get("SIMULATED_CML", DEFAULT_VERSION)
    )
    async with CmlSimulator(settings) as simulator:
        yield simulator
