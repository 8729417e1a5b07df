"""What meets a browser that was away: forms that have grown old, addresses with a slash, cookies that piled up."""

import asyncio
import html
import os
import re
from base64 import b64encode

import pytest

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.classroom import classroom
from tests.component.portal.site.test_portal_codes import asked
from tests.component.portal.site.test_portal_hub import BASE, Hub, behind
from vkprovider.platform.http.connections import FIELD_BYTES_MAX
from vkprovider.portal.web.journeys import STATE_COOKIE

KEY = b64encode(os.urandom(32)).decode()


async def test_a_login_that_waited_too_long_is_shown_again_filled(world: PortalWorld) -> None:
    """The cookie of the form is gone after an hour; the page that was sent with it is all that the browser has."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        token = made.alice["Authorization"].removeprefix("Bearer ")
        await browser.get("/login?next=/labs/alice")
        browser.cookies.clear()
        again = await browser.post("/login", token=token, next="/labs/alice")
        assert again.status_code == 403
        assert "send it once more" in again.text
        fields = dict(re.findall(r'name="(next|token)"[^>]* value="([^"]*)"', again.text))
        assert {name: html.unescape(text) for name, text in fields.items()} == {"next": "/labs/alice", "token": token}
        assert again.headers["cache-control"] == "no-store"
        done = await browser.post("/login", **fields)
        assert (done.status_code, done.headers["location"]) == (303, "/labs/alice")


async def test_another_site_is_shown_no_token(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        evil = {"Origin": "https://evil.example"}
        answer = await browser.ask("POST", "/login", evil, data={"token": "a-secret", "next": "/", "csrf": "x"})
        assert (answer.status_code, "a-secret" in answer.text) == (403, False)


async def test_a_code_whose_form_grew_old_is_asked_about_again(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        path = f"/login/{(await asked(made.client.url, made.alice)).json()['code']}"
        await browser.get(path)
        browser.cookies.clear()
        again = await browser.post(path)
        assert (again.status_code, "send it once more" in again.text) == (403, True)
        assert "data-send-now" not in again.text
        assert (await browser.post(path)).status_code == 303


async def test_a_form_of_an_earlier_session_is_shown_again_with_what_was_typed(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        classroom(made) as room,
        Browsing(made.client.url) as who,
    ):
        await room.lablet("warm-1", "bob", state="READY")
        await room.known(1)
        await who.log_in(room.teacher)
        await who.get(room.path)
        old = who.csrf
        who.cookies.clear()
        await who.log_in(room.teacher)
        said = {"row": ["pod-warm-1", "pod-warm-2"], "message": '"Lunch" <b>', "minutes": "5", "csrf": old}
        path = f"{room.path}/message"
        again = await who.ask("POST", path, {"Origin": who.url}, data=said)
        assert (again.status_code, "Send it once more?" in again.text) == (403, True)
        assert "message" not in await room.notes("warm-1"), "nothing was done"
        hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', again.text)
        found = [(name, html.unescape(text)) for name, text in hidden if name != "csrf"]
        assert sorted(found) == [
            *(("message", '"Lunch" <b>'), ("minutes", "5"), ("row", "pod-warm-1"), ("row", "pod-warm-2"))
        ]
        assert f'action="{path}"' in again.text
        for headers in ({"X-Piece": "1"}, {"X-CSRF-Token": old}, {"Accept": "application/json"}):
            refused = await who.ask("POST", path, {"Origin": who.url, **headers}, data=said)
            assert (refused.status_code, "Send it once more?" in refused.text) == (403, False), headers
        assert (await who.ask("POST", path, {"Origin": "https://evil.example"}, data=said)).status_code == 403
        await who.get(room.path)
        done = await who.ask("POST", path, {"Origin": who.url}, data={**said, "csrf": who.csrf})
        assert done.status_code == 200
        assert (await room.notes("warm-1"))["message"].endswith('"Lunch" <b>')


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/labs/alice/", "/labs/alice"),
        ("/classes/?sort=left", "/classes?sort=left"),
        ("/login/", "/login"),
        ("/labs/a%2Fb//", "/labs/a%2Fb"),
        ("/link/lablets/friday/", "/link/lablets/friday"),
    ],
)
async def test_a_slash_at_the_end_leads_on(world: PortalWorld, path: str, there: str) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        answer = await browser.get(path)
        assert (answer.status_code, answer.headers["location"]) == (308, there)
        assert (await browser.ask("POST", path)).status_code in {403, 404, 405}
        reader, writer = await asyncio.open_connection("127.0.0.1", made.running.page.port)
        writer.write(b"GET //evil.example/ HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nConnection: close\r\n\r\n")
        led = (await reader.read()).decode().partition("\r\n\r\n")[0]
        writer.close()
        assert "Location: //" not in led


async def test_logins_that_were_begun_pile_up_to_eight(world: PortalWorld) -> None:
    hub = Hub()
    async with behind(world, hub) as (_, browser):
        begun = [await browser.get(f"{BASE}/login?next=/labs/{number}") for number in range(46)]
        assert {answer.status_code for answer in begun} == {303}
        states = [name for name in browser.cookies if name.startswith(STATE_COOKIE)]
        assert len(states) == 8
        assert sum(len(f"{name}={browser.cookies[name]}; ") for name in states) < 4096
        newest = begun[-1].headers["location"].partition("state=")[2].partition("&")[0]
        assert f"{STATE_COOKIE}-{newest[:8]}" in states, "the oldest go first"


@pytest.mark.parametrize(
    "head",
    [
        f"Cookie: vkprovider-portal-state-1=SECRET{'x' * (FIELD_BYTES_MAX + 1)}",
        "Cookie: vkprovider-portal-0=SECRET\x01\x02",
        "Cookie: vkprovider-portal-0=SECRET\x7f\x00",
        "Cookie vkprovider-portal-0=SECRET",
        "Content-Length: SECRET",
        "Transfer-Encoding: SECRET, chunked\r\nContent-Length: 5",
    ],
    ids=["too long", "control characters", "null", "no colon", "no length", "two lengths"],
)
async def test_the_answer_to_what_is_no_request_quotes_nothing(
    world: PortalWorld, head: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.running.page.port)
        writer.write(f"GET /login HTTP/1.1\r\nHost: x\r\n{head}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        answer = (await reader.read()).decode()
        writer.close()
    assert answer.partition("\r\n")[0].endswith(" 400 Bad Request"), answer[:200]
    assert "delete the cookies of this site" in answer
    assert "SECRET" not in answer
    out, err = capfd.readouterr()
    assert "SECRET" not in caplog.text + out + err


async def test_a_cookie_of_nine_kibibytes_is_taken(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        browser.cookies = {f"other-{at}": "x" * 3000 for at in range(3)}
        assert (await browser.get("/login")).status_code == 200
