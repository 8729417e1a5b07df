"""Topics: one rendering for a change however many look, a pause between two, and what a page was loaded with."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.component.controllers.looking import when
from vkprovider.portal.service.index import Listeners
from vkprovider.portal.web.live.streams import merged
from vkprovider.portal.web.live.topics import (
    PAUSE_S,
    PAUSE_S_MAX,
    Rendered,
    Topic,
    Topics,
    TopicSource,
    TopicView,
    pause_s,
)
from vkprovider.portal.web.visitors import Visitor


class Boards:
    """A kind of topic whose text a test writes."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {"b": "one"}
        self.listeners: Listeners[str] = Listeners()
        self.renderings = 0
        self.topics = Topics()
        self.topics.register(TopicSource("board", self.allowed, self.render, self.listeners.listen))

    async def allowed(self, visitor: Visitor, name: str) -> TopicView:
        raise NotImplementedError

    def render(self, name: str, role: str, base: str) -> Rendered | None:
        self.renderings += 1
        text = self.texts.get(name)
        if text == "broken":
            raise ValueError(text)
        return Rendered({"text": f"<p>{text} for {role} at {base}</p>"}) if text is not None else None

    def write(self, name: str, text: str) -> None:
        self.texts[name] = text
        self.listeners.tell(name)

    @asynccontextmanager
    async def looking(self, role: str = "owner") -> AsyncIterator[tuple[Topic, asyncio.Event]]:
        news = asyncio.Event()
        async with self.topics.looking("board", "b", role, "", news) as topic:
            yield topic, news


def sent(frame: bytes) -> Any:
    kind, data = frame.decode().strip().split("\n")
    assert kind == "event: change"
    return json.loads(data.removeprefix("data: "))


async def test_a_change_is_rendered_once_for_all_who_look_in_one_role() -> None:
    boards = Boards()
    async with (
        boards.looking() as (first, news),
        boards.looking() as (second, other),
        boards.looking("teacher") as (third, _),
    ):
        assert second is first
        assert third is not first
        assert len(boards.topics) == 2
        before, begun = first.shown, boards.renderings
        boards.write("b", "two")
        await asyncio.gather(news.wait(), other.wait())
        assert boards.renderings <= begun + 2
        frame = first.frame(before)
        assert second.frame(before) is frame
        assert sent(frame)["elements"] == {"text": "<p>two for owner at </p>"}
        assert sent(frame)["from"] == before.version  # type: ignore[union-attr]
        assert first.frame(first.shown) == b""
    assert len(boards.topics) == 0
    assert len(boards.listeners) == 0


async def test_a_hundred_changes_cost_a_few_renderings_and_the_last_one_is_shown() -> None:
    boards = Boards()
    async with boards.looking() as (topic, _):
        await asyncio.sleep(PAUSE_S)
        begun, at = boards.renderings, time.monotonic()
        for number in range(100):
            boards.write("b", str(number))
            await asyncio.sleep(0.003)
        await when(lambda: topic.shown.rendered.elements["text"].startswith("<p>99 "), "the last one is shown")  # type: ignore[union-attr]
        assert boards.renderings - begun <= (time.monotonic() - at) / PAUSE_S + 2


async def test_a_page_gets_what_its_stream_has_and_the_stream_only_what_differs() -> None:
    boards = Boards()
    loaded = boards.topics.now("board", "b", "owner", "")
    assert loaded is not None
    boards.write("b", "two")
    async with boards.looking() as (topic, _):
        found = topic.recent(loaded.version)
        assert found is not None
        assert sent(topic.frame(found))["from"] == loaded.version
        assert sent(topic.frame(topic.recent("unknown")))["from"] == ""
        begun = boards.renderings
        assert boards.topics.now("board", "b", "owner", "") == topic.shown
        assert boards.renderings == begun  # it is followed, and nothing has changed
        boards.write("b", "three")
        assert boards.topics.now("board", "b", "owner", "") is not None


async def test_what_changes_while_a_page_is_made_is_in_the_page() -> None:
    boards = Boards()
    async with boards.looking() as (topic, _):
        await asyncio.sleep(PAUSE_S / 4)  # in the pause
        boards.write("b", "two")
        shown = boards.topics.now("board", "b", "owner", "")
        assert shown is not None
        assert shown.rendered.elements["text"].startswith("<p>two ")
        assert topic.shown == shown


async def test_what_is_gone_is_told_and_may_come_again() -> None:
    boards = Boards()
    async with boards.looking() as (topic, news):
        del boards.texts["b"]
        boards.listeners.tell("b")
        await when(lambda: topic.shown is None, "it is gone")
        assert news.is_set()
        boards.write("b", "again")
        await when(lambda: topic.shown is not None, "it is there")


async def test_a_view_that_fails_ends_nothing() -> None:
    boards = Boards()
    async with boards.looking() as (topic, _):
        before = topic.shown
        boards.write("b", "broken")
        await asyncio.sleep(2 * PAUSE_S)
        assert topic.shown is before
        boards.write("b", "mended")
        await when(lambda: topic.shown is not before, "it is rendered again")


async def test_news_of_several_kinds_are_one() -> None:
    users: Listeners[str] = Listeners()
    pods: Listeners[str] = Listeners()
    async with merged(users.listen("alice"), pods.listen("net101")) as news:
        for listeners, key in ((users, "alice"), (pods, "net101"), (users, "alice")):
            news.clear()
            listeners.tell(key)
            async with asyncio.timeout(5):
                await news.wait()
    assert len(users) == len(pods) == 0


@pytest.mark.parametrize(("took_s", "pause"), [(0.0, PAUSE_S), (0.02, 0.18), (10.0, PAUSE_S_MAX)])
def test_the_pause_grows_with_what_a_rendering_costs(took_s: float, pause: float) -> None:
    assert pause_s(took_s) == pytest.approx(pause)


async def test_dear_renderings_take_turns_with_a_rest_and_a_cheap_one_waits_for_none() -> None:
    spans: list[tuple[float, float]] = []
    cheap: list[float] = []
    listeners, topics = Listeners[str](), Topics()

    async def allowed(visitor: Visitor, name: str) -> TopicView:
        raise NotImplementedError

    def render(name: str, role: str, base: str) -> Rendered:  # noqa: ARG001 (as a source has it)
        began, until = time.monotonic(), time.thread_time() + (0.03 if name != "cheap" else 0.0)
        while time.thread_time() < until:
            pass
        (cheap.append(began) if name == "cheap" else spans.append((began, time.monotonic())))
        return Rendered({"text": f"<p>{began}</p>"})

    topics.register(TopicSource("board", allowed, render, listeners.listen))
    names = [*(f"b{number}" for number in range(12)), "cheap"]
    async with AsyncExitStack() as stack:
        for name in names:
            await stack.enter_async_context(topics.looking("board", name, "owner", "", asyncio.Event()))
        first = len(spans)
        while len(spans) < first + 24:
            for name in names:
                listeners.tell(name)
            await asyncio.sleep(0.005)
        later = spans[first:]
        rests = [after[0] - before[1] for before, after in itertools.pairwise(later)]
        assert min(rests) >= 0.025
        assert len(cheap) > 4
