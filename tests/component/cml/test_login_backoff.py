"""Wrong credentials: CML is asked ever more rarely, and at once when they change."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.component.cml.conftest import MiniCml
from vkprovider.api.errors import Unauthorized
from vkprovider.cml import session as session_module
from vkprovider.cml.factory import open_session
from vkprovider.cml.session import CmlSession
from vkprovider.cml.spi import Credentials


class Account:
    def __init__(self) -> None:
        self.password = "wrong"

    async def __call__(self) -> Credentials:
        return Credentials("admin", self.password)


@pytest.fixture
def account() -> Account:
    return Account()


@pytest.fixture
async def session(mini: MiniCml, account: Account) -> AsyncIterator[CmlSession]:
    made = open_session(mini.url, account)
    yield made
    await made.close()


async def refused(session: CmlSession, mini: MiniCml) -> float:
    """Ask until a login is refused anew; give the seconds until the next one may be tried."""
    before = mini.logins
    while mini.logins == before:
        with pytest.raises(Unauthorized):
            await session.request("probe", "GET", "/labs")
        await asyncio.sleep(0)
    hold = session._hold
    assert hold
    return hold.until - asyncio.get_running_loop().time()


async def test_refused_logins_grow_rare(
    session: CmlSession, mini: MiniCml, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "REFUSED_HOLD_S", 0.1)
    monkeypatch.setattr(session_module, "REFUSED_HOLD_S_MAX", 0.35)
    first, second, third, fourth = [await refused(session, mini) for _ in range(4)]
    assert first <= 0.1 < second <= 0.2 < third <= 0.35
    assert fourth <= 0.35
    account.password = "right"
    response = await session.request("probe", "GET", "/labs")
    assert response.status == 200
