"""The site behind a JupyterHub: its API is a small one here, and asks for what the real one asks for."""

import asyncio
import hashlib
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from aiohttp import web

from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site.browsing import Browsing
from vkprovider.portal.web.hub import BODY_BYTES_MAX, HubLogins, HubPlace, HubSilentError

KEY = b64encode(os.urandom(32)).decode()
BASE = "/jupyter/services/vkprovider"
SERVICE_TOKEN = "token-of-the-service"


@dataclass
class Hub:
    """The API of a hub, whose people have logged in to it.

    Attributes:
        auth_state: What it shows of the one who logs in; None if it shows nothing.
        codes: The codes that it gave, each with its challenge.
        raw: The answer to every request, if it is given.
        pieces: In how many pieces it sends the body of an answer, with a pause between two of them.
        padding: So many blanks follow what it answers.
    """

    auth_state: Any = None
    codes: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    pieces: int = 1
    padding: int = 0
    url: str = ""

    def authorize(self, location: str) -> str:
        """Log somebody in as the page of the hub does; return the path to which it leads."""
        url = urlsplit(location)
        asked = dict(parse_qsl(url.query))
        assert url.path == "/jupyter/hub/api/oauth2/authorize"
        assert asked["client_id"] == "service-vkprovider"
        assert asked["redirect_uri"] == f"{BASE}/oauth_callback"
        code = os.urandom(8).hex()
        self.codes[code] = asked["code_challenge"]
        return f"{asked['redirect_uri']}?code={code}&state={asked['state']}"

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = self.codes.pop(str(form["code"]), "")
        if challenge != urlsafe_b64encode(digest).decode().rstrip("=") or form["client_secret"] != SERVICE_TOKEN:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response({"access_token": "access", "token_type": "Bearer"})

    async def _user(self, request: web.Request) -> web.Response:
        if request.headers["Authorization"] != "Bearer access":
            return web.json_response({"message": "Missing or invalid credentials."}, status=403)
        shown = {"auth_state": self.auth_state} if request.match_info.get("name") else {}
        return web.json_response({"name": "a/lice", **shown})

    async def _raw(self, request: web.Request) -> web.StreamResponse:
        if self.raw is not None:
            return web.Response(body=self.raw)
        answer = await (self._token if request.path.endswith("/token") else self._user)(request)
        assert isinstance(answer.body, bytes)
        body = answer.body + b" " * self.padding
        stream = web.StreamResponse(status=answer.status)
        await stream.prepare(request)
        size = -(-len(body) // self.pieces)
        for start in range(0, len(body), size):
            await asyncio.sleep(0.05 if start else 0)
            await stream.write(body[start : start + size])
        return stream

    @asynccontextmanager
    async def served(self) -> AsyncIterator["Hub"]:
        app = web.Application()
        app.router.add_post("/jupyter/hub/api/oauth2/token", self._raw)
        app.router.add_get("/jupyter/hub/api/user", self._raw)
        app.router.add_get("/jupyter/hub/api/users/{name}", self._raw)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/jupyter/hub/api"
        try:
            yield self
        finally:
            await runner.cleanup()


@asynccontextmanager
async def behind(world: PortalWorld, hub: Hub) -> AsyncIterator[tuple[Setting, Browsing]]:
    """Run a replica behind a hub, and a browser that has logged in there."""
    async with (
        hub.served(),
        setting(
            world,
            VKPROVIDER_PORTAL_COOKIE_KEY=KEY,
            VKPROVIDER_PORTAL_HUB_API_URL=hub.url,
            VKPROVIDER_PORTAL_HUB_TOKEN=SERVICE_TOKEN,
        ) as made,
        Browsing(made.client.url, {"jupyterhub-session-id": "first"}) as browser,
    ):
        yield made, browser


def token_of(person: dict[str, str]) -> str:
    return person["Authorization"].removeprefix("Bearer ")


async def test_the_server_of_a_user_is_the_lab_s_page_after_a_login_at_the_hub(world: PortalWorld) -> None:
    hub = Hub()
    async with behind(world, hub) as (made, browser):
        token = token_of(made.alice)
        hub.auth_state = {"token": token, "id_token": "other"}
        led = await browser.get("/jupyter/user/alice/lab/tree?x=1")
        assert (led.status_code, led.headers["location"]) == (303, f"{BASE}/labs/alice")
        led = await browser.get(f"{BASE}/")
        assert (led.status_code, led.headers["location"]) == (303, f"{BASE}/login?next=/")
        begun = await browser.get(led.headers["location"])
        assert begun.status_code == 303
        back = await browser.get(hub.authorize(begun.headers["location"]))
        assert back.status_code == 200, back.text
        assert f'content="0; url={BASE}/"' in back.text
        front, lab, login = f"{BASE}/", f"{BASE}/labs/alice", f"{BASE}/login?next=/"
        assert (await browser.get(front)).headers["location"] == lab
        page = await browser.get(lab)
        assert page.status_code == 200
        assert f'action="{BASE}/logout"' in page.text
        places = re.findall(r'(?:href|src|action|formaction|data-[a-z]+)="(/[^"]*)"', page.text)
        assert [place for place in places if not place.startswith(f"{BASE}/")] == []
        assert all(token not in text for text in browser.texts)

        # Who logs out of the hub, or logs in there as somebody else, is nobody here.
        before, browser.cookies["jupyterhub-session-id"] = browser.cookies["jupyterhub-session-id"], "second"
        assert (await browser.get(front)).headers["location"] == login
        browser.cookies["jupyterhub-session-id"] = before
        assert (await browser.get(front)).headers["location"] == lab
        await browser.get(lab)
        out = await browser.post(f"{BASE}/logout")
        assert (out.status_code, out.headers["location"]) == (303, "/jupyter/hub/logout")
        assert (await browser.get(front)).headers["location"] == login


@pytest.mark.parametrize(
    ("auth_state", "raw", "status", "words"),
    [
        (None, None, 403, "The hub has no token of yours"),
        ({"refresh_token": "x"}, None, 403, "The hub has no token of yours"),
        ({"token": "expired"}, None, 403, "The cluster does not accept the token"),
        (None, b"<html>nginx</html>", 503, "The hub does not answer"),
        (None, b"\xff\xfe", 503, "The hub does not answer"),
    ],
)
async def test_a_login_that_the_hub_cannot_vouch_for_says_what_to_do(
    world: PortalWorld, auth_state: Any, raw: bytes | None, status: int, words: str
) -> None:
    hub = Hub(auth_state=auth_state, raw=raw)
    async with behind(world, hub) as (_, browser):
        begun = await browser.get(f"{BASE}/login")
        back = await browser.get(hub.authorize(begun.headers["location"]))
        assert back.status_code == status
        assert words in back.text
        assert (await browser.get(f"{BASE}/")).headers["location"] == f"{BASE}/login?next=/"


async def shown(hub: Hub) -> str:
    """Return the token that a hub shows of somebody who has just logged in there."""
    verifier, code = "the-verifier", "the-code"
    digest = hashlib.sha256(verifier.encode()).digest()
    hub.codes[code] = urlsafe_b64encode(digest).decode().rstrip("=")
    async with hub.served():
        return await HubLogins(HubPlace(hub.url, "vkprovider"), SERVICE_TOKEN).token_of(code, verifier)


@pytest.mark.parametrize("pieces", [1, 2, 7])
@pytest.mark.parametrize("padding", [0, 1000, BODY_BYTES_MAX - 2000])
async def test_an_answer_of_the_hub_is_read_whole(pieces: int, padding: int) -> None:
    """A TCP connection has no messages: what a hub sends at once comes in pieces now and then."""
    assert await shown(Hub({"token": "t" * 1000}, pieces=pieces, padding=padding)) == "t" * 1000


@pytest.mark.parametrize("pieces", [1, 2, 7])
async def test_an_answer_of_the_hub_that_is_too_long_is_refused(pieces: int) -> None:
    with pytest.raises(HubSilentError, match="longer than"):
        await shown(Hub({"token": "t"}, pieces=pieces, padding=BODY_BYTES_MAX))


async def test_a_login_that_another_browser_began_ends_in_no_session(world: PortalWorld) -> None:
    hub = Hub()
    async with behind(world, hub) as (made, browser), Browsing(made.client.url) as victim:
        hub.auth_state = {"token": token_of(made.alice)}
        begun = await browser.get(f"{BASE}/login")
        path = hub.authorize(begun.headers["location"])
        lost = await victim.get(path)
        assert lost.status_code == 400
        assert "was not begun in this browser" in lost.text
        # Nor does a state of one login serve another.
        other = await browser.get(f"{BASE}/login")
        state = dict(parse_qsl(urlsplit(other.headers["location"]).query))["state"]
        swapped = await browser.get(f"{path.partition('&')[0]}&state={state}")
        assert swapped.status_code == 403
        assert "does not know this login" in swapped.text
        assert (await browser.get(f"{path}x")).status_code == 400
        denied = await browser.get(f"{BASE}/oauth_callback?error=access_denied&state={state}")
        assert denied.status_code == 403
        assert "access_denied" in denied.text


async def test_a_login_leads_to_no_other_site(world: PortalWorld) -> None:
    hub = Hub()
    async with behind(world, hub) as (made, browser):
        hub.auth_state = {"token": token_of(made.alice)}
        begun = await browser.get(f"{BASE}/login?next=//evil.example/")
        back = await browser.get(hub.authorize(begun.headers["location"]))
        assert "evil" not in back.text


async def test_a_hub_that_is_away_is_named(world: PortalWorld) -> None:
    hub = Hub()
    async with behind(world, hub) as (made, browser):
        begun = await browser.get(f"{BASE}/login")
        path = hub.authorize(begun.headers["location"])
    async with (
        setting(
            world,
            VKPROVIDER_PORTAL_COOKIE_KEY=KEY,
            VKPROVIDER_PORTAL_HUB_API_URL=hub.url,
            VKPROVIDER_PORTAL_HUB_TOKEN=SERVICE_TOKEN,
        ) as made,
        Browsing(made.client.url, browser.cookies) as later,
    ):
        away = await later.get(path)
        assert away.status_code == 503
        assert "The hub does not answer" in away.text


async def test_behind_the_hub_nobody_sees_anything_without_a_login(world: PortalWorld) -> None:
    before = {f"{BASE}{path}" for path in ("/login", "/oauth_callback", "/static/{name:.+}")}
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
    async with behind(world, Hub()) as (made, browser):
        routes = [route for part in made.running.replica.process.parts for route in part.routes]
        asked = [route for route in routes if route.path.startswith(f"{BASE}/") and route.path not in before]
        assert len(asked) >= 10
        for route in asked:
            where = re.sub(r"\{\w+(?::(?:[^{}]|\{[^{}]*\})*)?\}", "alice", route.path)
            if route.method != "GET":
                answer = await browser.ask(route.method, where, {"Sec-Fetch-Site": "same-origin"}, data={"csrf": "x"})
                assert answer.status_code == 401, where
                continue
            answer = await browser.get(where, **{"Sec-Fetch-Site": "same-origin"})
            assert answer.status_code == 303, where
            assert answer.headers["location"].startswith(f"{BASE}/login?next=/"), where
            for headers in ({"Accept": "text/event-stream"}, upgrade):
                answer = await browser.get(where, **{"Sec-Fetch-Site": "same-origin", **headers})
                assert answer.status_code == 401, where
        assert not [route.path for route in asked if "/login" in route.path]
        # A session of the site without the hub is none here, nor is the hub's a session there.
        await browser.log_in(made.alice)
        assert (await browser.get("/")).headers["location"] == "/labs/alice"
        assert (await browser.get(f"{BASE}/")).headers["location"] == f"{BASE}/login?next=/"


async def test_a_session_behind_the_hub_is_none_beside_it(world: PortalWorld) -> None:
    """The hub ends it by its own cookie, which nothing asks for at the portal's own paths."""
    hub = Hub()
    async with behind(world, hub) as (made, browser):
        hub.auth_state = {"token": token_of(made.alice)}
        begun = await browser.get(f"{BASE}/login")
        await browser.get(hub.authorize(begun.headers["location"]))
        assert (await browser.get(f"{BASE}/labs/alice")).status_code == 200
        (cookie,) = [name for name in browser.cookies if name.startswith("vkprovider-portal-0")]
        async with Browsing(made.client.url, {cookie: browser.cookies[cookie]}) as thief:
            for host in ("localhost", "labs.example.com"):
                led = await thief.get("/labs/alice", Host=host)
                assert (led.status_code, led.headers["location"]) == (303, "/login?next=/labs/alice"), host
        async with Browsing(made.client.url) as beside:
            await beside.log_in(made.alice)
            (cookie,) = [name for name in beside.cookies if name.startswith("vkprovider-portal-0")]
            browser.cookies[cookie] = beside.cookies[cookie]
        assert (await browser.get(f"{BASE}/labs/alice")).status_code == 303
