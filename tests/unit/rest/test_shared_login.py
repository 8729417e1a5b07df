"""One login for all who wait, and pauses after refusals: in virtual time."""

import asyncio

import pytest

from vkprovider.platform.errors import OutsideError, Throttled, Unauthorized, Unavailable
from vkprovider.rest.tokens import Holds, SharedLogin

pytestmark = pytest.mark.looptime


class Service:
    """Issues tokens for one password, each login within a second."""

    def __init__(self) -> None:
        self.password = self.accepted = "right"
        self.logins: list[float] = []
        self.error: OutsideError | None = None

    async def credentials(self) -> str:
        return self.password

    async def log_in(self, password: str) -> str:
        self.logins.append(asyncio.get_running_loop().time())
        await asyncio.sleep(1)
        if self.error is not None:
            raise self.error
        if password != self.accepted:
            raise Unauthorized("refused", status=403)
        return f"token-{len(self.logins)}"


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def login(service: Service) -> SharedLogin[str]:
    holds = Holds(refused_s=5.0, refused_s_max=20.0, failed_s=1.0)
    return SharedLogin("w1", service.credentials, service.log_in, holds=holds)


async def attempt(login: SharedLogin[str]) -> str:
    return await login.current(asyncio.get_running_loop().time() + 10)


async def test_requests_share_one_login_and_its_token(login: SharedLogin[str], service: Service) -> None:
    assert await asyncio.gather(*(attempt(login) for _ in range(9))) == ["token-1"] * 9
    end_s = asyncio.get_running_loop().time() + 10
    assert await asyncio.gather(*(login.renewed("token-1", end_s) for _ in range(9))) == ["token-2"] * 9
    assert await login.renewed("token-1", end_s) == "token-2", "a late 401 renews nothing"
    assert len(service.logins) == 2


async def test_refusals_double_the_pause_up_to_its_limit(login: SharedLogin[str], service: Service) -> None:
    service.password = "wrong"
    for _ in range(600):
        with pytest.raises(Unauthorized):
            await attempt(login)
        await asyncio.sleep(0.1)
    pauses = [later - earlier - 1 for earlier, later in zip(service.logins, service.logins[1:], strict=False)]
    assert pauses[:4] == [pytest.approx(seconds, abs=0.2) for seconds in (5, 10, 20, 20)]
    service.password = "right"
    assert await attempt(login)


@pytest.mark.parametrize(
    ("error", "pause_s"), [(Unavailable("away", status=502), 1.0), (Throttled("slowly", after_s=7.0), 7.0)]
)
async def test_other_failures_pause_for_less_or_as_asked(
    login: SharedLogin[str], service: Service, error: OutsideError, pause_s: float
) -> None:
    service.error = error
    with pytest.raises(type(error)):
        await attempt(login)
    await asyncio.sleep(pause_s - 0.5)
    with pytest.raises(type(error)):
        await attempt(login)
    assert len(service.logins) == 1
    await asyncio.sleep(0.6)
    service.error = None
    assert await attempt(login) == "token-2"


async def test_a_new_token_that_is_refused_pauses_the_logins(login: SharedLogin[str], service: Service) -> None:
    assert isinstance(login.refused(await attempt(login)), Unauthorized)
    with pytest.raises(Unauthorized, match="just issued"):
        await attempt(login)
    await asyncio.sleep(5.1)
    assert await attempt(login) == "token-2"
    assert len(service.logins) == 2


async def test_changed_credentials_are_tried_while_the_old_token_lives(
    login: SharedLogin[str], service: Service
) -> None:
    await login.check()
    assert service.logins == [], "there is no token yet: the first request logs in"
    assert await attempt(login) == "token-1"
    await login.check()
    assert len(service.logins) == 1, "the credentials are those of the token"
    service.password = "wrong"
    with pytest.raises(Unauthorized):
        await login.check()
    assert await attempt(login) == "token-1", "requests go on"
    for _ in range(600):
        with pytest.raises(Unauthorized):
            await login.check()
        await asyncio.sleep(0.1)
    pauses = [later - earlier - 1 for earlier, later in zip(service.logins[1:], service.logins[2:], strict=False)]
    assert pauses[:4] == [pytest.approx(seconds, abs=0.2) for seconds in (5, 10, 20, 20)]
    service.password = "right"
    await login.check()
    assert await attempt(login) == "token-1", "the old credentials are back"


async def test_accepted_credentials_bring_another_token(login: SharedLogin[str], service: Service) -> None:
    service.password = "right"
    await attempt(login)
    service.accepted = "newer"
    service.password = "newer"
    await login.check()
    assert await attempt(login) == "token-2"
    await login.check()
    assert len(service.logins) == 2


async def test_a_refused_trial_does_not_delay_the_login_that_a_401_asks_for(
    login: SharedLogin[str], service: Service
) -> None:
    """The order of a rotation: the Secret first, then CML, which ends the old token."""
    await attempt(login)
    service.password = "newer"
    with pytest.raises(Unauthorized):
        await login.check()
    service.accepted = "newer"
    assert await login.renewed("token-1", asyncio.get_running_loop().time() + 10) == "token-3"
    await login.check()
    assert len(service.logins) == 3


async def test_requests_go_on_during_a_trial(login: SharedLogin[str], service: Service) -> None:
    await attempt(login)
    service.password = "wrong"
    trial = asyncio.create_task(login.check())
    await asyncio.sleep(0.5)
    assert await attempt(login) == "token-1"
    with pytest.raises(Unauthorized):
        await trial
