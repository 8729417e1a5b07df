"""Wrong credentials: CML is asked ever more rarely, and at once when they change."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from tests.component.cml.conftest import MiniCml
from vkprovider.cml.factory import open_session
from vkprovider.cml.operations import LIST_LABS
from vkprovider.cml.spi import Credentials
from vkprovider.platform.errors import Unauthorized
from vkprovider.rest.client import ServiceClient
from vkprovider.rest.tokens import Holds

HOLDS = Holds(refused_s=0.2, refused_s_max=0.7)


class Account:
    def __init__(self) -> None:
        self.password = "wrong"

    async def __call__(self) -> Credentials:
        return Credentials("admin", self.password)


@pytest.fixture
def account() -> Account:
    return Account()


@pytest.fixture
async def session(mini: MiniCml, account: Account) -> AsyncIterator[ServiceClient]:
    made = open_session(mini.url, account, holds=HOLDS)
    yield made
    await made.close()


async def refused(session: ServiceClient, mini: MiniCml) -> float:
    """Ask until CML refuses a login anew; return when the request for which it was asked began."""
    before, began = mini.logins, 0.0
    while mini.logins == before:
        await asyncio.sleep(0.002)
        began = asyncio.get_running_loop().time()
        with pytest.raises(Unauthorized):
            await session.send(LIST_LABS.to())
    return began


async def test_refused_logins_grow_rare(session: ServiceClient, mini: MiniCml, account: Account) -> None:
    times = [await refused(session, mini) for _ in range(7)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    for gap, hold_s in zip(gaps, (0.2, 0.4, 0.7, 0.7, 0.7, 0.7), strict=True):
        assert hold_s <= gap, "sooner than CML was to be left alone"
    assert min(gaps[3:]) < 1.2, "no longer than the greatest hold"
    account.password = "right"
    response = await session.send(LIST_LABS.to())
    assert response.status == 200
