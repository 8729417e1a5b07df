"""A simulator on the loopback interface."""

from collections.abc import AsyncIterator

import pytest

from tests.component.sim.cisco import PASSWORD
from tests.support.cmlapi.simulator import CmlSimulator
from vkpsandbox.cml.simulation import Settings


@pytest.fixture
async def simulator() -> AsyncIterator[CmlSimulator]:
    """Serve HTTP, with nodes that boot quickly."""
    async with CmlSimulator(Settings(password=PASSWORD, boot_seconds=(0.05, 0.1))) as simulator:
        yield simulator
