"""Log in at an issuer, stay logged in, and log out: with a real issuer, an API server that trusts it, and Chromium."""

import asyncio
import base64
import hashlib
import re
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import httpx
import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from tests.component.controllers.looking import eventually, when
from tests.component.portal.harness import PortalWorld
from tests.component.portal.openid.organisation import (
    BUTTON,
    CALLBACK,
    KEPT_S,
    NAME,
    PREFIX,
    MemberBrowser,
    leads_to,
    organisation,
    query_of,
    settings_of,
    url_of,
)
from tests.component.portal.openid.people import CONFIDENTIAL, PUBLIC, SECRET
from tests.component.portal.people import INSTRUCTOR_ROLE
from tests.component.portal.site import consolebench
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.support.apiserver import ApiServer
from tests.support.issuer import CODE, REFRESH, Issuer, IssuerUser, TokenLives
from tests.support.nginx import proxied
from tests.support.page import Page, visiting

SHORT = TokenLives(id_s=30)
REVIEWED_S = 60.0
"""How long what is open may outlive the last ID token."""
SCOPES = "openid profile email groups offline_access"


# ---------------------------------------------------------------------------------------------- the way there and back


_LEADS = """
const found = document.getElementById("login-organisation");
if (found.tagName === "A") return found.href;
if (found.method !== "get") throw new Error(found.method);
return `${found.action}?${new URLSearchParams(new FormData(found))}`;
"""


async def test_the_button_stands_above_the_field_for_a_token(world: PortalWorld, issuer: Issuer) -> None:
    async with organisation(world, issuer) as there, visiting(there.url) as page:
        await page.open("/login?next=/labs/alice")
        assert await page.text(BUTTON) == f"Log in with {NAME}"
        leads = urlsplit(str(await page.run(lambda driver: driver.execute_script(_LEADS))))
        assert (leads.path, query_of(leads.geturl())) == ("/login/organisation", {"next": "/labs/alice"})
        places = await page.run(
            lambda driver: [
                driver.find_element(By.CSS_SELECTOR, css).location["y"] for css in ("#login-organisation", "#token")
            ]
        )
        assert places[0] < places[1]
        await page.judge()


async def test_log_in_as_people_do_and_find_the_page_that_was_wanted(world: PortalWorld, issuer: Issuer) -> None:
    async with organisation(world, issuer) as there, visiting(there.url) as page:
        await page.open("/labs/alice")
        await page.press(BUTTON)
        await issuer.fill_form(page, "alice")
        await page.shows("You have no lab")
        assert (await page.path(), await page.text(".who")) == ("/labs/alice", "alice")
        cookies = await page.run(lambda driver: driver.get_cookies())
        kept = [each for each in cookies if each["name"].startswith("vkprovider-portal-0")]
        assert [(each["httpOnly"], each["secure"], each["sameSite"]) for each in kept] == [(True, True, "Strict")]

        await page.press(".bar form button")
        await page.press("#leave")
        await page.until(lambda driver: driver.current_url.startswith(page.url), "the issuer leads back")
        await page.shows("Log in")
        await page.open("/labs/alice")
        await page.press(BUTTON)
        await page.fill("#user", "alice")
        await page.press("#deny")
        await page.until(lambda driver: driver.current_url.startswith(page.url), "the issuer leads back")
        page.expects(r"/login/organisation/callback.* - Failed to load resource: .* 4\d\d")
        await page.shows(NAME)
        assert await page.texts(".who") == []
        await page.judge(html=False)


async def test_the_way_to_the_issuer_says_all_that_makes_it_safe(world: PortalWorld, issuer: Issuer) -> None:
    async with organisation(world, issuer) as there, there.browser() as alice:
        first, second = await alice.led("/labs/alice"), await alice.led("/labs/alice")
        asked, other = query_of(first), query_of(second)
        assert first.startswith(f"{issuer.url}/auth?")
        assert (asked["response_type"], asked["client_id"]) == ("code", PUBLIC)
        assert asked["redirect_uri"] == f"{there.url}{CALLBACK}"
        assert set(asked["scope"].split()) == set(SCOPES.split())
        assert asked["code_challenge_method"] == "S256"
        assert len(asked["code_challenge"]) == len(base64.urlsafe_b64encode(hashlib.sha256().digest()).rstrip(b"="))
        for name in ("state", "nonce", "code_challenge"):
            assert asked[name] != other[name]
            assert len(asked[name]) >= 22, "128 bits at least"
        answer = await alice.log_in_as("alice", "/labs/alice?a=1")
        assert leads_to(answer, "/labs/alice?a=1"), answer.text
        assert await alice.who() == "oidc:alice"
        async with there.browser() as bob:
            assert leads_to(await bob.log_in_as("bob", "https://example.org/"), "/")
            assert await bob.who("/labs/bob") == "oidc:bob"
        assert len(issuer.requests(CODE)) == 2


