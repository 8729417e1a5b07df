"""What the learner's pages let in, and what they keep out."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.support.lds_simulator import LdsClient, lds_client
from vkpsim.lds.server import LdsSimulator
from vkpsim.lds.settings import LdsSettings


@pytest.fixture
async def simulator() -> AsyncIterator[LdsSimulator]:
    async with LdsSimulator(LdsSettings()) as simulator:
        yield simulator


@pytest.fixture
async def lds(simulator: LdsSimulator) -> AsyncIterator[LdsClient]:
    async with lds_client(simulator.url) as client:
        yield client


@pytest.fixture
async def visitor() -> AsyncIterator[aiohttp.ClientSession]:
    """A browser's cookies; they are kept for an IP address too, as browsers do."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as visitor:
        yield visitor


async def login_url(lds: LdsClient, session: str) -> str:
    return str((await lds.ask("GET", f"/sessions/{session}/login_url")).body["login_url"])


async def post(visitor: aiohttp.ClientSession, url: str, **form: str) -> tuple[int, str]:
    async with visitor.post(url, data=form) as response:
        return response.status, await response.text()


async def test_a_link_is_looked_at_often_and_used_once(lds: LdsClient, visitor: aiohttp.ClientSession) -> None:
    session = (await lds.create()).body["id"]
    url = await login_url(lds, session)
    for _ in range(2):
        async with visitor.get(url) as response:
            assert (response.status, "alice" in await response.text()) == (200, True)
    assert await lds.state(session) == "PENDING", "looking is not logging in"
    token = url.partition("token=")[2]
    assert (await post(visitor, f"{lds.url}/login", token=token))[0] == 200
    assert await lds.state(session) == "RUNNING"
    status, page = await post(visitor, f"{lds.url}/login", token=token)
    assert (status, "used already" in page) == (403, True)
    fresh = await login_url(lds, session)
    assert fresh != url
    async with visitor.get(fresh) as response:
        assert response.status == 200


@pytest.mark.parametrize("token", ["", "guessed"])
async def test_without_a_link_nobody_gets_in(lds: LdsClient, visitor: aiohttp.ClientSession, token: str) -> None:
    session = (await lds.create()).body["id"]
    assert (await post(visitor, f"{lds.url}/login", token=token))[0] == 403
    async with visitor.get(f"{lds.url}/login", params={"token": token}) as response:
        assert response.status == 403
    for path in ("", "/finish", "/answers", "/feedback"):
        url = f"{lds.url}/sessions/{session}{path}"
        async with visitor.request("POST" if path else "GET", url) as response:
            assert response.status == 403
    assert await lds.state(session) == "PENDING"


async def test_a_login_is_good_for_its_own_session_only(lds: LdsClient, visitor: aiohttp.ClientSession) -> None:
    mine, other = [(await lds.create(name)).body["id"] for name in ("alice", "bob")]
    token = (await login_url(lds, mine)).partition("token=")[2]
    await post(visitor, f"{lds.url}/login", token=token)
    [cookie] = visitor.cookie_jar
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == (f"/sessions/{mine}", True, "Lax")
    async with visitor.get(f"{lds.url}/sessions/{other}", cookies={cookie.key: cookie.value}) as response:
        assert response.status == 403
    await lds.ask("POST", f"/sessions/{mine}/archive")
    async with visitor.get(f"{lds.url}/sessions/{mine}") as response:
        assert response.status == 403


async def test_a_page_says_why_there_is_no_login_now(lds: LdsClient, visitor: aiohttp.ClientSession) -> None:
    early = (await lds.create(timeslot_start="2099-01-01T00:00:00Z", timeslot_end="2099-01-02T00:00:00Z")).body["id"]
    token = (await login_url(lds, early)).partition("token=")[2]
    status, page = await post(visitor, f"{lds.url}/login", token=token)
    assert (status, "begins at 2099-01-01T00:00:00Z" in page) == (409, True)
    empty = (await lds.sim("POST", "/sessions", {"username": "carol"}))["id"]
    token = (await login_url(lds, empty)).partition("token=")[2]
    status, page = await post(visitor, f"{lds.url}/login", token=token)
    assert (status, "has no part" in page) == (409, True)


async def test_nothing_that_others_wrote_becomes_markup(lds: LdsClient, visitor: aiohttp.ClientSession) -> None:
    evil = "<script>alert(1)</script>"
    session = (await lds.create(evil, form_qualified_name=evil)).body["id"]
    device = {"name": evil, "protocol": "ssh", "host": '"><b>', "port": 22, "uri": "javascript:alert(1)"}
    await lds.ask("PUT", f"/sessions/{session}/devices", {"devices": [{**device, "username": evil}]})
    url = await login_url(lds, session)
    async with visitor.get(url) as response:
        assert "<script" not in await response.text()
    _, page = await post(visitor, f"{lds.url}/login", token=url.partition("token=")[2])
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert 'href="javascript' not in page
    assert "<b>" not in page


async def test_pages_keep_the_secret_of_their_url(
    simulator: LdsSimulator, lds: LdsClient, visitor: aiohttp.ClientSession
) -> None:
    session = (await lds.create()).body["id"]
    url = await login_url(lds, session)
    async with visitor.get(url) as response:
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")
    visit = simulator.log.entries[-1]
    assert (visit.path, visit.query, visit.session) == ("/login", "", session)


async def test_a_page_suffers_faults_like_any_request(lds: LdsClient, visitor: aiohttp.ClientSession) -> None:
    session = (await lds.create()).body["id"]
    url = await login_url(lds, session)
    await lds.sim("POST", "/faults", {"kind": "status", "route": "^GET /login", "status": 503, "count": 1})
    async with visitor.get(url) as response:
        assert (response.status, response.content_type) == (503, "text/html")
    async with visitor.get(url) as response:
        assert response.status == 200


async def test_a_rating_is_one_of_five(lds: LdsClient, visitor: aiohttp.ClientSession) -> None:
    session = (await lds.create()).body["id"]
    await post(visitor, f"{lds.url}/login", token=(await login_url(lds, session)).partition("token=")[2])
    for rating in ("0", "6", "many", ""):
        assert (await post(visitor, f"{lds.url}/sessions/{session}/feedback", rating=rating))[0] == 422
    assert (await lds.ask("GET", f"/sessions/{session}/feedback")).body["entries"] == []
