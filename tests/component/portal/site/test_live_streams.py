"""The stream of a browser as bytes: who gets one, what it brings, and what is asked of the API server meanwhile."""

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
from aiohttp import web

from tests.component.controllers.looking import eventually, when
from tests.component.portal.asking import setting
from tests.component.portal.harness import PortalWorld
from tests.component.portal.people import USER_ROLE
from tests.component.portal.site.browsing import Browsing
from tests.component.portal.site.livehost import Host, hosting
from vkprovider.platform.rights import User
from vkprovider.portal.api.callers import KnownCaller, lab_right
from vkprovider.portal.service.index import Listeners
from vkprovider.portal.service.requests import LabCaller
from vkprovider.portal.web.live.streams import OF_CALLER_MAX, TOPICS_MAX
from vkprovider.portal.web.live.topics import Rendered, TopicSource, TopicView
from vkprovider.portal.web.visitors import Visitor

KEY = b64encode(os.urandom(32)).decode()
OWN = {"Accept": "text/event-stream", "Sec-Fetch-Site": "same-origin"}
Event = tuple[str, Any]
Query = list[tuple[str, str | int | float | bool | None]]


class Stream:
    """A stream, event by event."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()

    async def next(self, *kinds: str) -> Event:
        """Return the next event of some kinds; the limit is that of conditions in all component tests."""
        kind = ""
        async with asyncio.timeout(60):
            async for line in self._lines:
                field, _, value = line.partition(": ")
                kind = value if field == "event" else kind
                if field == "data" and kind in kinds:
                    return kind, json.loads(value)
        raise AssertionError("the stream has ended")


@asynccontextmanager
async def stream(url: str, *topics: str, version: str = "", **headers: str) -> AsyncIterator[Stream]:
    query: Query = [pair for topic in topics for pair in (("topic", topic), ("version", version))]
    async with (
        httpx.AsyncClient(timeout=30) as http,
        http.stream("GET", f"{url}/live", params=query, headers={**OWN, **headers}) as answer,
    ):
        yield Stream(answer)


@asynccontextmanager
async def host_at() -> AsyncIterator[tuple[Host, str]]:
    async with hosting() as (host, proxy):
        yield host, f"http://127.0.0.1:{proxy.port}"


async def test_a_stream_brings_what_differs_from_what_its_page_shows() -> None:
    async with host_at() as (host, url):
        loaded = host.topics.now("board", "lab", "owner", "")
        assert loaded is not None
        async with stream(url, "board:lab", version=loaded.version) as one, stream(url, "board:lab") as other:
            assert one.answer.headers["X-Accel-Buffering"] == "no"
            assert "Content-Encoding" not in one.answer.headers
            assert (await one.next("beat", "change"))[0] == "beat"
            _, whole = await other.next("change")
            assert (whole["from"], whole["version"]) == ("", loaded.version)
            assert set(whole["elements"]) == {"state", "form"}
            host.write("lab", "booting", r1="off", r2="on")
            _, change = await one.next("change")
            assert (change["from"], change["elements"]) == (loaded.version, {})
            assert change["lists"] == {"rows": {"put": [["row-r2", '<li id="row-r2">r2 on</li>', "row-r1"]]}}
            assert (await other.next("change"))[1] == change


async def test_who_is_not_known_or_may_see_nothing_or_is_led_by_another_site_gets_no_stream() -> None:
    async with host_at() as (host, url):
        for topics in (("board:secret",), ("unknown:lab",), ("",), ()):
            async with stream(url, *topics) as refused:
                assert refused.answer.status_code == 404
        async with stream(url, "board:lab", **{"Sec-Fetch-Site": "cross-site"}) as refused:
            assert refused.answer.status_code == 403
        host.known = False
        async with stream(url, "board:lab") as refused:
            assert refused.answer.status_code == 401
        assert len(host.streams) == len(host.topics) == 0


async def test_of_several_topics_those_that_may_not_be_seen_are_told_and_at_most_twenty_are_followed() -> None:
    async with host_at() as (host, url):
        for number in range(30):
            host.write(f"b{number}", "x")
        async with stream(url, "board:lab", "board:secret", *(f"board:b{number}" for number in range(30))) as found:
            kind, data = await found.next("gone")
            assert (kind, data["topic"]) == ("gone", "board:secret")
            await found.next("beat")
            assert len(host.topics) == 19


async def test_a_caller_has_so_many_streams_and_no_more() -> None:
    async with host_at() as (host, url), AsyncExitStack() as stack:
        for _ in range(OF_CALLER_MAX):
            await stack.enter_async_context(stream(url, "board:lab"))
        async with stream(url, "board:lab") as refused:
            assert refused.answer.status_code == 429
        await stack.aclose()
        await when(lambda: len(host.streams) == 0, "all have ended")
        async with stream(url, "board:lab") as found:
            await found.next("beat")


async def test_a_caller_follows_so_many_topics_and_no_more_in_all_streams_together() -> None:
    async with host_at() as (host, url):
        for number in range(TOPICS_MAX + 2):
            host.write(f"b{number}", "x")
        many = [f"board:b{number}" for number in range(TOPICS_MAX - 1)]
        async with stream(url, *many) as first:
            await first.next("change")
            async with stream(url, many[0], "board:b19", "board:b20") as second:
                _, data = await second.next("gone")
                assert (data["topic"], "too much at once" in data["words"]) == ("board:b20", True)
                assert {(await second.next("change"))[1]["topic"] for _ in range(2)} == {many[0], "board:b19"}
                async with stream(url, "board:b20") as refused:
                    assert refused.answer.status_code == 429
        await when(lambda: len(host.streams) == 0, "all have ended")
        async with stream(url, "board:b20") as again:
            await again.next("change")


async def test_a_reader_that_is_slow_gets_the_last_state_and_costs_no_memory() -> None:
    async with host_at() as (host, url), stream(url, "board:lab") as found:
        await found.next("change")
        for number in range(40):
            host.write("lab", f"{number} " + "x" * 500_000)
            await asyncio.sleep(0.06)
        last = ""
        seen = 0
        while not last.startswith("39 "):
            _, change = await found.next("change")
            seen += 1
            last = change["elements"]["state"].partition('aria-live="polite">')[2][:3]
        assert seen < 40


async def test_an_open_stream_asks_the_api_server_for_nothing_but_one_review(world: PortalWorld) -> None:
    texts, listeners = {"lab": "one"}, Listeners[str]()

    async def allowed(visitor: Visitor, name: str) -> TopicView:  # noqa: ARG001 (as a source has it)
        if not await made.running.replica.live.reviews.may(visitor, right):
            raise web.HTTPNotFound
        return TopicView("owner", right)

    def render(name: str, role: str, base: str) -> Rendered:  # noqa: ARG001 (as a source has it)
        return Rendered({"text": texts[name]})

    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made, Browsing(made.client.url) as browser:
        right = lab_right("use", "vkprovider-system", "alice")
        live = made.running.replica.live
        live.topics.register(TopicSource("board", allowed, render, listeners.listen))
        await browser.log_in(made.alice)
        cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        async with stream(made.client.url, "board:lab", **cookie) as found:
            await found.next("change")
            asked = len(made.running.api.asked)
            for number in range(10):
                texts["lab"] = f"change {number}"
                listeners.tell("lab")
                await found.next("change")
            known = KnownCaller(User(f"{made.people.prefix}alice"), LabCaller("alice", "alice", (), ""))
            token = made.alice["Authorization"].removeprefix("Bearer ")
            visitor = Visitor(known, "", token)
            assert await live.reviews.may(visitor, right) is True
            lines = [each.line for each in made.running.api.asked[asked:] if "/leases" not in each.path]
            assert [line for line in lines if "watch" not in line] == [
                "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
            ]


async def test_a_right_or_a_token_that_is_withdrawn_is_missed_at_the_next_review(world: PortalWorld) -> None:
    async with setting(world, VKPROVIDER_PORTAL_COOKIE_KEY=KEY) as made:
        reviews = made.running.replica.live.reviews
        right = lab_right("use", "vkprovider-system", "bob")
        header = await made.people.person("bob")
        binding = await made.people.allow("bob", USER_ROLE)
        name = f"{made.people.prefix}bob"
        visitor = Visitor(
            KnownCaller(User(name), LabCaller("bob", name, (), "")), "", header["Authorization"].removeprefix("Bearer ")
        )
        without_token = visitor._replace(token="")

        async def refused() -> bool:
            return await reviews.may(visitor, right) is False

        assert await reviews.may(visitor, right) is True
        assert await reviews.may(without_token, right) is True
        made.running.api.fault(r"reviews", status=503)
        assert await reviews.may(visitor, right) is None
        await world.admin.delete(binding)
        await eventually(refused, "the right is missed")
        await made.people.allow("bob", USER_ROLE)
        assert await reviews.may(visitor, right) is True
        await world.admin.delete(f"/api/v1/namespaces/{made.people.namespace}/serviceaccounts/bob")
        await eventually(refused, "the token is not known any more")  # the API server remembers it for ten seconds