async def test_behind_a_proxy_that_ends_tls_the_way_back_is_https(world: PortalWorld, issuer: Issuer) -> None:
    async with organisation(world, issuer) as there, there.browser() as alice:
        answer = await alice.get("/login/organisation?next=/", Host="labs.example.org")
        asked = query_of(answer.headers["Location"])
        assert asked["redirect_uri"] == f"https://labs.example.org{CALLBACK}"


async def test_a_client_with_a_secret_and_an_issuer_without_offline_access(world: PortalWorld, issuer: Issuer) -> None:
    issuer.stop()
    issuer.start(offline=False, end_session=False)
    more = {"VKPROVIDER_PORTAL_OIDC_CLIENT_ID": CONFIDENTIAL, "VKPROVIDER_PORTAL_OIDC_CLIENT_SECRET": SECRET}
    async with organisation(world, issuer, **more) as there, there.browser() as alice:
        asked = query_of(await alice.led())
        assert set(asked["scope"].split()) == set(SCOPES.split()) - {"offline_access"}
        await alice.enter("alice")
        assert await alice.who() == "oidc:alice"
        assert not (await alice.renew()).is_success, "there is nothing to renew it with"
        assert await alice.who() == "oidc:alice", "and the session goes on until its end"

        answer = await alice.post("/logout")
        assert not alice.has_session
        if answer.is_redirect:
            answer = await alice.get(answer.headers["Location"])
        assert answer.status_code == 200
        words = re.sub(r"<[^>]+>", "", answer.text)
        assert re.search(rf"(session|log(ged)? ?in).{{0,60}}{NAME}|{NAME}.{{0,60}}(session|log(ged)? ?in)", words), (
            words
        )
        assert await alice.who() == ""
        assert leads_to(await alice.log_in_as("alice"), "/"), "the issuer asks for nothing: its session goes on"


async def test_who_logs_out_is_led_to_the_end_of_the_session_at_the_issuer(world: PortalWorld, issuer: Issuer) -> None:
    async with organisation(world, issuer) as there, there.browser() as alice:
        for headers in ({}, {"X-Piece": "1"}):
            await alice.enter("alice")
            answer = await alice.post("/logout", headers)
            assert answer.status_code == (204 if headers else 303)
            led = answer.headers["X-Location" if headers else "Location"]
            asked = query_of(led)
            assert led.startswith(f"{issuer.url}/session/end?")
            assert asked["id_token_hint"].count(".") == 2
            assert asked["post_logout_redirect_uri"].startswith(f"{there.url}/login")
            assert (await alice.there.get(led)).status_code == 200, "the issuer takes both"
            assert not alice.has_session
            assert await alice.who() == ""
        other = await there.made.people.person("carol")  # who comes by a token
        await alice.log_in(other)
        await alice.get("/nowhere")
        assert (await alice.post("/logout")).headers["Location"] == "/login"


# ---------------------------------------------------------------------------------------------- what goes wrong


async def refused(browser: MemberBrowser, answer: httpx.Response) -> None:
    """Fail unless an answer is a page in a person's words that leads to the login, and begins no session."""
    assert 400 <= answer.status_code < 500, f"{answer.status_code} {answer.text}"
    assert "text/html" in answer.headers["Content-Type"]
    assert 'role="alert"' in answer.text
    assert 'http-equiv="refresh"' not in answer.text, "no loop"
    for word in ("Traceback", "KeyError", "invalid_grant", "id_token"):
        assert word not in answer.text
    assert not browser.has_session
    assert await browser.who() == ""


