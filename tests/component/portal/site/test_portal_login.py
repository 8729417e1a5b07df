"""Log in with a token of the cluster, see the front page, log out."""

import os
from base64 import b64encode

import httpx
import pytest

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site.browsing import Browsing

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


@pytest.mark.parametrize("path", ["/static/site-000000000000.css", "/static/../parts.py"])
async def test_what_is_no_asset_is_not_served(world: PortalWorld, path: str) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, httpx.AsyncClient() as http:
        answer = await http.get(made.client.url + path)
        assert answer.status_code in {404, 303}
