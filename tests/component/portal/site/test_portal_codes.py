"""One-time codes: made at one replica, redeemed once at any."""

import asyncio
import os
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.component.controllers.looking import eventually
from tests.component.portal.asking import Setting, setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site.browsing import Browsing
from tests.support.apiserver import MEMBERS
from vkprovider.portal.web import codes

KEY = b64encode(os.urandom(32)).decode()


async def asked(url: str, headers: dict[str, str]) -> httpx.Response:
    async with httpx.AsyncClient(timeout=60) as http:  # as `Browsing`: a review alone may take the portal 5 s
        return await http.post(f"{url}/login/code", headers={**headers, "Accept": "application/json"})


async def waiting(made: Setting) -> list[str]:
    leases = await made.world.admin.items(MEMBERS)
    return [each["metadata"]["name"] for each in leases if "-code-" in each["metadata"]["name"]]


@asynccontextmanager
async def two(world: PortalWorld) -> AsyncIterator[tuple[Setting, str]]:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made:
        other = await world.replica(
            VKPROVIDER_PORTAL_COOKIE_KEY=KEY, VKPROVIDER_PORTAL_USERNAME_PREFIX=made.people.prefix
        )
        yield made, f"http://127.0.0.1:{other.page.port}"


async def test_a_code_logs_in_once_at_any_replica(world: PortalWorld) -> None:
    async with two(world) as (made, other):
        answer = await asked(made.client.url, made.alice)
        assert answer.json()["seconds"] == 60
        code = answer.json()["code"]
        assert len(code) * 6 >= 128
        (lease,) = await waiting(made)
        stored = str(await world.admin.get(f"{MEMBERS}/{lease}"))
        token = made.alice["Authorization"].removeprefix("Bearer ")
        assert code not in stored
        assert token not in stored

        async with Browsing(other) as one, Browsing(made.client.url) as two_:
            for browser in (one, two_):
                page = await browser.get(f"/login/{code}", **{"Sec-Fetch-Site": "none"})
                assert "data-send-now" in page.text
            assert await waiting(made) == [lease]  # to look at the page uses nothing up
            statuses = [
                answer.status_code
                for answer in await asyncio.gather(one.post(f"/login/{code}"), two_.post(f"/login/{code}"))
            ]
            assert sorted(statuses) == [303, 403]
            winner, loser = (one, two_) if statuses[0] == 303 else (two_, one)
            assert (await winner.get("/")).headers["location"] == "/labs/alice"
            assert "used already" in loser.texts[-1]
            assert (await loser.get("/")).headers["location"] == "/login?next=/"
            assert await waiting(made) == []


async def test_another_sites_link_does_not_log_in_by_itself(world: PortalWorld) -> None:
    """Else a page could log somebody in as its author, who then sees what is typed."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        code = (await asked(made.client.url, made.alice)).json()["code"]
        page = await browser.get(f"/login/{code}", **{"Sec-Fetch-Site": "cross-site"})
        assert "data-send-now" not in page.text
        foreign = await browser.post(f"/login/{code}", {"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        unbound = await browser.post(f"/login/{code}", csrf="AAAA")
        assert unbound.status_code == 403
        assert (await browser.post(f"/login/{code}")).status_code == 303


async def test_who_is_logged_in_is_asked_before_the_session_changes(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        bob = await made.people.person("bob")
        await browser.log_in(bob)
        code = (await asked(made.client.url, made.alice)).json()["code"]
        page = await browser.get(f"/login/{code}", **{"Sec-Fetch-Site": "none"})
        assert "data-send-now" not in page.text
        assert f"You are logged in as <strong>{made.people.prefix}bob</strong>" in page.text


async def test_a_link_that_no_page_led_to_logs_in_and_pages_say_as_whom(world: PortalWorld) -> None:
    """Programs open addresses so, mail programs as well as kubectl: docs/security.md."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        code = (await asked(made.client.url, made.alice)).json()["code"]
        page = await browser.get(f"/login/{code}", **{"Sec-Fetch-Site": "none"})
        assert "data-send-now" in page.text
        assert (await browser.post(f"/login/{code}")).status_code == 303
        for path in ("/labs/alice", "/classes"):
            assert f"{made.people.prefix}alice" in (await browser.get(path)).text, path


async def test_an_expired_code_logs_nobody_in_and_is_removed(
    world: PortalWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes, "CODE_S", 1)
    ahead = [0.0]
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made:
        late = await world.replica(
            wall_ahead_s=lambda: ahead[0],
            VKPROVIDER_PORTAL_COOKIE_KEY=KEY,
            VKPROVIDER_PORTAL_USERNAME_PREFIX=made.people.prefix,
        )
        code = (await asked(made.client.url, made.alice)).json()["code"]
        ahead[0] = 61.0
        async with Browsing(f"http://127.0.0.1:{late.page.port}") as browser:
            await browser.get(f"/login/{code}")
            assert (await browser.post(f"/login/{code}")).status_code == 403

        async def gone() -> bool:
            return await waiting(made) == []

        await eventually(gone, "the code is removed")


