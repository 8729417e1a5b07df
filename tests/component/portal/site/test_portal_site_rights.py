"""Every path of the site: no stranger, link or missing login shows what is not theirs, and no other site uses it.

The paths are those of a replica: one that is added is asked as well.
"""

import os
import re
from base64 import b64encode
from typing import Any, Final

import httpx
import pytest

from tests.component.controllers.looking import eventually
from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import USER_ROLE
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.classroom import classroom
from tests.component.portal.site.test_portal_links import lets_in, linked_class, shows

KEY = b64encode(os.urandom(32)).decode()
EXAMPLES: Final = {
    "user": "alice",
    "pod": "nb-alice",
    "namespace": "default",
    "device": "r1",
    "action": "stop",
    "act": "stop",
    "name": "site.css",
    "code": "A" * 32,
    "definition": "netlab",
    "pool": "warm",
    "path": "nowhere",
}
"""What stands for each part of a path; alice has a lab."""
CODE: Final = "/login/{code:[A-Za-z0-9_-]{20,64}}"
BEFORE_LOGIN: Final = {
    ("GET", "/static/{name:.+}"),
    ("GET", "/login"),
    ("GET", "/login/upgrade"),
    ("POST", "/login"),
    ("POST", "/login/code"),
    ("GET", CODE),
    ("POST", CODE),
    ("GET", "/link"),
    ("POST", "/link"),
    ("GET", "/link/login"),
    ("GET", "/link/static/{name:.+}"),
}
"""What everybody may ask for."""
BY_LINK: Final = "/link/"
"""What these paths show is for those who came by a link, and a login is none: `test_portal_links` has such visitors."""
OF_EVERY_VISITOR: Final = {("GET", "/"), ("GET", "/labs"), ("GET", "/classes"), ("POST", "/logout")}
"""What everybody may ask for who has logged in: it shows what is theirs."""
OWN: Final = {"Sec-Fetch-Site": "same-origin"}
STREAM: Final = {**OWN, "Accept": "text/event-stream"}
SOCKET: Final = {
    **OWN,
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def paths(made: Setting) -> list[tuple[str, str]]:
    """Return method and path of all routes of the site."""
    routes = [route for part in made.running.replica.process.parts for route in part.routes]
    return [(each.method, each.path) for each in routes if not each.path.startswith("/nublado/")]


def filled(path: str, **others: str) -> str:
    """Return a path with an example for each of its parts."""
    values = {**EXAMPLES, **others}
    return re.sub(r"\{(\w+)(?::(?:[^{}]|\{[^{}]*\})*)?\}", lambda found: values[found[1]], path)


def check_headers(answer: httpx.Response, path: str) -> None:
    headers = answer.headers
    assert headers["X-Content-Type-Options"] == "nosniff", path
    assert headers["Referrer-Policy"] == "same-origin", path
    assert "default-src 'none'" in headers["Content-Security-Policy"], path
    assert "unsafe" not in headers["Content-Security-Policy"], path
    assert "frame-ancestors" in headers["Content-Security-Policy"], path
    assert headers["Cache-Control"] == "no-store", path


async def with_a_lab(made: Setting) -> None:
    answer = await made.client.ask("POST", "/labs/alice/create", made.alice, made.body())
    assert answer.status_code in {201, 303}, answer.text
    await made.world.until_phase("alice", "complete")


async def test_nobody_sees_anything_without_a_login(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as nobody:
        await with_a_lab(made)
        asked = [each for each in paths(made) if each not in BEFORE_LOGIN]
        assert len(asked) >= 10
        for method, path in asked:
            await is_nobody(nobody, method, path)


async def is_nobody(browser: Browsing, method: str, path: str) -> None:
    """Check that a page leads to the login, and that other requests are told that nobody is logged in."""
    where = filled(path)
    if method == "GET":
        answer = await browser.get(where, **OWN)
        assert answer.status_code == 303, path
        login = f"{BY_LINK}login" if path.startswith(BY_LINK) else "/login"
        assert answer.headers["location"].startswith(f"{login}?next=/"), path
        check_headers(answer, path)
        for headers in (STREAM, SOCKET):
            answer = await browser.get(where, **headers)
            assert answer.status_code == 401, path
            check_headers(answer, path)
    else:
        answer = await browser.ask(method, where, OWN, data={"csrf": browser.csrf or "x"})
        assert answer.status_code == 401, path
        check_headers(answer, path)


async def test_the_cookie_of_a_link_is_no_login(world: PortalWorld) -> None:
    """Neither at labs nor at classes, such as their work and grades, also of the class whose link it is."""
    async with linked_class(world) as the, Browsing(the.made.client.url) as thief:
        await eventually(lambda: lets_in(thief, the.code.text), "the link opens")
        await eventually(lambda: shows(thief, the.mine, "consoles/r1"), "the role counts")
        asked = [each for each in paths(the.made) if each not in BEFORE_LOGIN and not each[1].startswith(BY_LINK)]
        assert len(asked) >= 10
        for method, path in asked:
            await is_nobody(thief, method, path)


async def test_strangers_see_nothing_of_others(world: PortalWorld) -> None:
    """Whether there is a lab or not: the answer is the same, word for word."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, classroom(made) as room:
        await with_a_lab(made)
        for stranger in (await made.people.person("carol", USER_ROLE), room.teacher):
            async with Browsing(made.client.url) as browser:
                await browser.log_in(stranger)
                await browser.get("/nowhere")
                await sees_nothing(made, browser)


async def sees_nothing(made: Setting, stranger: Browsing) -> None:
    """Ask for everything of alice, who has a lab, and of zoe, who has none."""
    for method, path in paths(made):
        if (method, path) in BEFORE_LOGIN | OF_EVERY_VISITOR or path.startswith(BY_LINK):
            continue
        answers = {}
        for user in ("alice", "zoe"):
            where = filled(path, user=user, pod=f"nb-{user}", namespace=f"nublado-{user}")
            headers = {**OWN, **(SOCKET if path.endswith("/stream") else {})}
            fields: Any = {} if method == "GET" else {"data": {"csrf": stranger.csrf}}
            answer = await stranger.ask(method, where, headers, **fields)
            if method == "GET" and answer.status_code == 303:  # on to a page that refuses them
                answer = await stranger.get(answer.headers["location"], **OWN)
            assert answer.status_code in {400, 403, 404}, (method, where, answer.text)
            check_headers(answer, path)
            answers[user] = answer.text.replace(user, "USER")
        assert answers["alice"] == answers["zoe"], path


async def test_no_other_site_acts_in_a_visitors_name(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as alice:
        await with_a_lab(made)
        await alice.log_in(made.alice)
        await alice.get("/nowhere")
        before = len(made.running.writes)
        posts = [path for method, path in paths(made) if method == "POST" and path != "/login/code"]
        assert len(posts) >= 3
        for path in posts:
            for headers in (
                {"Origin": "https://evil.example"},
                {"Origin": "null"},
                {"Sec-Fetch-Site": "cross-site", "Origin": made.client.url},
                {"Sec-Fetch-Site": "same-site"},
                {},
            ):
                answer = await alice.ask("POST", filled(path), headers, data={"csrf": alice.csrf})
                assert answer.status_code == 403, (path, headers)
            if path.startswith(BY_LINK):
                answer = await alice.ask("POST", filled(path), OWN, data={"csrf": alice.csrf})
                assert answer.status_code == 401, path
                continue
            for csrf in ("", "x", alice.csrf[:-1], alice.csrf + "A"):
                answer = await alice.ask("POST", filled(path), OWN, data={"csrf": csrf})
                assert answer.status_code == 403, (path, csrf)
            answer = await alice.ask("POST", filled(path), OWN, content=b"\xff\x00", data=None)
            assert answer.status_code == 415, path  # no form at all
        for path in (path for _, path in paths(made) if path.endswith("/stream")):
            answer = await alice.get(filled(path), **{**SOCKET, "Sec-Fetch-Site": "cross-site"})
            assert answer.status_code == 403, path
            answer = await alice.get(
                filled(path),
                **{name: text for name, text in SOCKET.items() if name not in OWN},
                Origin="https://evil.example",
            )
            assert answer.status_code == 403, path
        assert len(made.running.writes) == before


async def test_another_session_of_the_same_person_has_other_tokens(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        Browsing(made.client.url) as one,
        Browsing(made.client.url) as other,
    ):
        for browser in (one, other):
            await browser.log_in(made.alice)
            await browser.get("/nowhere")
        assert one.csrf != other.csrf
        other.csrf = one.csrf
        assert (await other.post("/logout")).status_code == 403


@pytest.mark.parametrize(
    "then", ["//evil.example", "https://evil.example", "/\\evil.example", "/%5Cevil.example/..%2F"]
)
async def test_the_login_leads_nowhere_else(world: PortalWorld, then: str) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        answer = await browser.log_in(made.alice, then)
        assert answer.status_code == 303
        assert httpx.URL(made.client.url).join(answer.headers["location"]).host == "127.0.0.1"


async def test_nobody_is_logged_in_by_another_site(world: PortalWorld) -> None:
    """A session that somebody else began would show them what the visitor does."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        token = made.alice["Authorization"].removeprefix("Bearer ")
        bare = await browser.ask("POST", "/login", {"Origin": made.client.url}, data={"token": token, "csrf": "x"})
        assert bare.status_code == 403
        async with Browsing(made.client.url) as attacker:
            await attacker.get("/login")
            stolen = attacker.csrf
        await browser.get("/login")
        forged = await browser.ask("POST", "/login", {"Origin": made.client.url}, data={"token": token, "csrf": stolen})
        assert forged.status_code == 403
        foreign = await browser.post("/login", {"Origin": "https://evil.example"}, token=token)
        assert foreign.status_code == 403
        assert not any(name.startswith("vkprovider-portal-0") for name in browser.cookies)


async def test_a_cookie_that_was_changed_is_nobody(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        await browser.log_in(made.alice)
        name = "vkprovider-portal-0"
        good = browser.cookies[name]
        for bad in (good[:-6], good.replace("1.", "2.", 1), "1." + good[2:][::-1], "", "1.AAAA"):
            browser.cookies[name] = bad
            assert (await browser.get("/")).headers["location"] == "/login?next=/", bad
        browser.cookies[name] = good
        assert (await browser.get("/")).headers["location"] == "/labs/alice"


async def test_the_token_is_in_no_page_log_or_address(world: PortalWorld, capfd: pytest.CaptureFixture[str]) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        token = made.alice["Authorization"].removeprefix("Bearer ")
        await with_a_lab(made)
        await browser.get("/login")
        await browser.post("/login", token=f"{token}x")
        await browser.log_in(made.alice, "/labs/alice")
        for method, path in paths(made):
            if method == "GET":
                await browser.get(filled(path), **OWN)
        async with httpx.AsyncClient() as http:
            made_code = (await http.post(f"{made.client.url}/login/code", headers=made.alice)).json()["code"]
        await browser.get(f"/login/{made_code}")
        await browser.post(f"/login/{made_code}")
        await browser.post("/labs/alice/extend")
        await browser.get("/nowhere")
        await browser.post("/logout")
        seen = "\n".join(browser.texts)
        assert len(seen) > 10_000
        for part in (token, token.split(".")[2], "Bearer"):
            assert part not in seen
        logged = "".join(capfd.readouterr())
        assert "path=/labs/" in logged or "path=/{path" in logged
        for secret in (token, token.split(".")[2], made_code, KEY):
            assert secret not in logged
        assert browser.cookies.keys() <= {"vkprovider-portal-form"}