async def test_a_wrong_state_an_unknown_code_and_a_second_use_are_refused(world: PortalWorld, issuer: Issuer) -> None:
    async with organisation(world, issuer) as there, there.browser() as alice, there.browser() as mallory:
        await refused(alice, await alice.get(f"{CALLBACK}?code=x&state=y"))
        await refused(alice, await alice.get(CALLBACK))
        for sent in ({"code": "unknown"}, {"error": "access_denied"}, {"error": "<script>alert(1)</script>"}):
            asked = query_of(await alice.led())
            query = urlencode({**sent, "state": asked["state"], "iss": issuer.url})
            answer = await alice.get(f"{CALLBACK}?{query}")
            assert "<script>alert" not in answer.text
            await refused(alice, answer)
        back = await issuer.log_in(mallory.there, await mallory.led(), "bob")
        await refused(alice, await alice.back(back))  # a login that somebody else has begun
        before = mallory.cookies.copy()
        await mallory.back(back)
        assert await mallory.who("/labs/bob") == "oidc:bob"
        mallory.cookies = before
        await refused(mallory, await mallory.back(back))
        await alice.enter("alice")
        assert await alice.who() == "oidc:alice", "what went wrong before is in nobody's way"


SPOILED: tuple[tuple[dict[str, str | None], bool], ...] = (
    ({"nonce": "of another login"}, False),
    ({"nonce": None}, False),
    ({"iss": "https://127.0.0.1:9"}, False),
    ({"aud": "another client"}, False),
    ({"preferred_username": None}, False),  # only the API server minds
    ({}, True),
)


async def test_an_id_token_that_is_not_for_this_login_begins_no_session(world: PortalWorld, issuer: Issuer) -> None:
    async with organisation(world, issuer) as there, there.browser() as alice:
        for claims, stranger in SPOILED:
            issuer.spoil(claims, stranger=stranger)
            await refused(alice, await alice.log_in_as("alice"))
            assert len(issuer.requests(CODE)) == 1, (claims, stranger)
            issuer.forget_requests()
        await alice.enter("alice")
        assert await alice.who() == "oidc:alice"


async def test_while_the_issuer_is_away_the_page_says_so_and_a_token_still_logs_in(
    world: PortalWorld, issuer: Issuer
) -> None:
    issuer.stop()
    async with organisation(world, issuer) as there, there.browser() as alice:
        answer = await alice.get("/login/organisation?next=/")
        assert answer.status_code in {502, 503}, answer.text
        assert NAME in answer.text
        page = await alice.get("/login?next=/labs/alice")
        assert (page.status_code, 'id="token"' in page.text) == (200, True)
        issuer.start()

        async def led() -> bool:
            return (await alice.get("/login/organisation?next=/")).status_code == 303

        await eventually(led, "the portal finds the issuer again")
        await alice.enter("alice")
        assert await alice.who() == "oidc:alice"


# ---------------------------------------------------------------------------------------------- renewal


async def test_a_renewal_makes_the_session_longer_and_is_the_sites_own(world: PortalWorld, issuer: Issuer) -> None:
    async with organisation(world, issuer) as there, there.browser() as alice:
        await alice.enter("alice")
        before, csrf = dict(alice.cookies), alice.csrf
        assert (await alice.ask("POST", "/login/renew", {"Origin": alice.url})).status_code == 403
        elsewhere = {"Origin": "https://example.org", "X-CSRF-Token": alice.csrf}
        assert (await alice.ask("POST", "/login/renew", elsewhere)).status_code == 403
        assert issuer.requests(REFRESH) == []
        answer = await alice.renew()
        assert answer.is_success, answer.text
        assert alice.cookies != before
        assert await alice.who() == "oidc:alice"
        assert alice.csrf == csrf, "forms that are open stay good"
        assert (await alice.renew()).is_success
        assert [each.error for each in issuer.requests(REFRESH)] == ["", ""]
        assert issuer.presented_twice() == []
        texts = "\n".join(alice.texts)
        assert all(each.refresh not in texts for each in issuer.requests(REFRESH)), "nobody reads a refresh token"
    async with httpx.AsyncClient() as http:
        assert (await http.post(f"{there.url}/login/renew", headers=elsewhere)).status_code in {401, 403}