async def test_a_code_needs_a_token_of_the_cluster(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made:
        for headers in ({}, {"Authorization": "Bearer made-up"}, {"Authorization": f"Bearer {'x' * 12_000}"}):
            answer = await asked(made.client.url, headers)
            assert answer.status_code == 401, headers
            assert answer.json()["message"]
        assert await waiting(made) == []


async def test_codes_and_failed_logins_are_limited(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        made_ones = [(await asked(made.client.url, made.alice)).status_code for _ in range(12)]
        assert made_ones.count(200) <= 11
        assert made_ones[-1] == 429
        await browser.get("/login")
        tries = Counter[int]()
        while not tries[429]:  # one more may be tried every 2 s, which some requests take on a busy machine
            tries[(await browser.post("/login", token="made-up")).status_code] += 1
            assert tries.total() <= 60
        assert tries[401] >= 20
        for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
            forged = await browser.post("/login", {header: "10.0.0.7"}, token="made-up")
            assert forged.status_code == 429, "anybody may write what a proxy would say"
        assert (await browser.post("/login", token="another")).status_code == 401


async def test_what_a_dead_replica_left_goes_with_the_next_code(world: PortalWorld) -> None:
    async with two(world) as (made, other):
        await asked(other, made.alice)
        (left,) = await waiting(made)
        for running in world._replicas[1:]:
            await running.crash()
        late = await world.replica(
            wall_ahead_s=lambda: 100.0,
            VKPROVIDER_PORTAL_COOKIE_KEY=KEY,
            VKPROVIDER_PORTAL_USERNAME_PREFIX=made.people.prefix,
        )
        assert (await asked(f"http://127.0.0.1:{late.page.port}", made.alice)).status_code == 200
        assert left not in await waiting(made)


async def test_made_up_codes_cost_no_request(world: PortalWorld) -> None:
    """Whoever writes another address into the header each time asks the API server for nothing either."""
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        code = (await asked(made.client.url, made.alice)).json()["code"]
        await browser.get("/login")
        made.running.api.asked.clear()
        near = [code[:-1] + ("A" if code[-1] != "A" else "B"), code[:-1], f"B{code[1:]}", code[:24]]
        made_up = [*near, *(os.urandom(24 + at % 16).hex()[:64] for at in range(100))]
        for at, each in enumerate(made_up):
            answer = await browser.post(f"/login/{each}", {"X-Forwarded-For": f"10.0.{at // 250}.{at % 250}"})
            assert answer.status_code == 403, each
        assert not [each.line for each in made.running.api.asked if "-code-" in each.path]
        assert (await browser.post(f"/login/{code}")).status_code == 303


async def test_who_fails_keeps_nobody_else_at_the_same_address_from_the_login(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        Browsing(made.client.url) as mallory,
        Browsing(made.client.url) as alice,
    ):
        for at in range(30):
            assert (await mallory.log_in({"Authorization": f"Bearer made-up-{at}"})).status_code == 401
            assert (await mallory.post(f"/login/{'A' * 31}{at:02}")).status_code == 403
        assert (await alice.log_in(made.alice)).status_code == 303
        # Made now: on a busy machine it takes longer until here than a code is valid.
        code = (await asked(made.client.url, made.alice)).json()["code"]
        assert (await mallory.post(f"/login/{code}")).status_code == 303


async def test_a_used_code_that_is_sent_again_and_again_keeps_nobody_from_the_login(world: PortalWorld) -> None:
    """Wherever it seems to come from: what is over is not asked for again, and uses up nothing that all share."""
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        Browsing(made.client.url) as mallory,
        Browsing(made.client.url) as alice,
    ):
        used = (await asked(made.client.url, made.alice)).json()["code"]
        await mallory.get("/login")
        assert (await mallory.post(f"/login/{used}")).status_code == 303
        made.running.api.asked.clear()
        for first in range(0, 700, 50):
            sent = (
                mallory.post(f"/login/{used}", {"X-Forwarded-For": f"10.0.{at // 250}.{at % 250}"})
                for at in range(first, first + 50)
            )
            assert {answer.status_code for answer in await asyncio.gather(*sent)} <= {403, 429}
        assert not [each.line for each in made.running.api.asked if "-code-" in each.path]
        fresh = (await asked(made.client.url, made.alice)).json()["code"]
        await alice.get(f"/login/{fresh}")
        assert (await alice.post(f"/login/{fresh}")).status_code == 303
