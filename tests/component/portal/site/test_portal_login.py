"""Log in with a token of the cluster, see the front page, log out."""

import asyncio
import html
import os
import re
import time
from base64 import b64decode, b64encode

import httpx
import pytest

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site.browsing import Browsing
from vkprovider.platform.http.access import Pace
from vkprovider.portal.api import routes
from vkprovider.portal.web import cookie
from vkprovider.portal.web.cookie import keys_of
from vkprovider.portal.web.visitors import COOKIE

KEY = b64encode(os.urandom(32)).decode()


async def test_a_learner_logs_in_and_out(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        led = await browser.get("/")
        assert (led.status_code, led.headers["location"]) == (303, "/login?next=/")
        answer = await browser.log_in(made.alice)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        front = await browser.get("/")
        assert (front.status_code, front.headers["location"]) == (303, "/labs/alice")
        lost = await browser.get("/nowhere")
        assert lost.status_code == 404
        assert "alice" in lost.text
        out = await browser.post("/logout")
        assert (out.status_code, out.headers["location"]) == (303, "/login")
        assert (await browser.get("/")).headers["location"] == "/login?next=/"


async def test_without_a_key_the_login_says_what_an_admin_must_do(world: PortalWorld) -> None:
    async with setting(world) as made, httpx.AsyncClient() as http:
        answer = await http.get(f"{made.client.url}/login")
        assert answer.status_code == 503
        assert "an admin must set VKPROVIDER_PORTAL_COOKIE_KEY" in answer.text


async def test_another_host_of_the_domain_sets_no_session(world: PortalWorld) -> None:
    """It could set a cookie of its own login, for the whole domain, but none with a name that begins with __Host-."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        here = {"Host": "labs.example.com", "Sec-Fetch-Site": "same-origin"}
        shown = await browser.get("/login", **here)
        assert "kubectl lablet portal --url https://labs.example.com<" in shown.text
        token = made.alice["Authorization"].removeprefix("Bearer ")
        answer = await browser.post("/login", here, token=token, next="/")
        assert answer.status_code == 303
        assert browser.cookies.keys() == {"__Host-vkprovider-portal-form", "__Host-vkprovider-portal-0"}
        for line in answer.headers.get_list("set-cookie"):
            assert {"Path=/", "Secure", "HttpOnly", "SameSite=Strict"} <= {part.strip() for part in line.split(";")}
            assert "domain" not in line.lower()
        assert (await browser.get("/", **here)).headers["location"] == "/labs/alice"
        browser.cookies = {name.removeprefix("__Host-"): text for name, text in browser.cookies.items()}
        assert (await browser.get("/", **here)).headers["location"] == "/login?next=/"


async def test_the_command_of_the_login_is_one_word_for_a_shell_whatever_the_host(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        shown = await browser.get("/login", Host="$(id)")
        [command] = re.findall(r"<code>(kubectl lablet portal .*?)</code>", shown.text)
        assert html.unescape(command) == "kubectl lablet portal --url 'https://$(id)'"


@pytest.mark.parametrize("path", ["/static/site-000000000000.css", "/static/../parts.py"])
async def test_what_is_no_asset_is_not_served(world: PortalWorld, path: str) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, httpx.AsyncClient() as http:
        answer = await http.get(made.client.url + path)
        assert answer.status_code in {404, 303}


async def test_made_up_tokens_keep_nobody_out_who_has_a_session(
    world: PortalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session is sealed by the portal's key, so that its token was the cluster's: such have reviews of their own."""
    monkeypatch.setattr(routes, "_PACE", Pace(at_once=1, per_s=0.0001, burst=3))
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        statuses = []
        for at in range(5):
            answer = await made.client.ask("GET", "/user-status", {"Authorization": f"Bearer made-up-{at}"})
            statuses.append(answer.status_code)
        assert statuses == [401, 401, 401, 429, 429]
        token = made.alice["Authorization"].removeprefix("Bearer ")
        session = cookie.LoginSession(token, time.time() + 600, os.urandom(16).hex())
        browser.cookies |= cookie.written(keys_of(b64decode(KEY)).session, COOKIE, session)
        assert (await browser.get("/labs/alice")).status_code == 200


@pytest.mark.parametrize("said", [{}, {"VKPROVIDER_PORTAL_HSTS_SECONDS": "86400"}])
async def test_answers_name_no_version_and_hsts_alone_if_it_is_set(world: PortalWorld, said: dict[str, str]) -> None:
    running = await world.replica(VKPROVIDER_PORTAL_COOKIE_KEY=KEY, **said)  # type: ignore[arg-type]  # (settings alone)
    port = running.page.port
    head = "Host: x\r\nConnection: close\r\n\r\n"
    for asked in (
        *(f"GET {path} HTTP/1.1\r\n{head}" for path in ("/", "/login", "/health", "/nowhere", "/nublado/openapi.json")),
        f"POST /login HTTP/1.1\r\n{head}",
        f"GET /nublado/spawner/v1/labs HTTP/1.1\r\n{head}",
        f"NO SUCH THING\r\n{head}",
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(asked.encode())
        answer = (await reader.read()).decode()
        writer.close()
        fields = dict(line.split(": ", 1) for line in answer.partition("\r\n\r\n")[0].split("\r\n")[1:])
        assert fields["Server"] == "vkprovider", asked
        is_answered = not asked.startswith("NO")
        assert fields.get("Strict-Transport-Security") == ("max-age=86400" if said and is_answered else None), asked
