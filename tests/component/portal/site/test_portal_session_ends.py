"""A session that is over, or left, ends its streams and consoles, though its token is valid for longer."""

import asyncio
import contextlib
import os
import time
from base64 import b64decode, b64encode
from pathlib import Path

import aiohttp
import httpx

from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.site import consolebench
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.consolebench import Bench, console_bench
from tests.component.portal.site.test_live_streams import Stream, stream
from tests.support.apiserver import ApiServer
from vkprovider.portal.web import cookie
from vkprovider.portal.web.cookie import keys_of
from vkprovider.portal.web.visitors import COOKIE

KEY = b64encode(os.urandom(32)).decode()
LENGTHS_S = (2, 6, 18)
"""Sessions, until one lasts long enough for what is opened in it: on a busy machine that takes seconds."""
ENDS_S = 20
"""The most time from the end of a session to that of what is open; the first review of that comes after 45 seconds."""


def session_of(person: dict[str, str], key: str, seconds: float) -> str:
    """Return the cookies of a session that is over soon, of a token that is not."""
    token = person["Authorization"].removeprefix("Bearer ")
    session = cookie.LoginSession(token, time.time() + seconds, os.urandom(16).hex())
    written = cookie.written(keys_of(b64decode(key)).session, COOKIE, session)
    return "; ".join(f"{name}={value}" for name, value in written.items())


async def rest_of(found: Stream, within_s: float) -> str:
    """Return what a stream still brings, after its end."""
    async with asyncio.timeout(within_s):
        return "\n".join([line async for line in found._lines])


async def test_a_stream_ends_with_its_session(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made:
        for seconds in LENGTHS_S:
            cookies = session_of(made.alice, KEY, seconds)
            async with stream(made.client.url, "lab:alice", Cookie=cookies) as found:
                if found.answer.status_code == 200:
                    rest = await rest_of(found, seconds + ENDS_S)
                    assert "gone" not in rest, "the page asks again, and is led to the login"
                    break
        else:
            raise AssertionError("no session lasted until its stream was open")
        async with stream(made.client.url, "lab:alice", Cookie=cookies) as refused:
            assert refused.answer.status_code == 401


async def test_a_stream_ends_when_its_visitor_logs_out_and_that_of_another_session_does_not(world: PortalWorld) -> None:
    async with (
        setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made,
        Browsing(made.client.url) as one,
        Browsing(made.client.url) as other,
    ):
        for browser in (one, other):
            await browser.log_in(made.alice)
            await browser.get("/nowhere")
        mine, elsewhere = [
            "; ".join(f"{name}={value}" for name, value in each.cookies.items()) for each in (one, other)
        ]
        async with (
            stream(made.client.url, "lab:alice", Cookie=mine) as left,
            stream(made.client.url, "lab:alice", Cookie=elsewhere) as stays,
        ):
            await left.next("change")
            await stays.next("change")
            answer = await one.post("/logout", {"X-Piece": "1"})
            assert (answer.status_code, answer.headers["x-location"]) == (204, "/login")
            assert not any(name.startswith(COOKIE + "-0") for name in one.cookies)
            assert "gone" not in await rest_of(left, ENDS_S)
            await stays.next("beat")
            await stays.next("beat")


class TooShortError(Exception):
    """A session was over before what it is for was open."""


async def end_of(bench: Bench, cookies: str, seconds: float) -> tuple[int | None, str]:
    """Open a console, and return how it ends."""
    try:
        screen = await bench.screen(cookies, "r1")
    except aiohttp.WSServerHandshakeError:
        raise TooShortError from None
    async with screen:
        try:
            await screen.shows("Escape character is '^]'.")
        except AssertionError:
            raise TooShortError from None
        return (await screen.ends(seconds + ENDS_S))[:2]


async def test_a_console_ends_with_its_session(portal_server: ApiServer, tmp_path: Path) -> None:
    async with console_bench(portal_server, tmp_path) as bench:
        teacher = await bench.teacher("ann")
        for seconds in LENGTHS_S:
            with contextlib.suppress(TooShortError):
                code, why = await end_of(bench, session_of(teacher, consolebench.KEY, seconds), seconds)
                assert (code, why) == (4403, "withdrawn")
                break
        else:
            raise AssertionError("no session lasted until its console was open")
        async with httpx.AsyncClient() as http:
            known = await http.get(f"{bench.url}/nublado/spawner/v1/labs/ann", headers=teacher)
            assert known.status_code != 401, "the token is still valid"