async def test_two_replicas_at_once_and_cookies_of_before_present_no_refresh_token_twice(
    world: PortalWorld, issuer: Issuer
) -> None:
    async with organisation(world, issuer) as there, there.browser() as alice:
        elsewhere = await there.replica()
        await alice.enter("alice")
        old = alice.cookies.copy()
        for _ in range(3):
            issuer.delay_answer(0.5)
            async with AsyncExitStack() as stack:
                urls = (there.url, elsewhere, there.url, elsewhere)
                tabs = [await stack.enter_async_context(alice.at(url)) for url in urls]
                answers = await asyncio.gather(*(tab.renew() for tab in tabs))
                assert any(each.is_success for each in answers), [each.text for each in answers]
                assert max(each.status_code for each in answers) < 500, [each.text for each in answers]
                for tab, answer in zip(tabs, answers, strict=True):
                    assert await tab.who() == "oidc:alice", "no answer has ended the session"
                    if answer.is_success:  # one browser keeps what each answer brings
                        alice.cookies |= tab.cookies
            assert issuer.presented_twice() == []
            assert await alice.who() == "oidc:alice"
        async with alice.at(elsewhere) as late:  # a tab that was asleep, or an answer that was lost behind the portal
            late.cookies = old
            await late.renew()
        assert issuer.presented_twice() == []
        assert (await alice.renew()).is_success
        assert [each.error for each in issuer.requests(REFRESH) if each.error] == []


async def test_an_issuer_that_is_started_again_ends_no_session(world: PortalWorld, issuer: Issuer) -> None:
    async with organisation(world, issuer) as there, there.browser() as alice:
        await alice.enter("alice")
        issuer.stop()
        answer = await alice.renew()
        assert answer.status_code >= 400
        assert await alice.who() == "oidc:alice", "until its end"
        issuer.start()
        assert (await alice.renew()).is_success, "no token was presented: nobody listened"
        assert issuer.presented_twice() == []


async def mark(page: Page) -> None:
    """Leave a mark in a page that a reload takes away."""
    await page.run(lambda driver: driver.execute_script("window.same = true"))


async def is_marked(page: Page) -> bool:
    """Return whether the page is the one that was marked."""
    return bool(await page.run(lambda driver: driver.execute_script("return window.same === true")))


def is_over(driver: Chrome) -> bool:
    """Return whether a page is the login, or says that the session has ended."""
    banner = "".join(each.text for each in driver.find_elements(By.CSS_SELECTOR, ".live-banner"))
    return "/login?next=" in driver.current_url or "login is over" in banner


_NO_NETWORK = """
const stock = window.fetch;
window.refused = 0;
window.fetch = (...given) => {
  if (!String(given[0]).endsWith("/login/renew") || window.refused) return stock(...given);
  window.refused += 1;
  return Promise.reject(new TypeError("no network"));
};
"""


async def test_a_renewal_without_a_network_is_asked_for_again(world: PortalWorld, issuer: Issuer) -> None:
    """As of a laptop that wakes before its network does."""
    issuer.set_lives(SHORT)
    async with organisation(world, issuer) as there, visiting(there.url) as page:
        await page.run(
            lambda driver: driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _NO_NETWORK})
        )
        await there.log_in(page, "alice", "/labs/alice")
        await page.shows("You have no lab")
        await when(lambda: issuer.requests(REFRESH), "it is renewed all the same")
        assert await page.run(lambda driver: driver.execute_script("return window.refused")) == 1
        assert issuer.presented_twice() == []


async def test_a_tab_of_an_earlier_login_ends_no_later_one(world: PortalWorld, issuer: Issuer) -> None:
    issuer.set_lives(SHORT)
    async with organisation(world, issuer) as there, visiting(there.url) as page:
        page.expects(r"/login/renew - Failed to load resource: .* 403")
        await there.log_in(page, "alice", "/labs/alice")
        await page.shows("You have no lab")
        await asyncio.sleep(SHORT.id_s / 5)  # so that this tab asks first, for a session that was replaced
        await page.run(lambda driver: driver.switch_to.new_window("tab"))
        await page.open("/login?next=/labs/alice")
        await page.press(BUTTON)  # the session at the issuer goes on
        await page.shows("You have no lab")
        await mark(page)
        await when(lambda: len(issuer.requests(REFRESH)) > 1, "the later one is renewed twice")
        assert await is_marked(page)


@pytest.mark.timeout(240)
async def test_a_lost_answer_leads_to_one_login_at_the_end_of_the_session(world: PortalWorld, issuer: Issuer) -> None:
    lives = TokenLives(id_s=45)  # between the lost answer and the end there is time to see that nothing happens
    issuer.set_lives(lives)
    issuer.lose_answer()
    async with organisation(world, issuer) as there, visiting(there.url) as page, there.browser() as bob:
        page.expects(r"/login/renew - Failed to load resource")
        page.expects(r"/live.* - Failed to load resource: .* 401")
        await there.log_in(page, "alice", "/labs/alice")
        began = time.monotonic()
        await page.shows("You have no lab")
        await mark(page)
        await when(lambda: issuer.requests(REFRESH), "a renewal is processed, and its answer is lost")
        await asyncio.sleep(2)
        assert await page.path() == "/labs/alice"
        assert await is_marked(page), "nothing happens yet"
        await page.until(is_over, "the page leads to the login, or says that it is time for it")
        assert time.monotonic() - began > lives.id_s / 2
        await mark(page)
        await asyncio.sleep(5)
        assert await is_marked(page), "no loop"
        assert len(issuer.requests(REFRESH)) == 1, "the token is not presented again"
        await page.open("/labs/alice")
        assert (await page.path()).startswith("/login?next=")
        issuer.set_lives(SHORT)
        await page.press(BUTTON)  # the session at the issuer goes on
        await page.shows("You have no lab")
        assert await page.text(".who") == "alice"
        await when(lambda: len(issuer.requests(REFRESH)) > 1, "the new session renews again")
        assert issuer.presented_twice() == []

        await page.run(lambda driver: driver.get("about:blank"))  # or the page of alice has the lost answer
        await bob.enter("bob", "/labs/bob")
        issuer.forget_requests()
        issuer.lose_answer()
        assert (await bob.renew()).status_code >= 400
        assert (await bob.renew()).status_code >= 400
        assert await bob.who("/labs/bob") == "oidc:bob", "the session goes on until its end"
        assert issuer.presented_twice() == []


# ---------------------------------------------------------------------------------------------- what is open meanwhile


@asynccontextmanager
async def classroom(server: ApiServer, folder: Path, issuer: Issuer) -> AsyncIterator[Bench]:
    """Run a lablet of a class, which the group `teachers` of the issuer teaches."""
    issuer.set_lives(SHORT)
    env = settings_of(issuer, VKPROVIDER_PORTAL_COOKIE_KEY=consolebench.KEY)
    async with console_bench(server, folder, **env) as made:
        await made.people.allow_group(f"{PREFIX}teachers", INSTRUCTOR_ROLE, made.site.lablet.namespace)
        yield made


_DIALLED = """
window.dialled = [];
const Stock = window.WebSocket;
window.WebSocket = class extends Stock {
  constructor(...given) { super(...given); window.dialled.push(String(given[0])); }
};
"""


def rows(driver: Chrome) -> str:
    return driver.find_element(By.CSS_SELECTOR, ".xterm-rows").text


_WAYS = """
proxy_http_version 1.1;
proxy_buffering off;
proxy_set_header Host $http_host;
proxy_set_header Upgrade $http_upgrade;
proxy_set_header Connection upgrade;
}}
location = /login/renew {{
proxy_pass {other};
proxy_set_header Host $http_host;
"""


@pytest.mark.timeout(240)
async def test_two_tabs_and_a_frame_stay_as_they_are_over_renewals_that_one_tab_does_at_another_replica(
    portal_server: ApiServer, tmp_path: Path, issuer: Issuer
) -> None:
    async with AsyncExitStack() as stack:
        bench = await stack.enter_async_context(classroom(portal_server, tmp_path, issuer))
        env = settings_of(issuer, VKPROVIDER_PORTAL_COOKIE_KEY=consolebench.KEY)
        other = await bench.portal.replica(**env)  # type: ignore[arg-type]  # (settings alone)
        ways = _WAYS.format(other=url_of(other))
        page = await stack.enter_async_context(
            visiting(await stack.enter_async_context(proxied(tmp_path / "nginx", bench.url, ways)))
        )
        await page.run(
            lambda driver: driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _DIALLED})
        )
        await page.open(f"/login?next={bench.lablet}/consoles/h0%3Fpanel%26as=type")  # as in a frame: it renews nothing
        await page.press(BUTTON)
        await issuer.fill_form(page, "ann")
        await page.until(lambda driver: "h0:~#" in rows(driver), "there is a prompt")
        began = time.monotonic()
        await page.keys("echo before the renewal", Keys.ENTER)
        console = await page.run(lambda driver: driver.current_window_handle)
        await page.run(lambda driver: driver.switch_to.new_window("tab"))
        await page.open(f"/classes/{bench.site.lablet.namespace}")
        await page.shows(bench.site.lablet.name)
        await mark(page)
        grid = await page.run(lambda driver: driver.current_window_handle)
        await page.run(lambda driver: driver.switch_to.new_window("tab"))
        await page.open("/classes")
        before = len(issuer.requests(REFRESH))  # one is there if the grid has renewed while this page came
        await when(lambda: len(issuer.requests(REFRESH)) > before, "a tab renews")
        await asyncio.sleep(3)  # by when the other one would have
        assert len(issuer.requests(REFRESH)) == before + 1
        await when(lambda: len(issuer.requests(REFRESH)) > before + 1, "it is renewed again")
        # No token of the login counts any more, whoever keeps an answer about it.
        await asyncio.sleep(max(0.0, began + SHORT.id_s + KEPT_S + 2 - time.monotonic()))
        await page.run(lambda driver: driver.switch_to.window(console))
        await page.keys("echo after two", Keys.ENTER)
        await page.until(lambda driver: rows(driver).count("after two") == 2, "it is typed, and answered")
        assert "before the renewal" in await page.run(rows)
        assert len(await page.run(lambda driver: driver.execute_script("return window.dialled"))) == 1
        await page.run(lambda driver: driver.switch_to.window(grid))
        banner = "".join(await page.texts(".live-banner"))
        assert not any(each in banner for each in ("login", "lost")), banner
        await bench.portal.admin.delete(bench.site.lablet.path)
        await page.until(
            lambda driver: bench.site.lablet.name not in driver.find_element(By.TAG_NAME, "main").text, "it follows"
        )
        assert await is_marked(page)
        assert issuer.presented_twice() == []
        page.expects(r"WebSocket connection to .* failed")
        page.expects(r"/stream - Failed to load resource: .* 404")


@pytest.mark.timeout(240)
async def test_who_is_disabled_or_leaves_the_group_is_out_within_the_tokens_life_and_a_minute(
    portal_server: ApiServer, tmp_path: Path, issuer: Issuer
) -> None:
    async with classroom(portal_server, tmp_path, issuer) as bench, MemberBrowser(bench.url, issuer) as ann:
        issuer.put(IssuerUser("ben", ("teachers",)))
        async with MemberBrowser(bench.url, issuer) as ben:
            await ann.enter("ann", bench.lablet)
            await ben.enter("ben", bench.lablet)
            async with await bench.screen(ann.cookie, "h0") as one, await bench.screen(ben.cookie, "h1") as two:
                await one.shows("h0:~#")
                await two.shows("h1:~#")
                issuer.set_groups("ann")
                issuer.disable("ben")
                began = time.monotonic()
                assert (await ann.renew()).is_success, "she is still somebody"
                assert (await ben.renew()).status_code >= 400
                renewing = asyncio.create_task(_renew_for_ever(ann))
                ends = await asyncio.gather(*(each.ends(SHORT.id_s + REVIEWED_S) for each in (one, two)))
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)
                assert time.monotonic() - began < SHORT.id_s + REVIEWED_S
                assert {(code, why) for code, why, _ in ends} == {(4403, "withdrawn")}
            assert await ben.who(bench.lablet) == "", "he is at the login"
            assert (await ann.get(bench.lablet)).status_code in {403, 404}, "she is known, and has no class"
        assert issuer.presented_twice() == []


async def _renew_for_ever(browser: MemberBrowser) -> None:
    """Renew as an open page does."""
    while True:
        await asyncio.sleep(SHORT.id_s / 2)
        await browser.renew()
