"""The open streams of a replica, each with all that its browser shows, and all that lets pages change by themselves.

Nothing is queued for a stream. Whenever its reader has taken what was sent, it gets what differs from that by then.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Final, NamedTuple

from aiohttp import web

from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.http.answers import NotAllowed, TooManyReviews
from vkprovider.platform.http.open import Places
from vkprovider.platform.http.sse import EventStream
from vkprovider.platform.runtime.metrics import Measure, by_name, counter, gauge, value
from vkprovider.platform.runtime.parts import Route
from vkprovider.portal.web.layout import SiteContext
from vkprovider.portal.web.live.topics import Rendering, Topic, Topics, TopicView, beat, gone
from vkprovider.portal.web.visitors import Asking, Visitor, VisitorReviews, Visitors, require_own

TOPICS_MAX: Final = 20
_CHARS_MAX: Final = 1000


class Subscription(NamedTuple):
    """A topic that a page shows.

    Attributes:
        topic: Its name, with the kind.
        version: What the page shows of it; "" if it does not know that.
    """

    topic: str
    version: str

    @property
    def kind(self) -> str:
        """The kind of thing."""
        return self.topic.partition(":")[0]

    @property
    def name(self) -> str:
        """Which one of them."""
        return self.topic.partition(":")[2]


def wanted(topics: Sequence[str], versions: Sequence[str], form: Callable[[str, str], str]) -> list[Subscription]:
    """Return what a page asks for, each topic once, and not more than a stream may have.

    Args:
        topics: The names of topics, with their kinds.
        versions: What the page shows of each.
        form: Returns the one name of what a name of a kind names.
    """
    given = [*versions, *([""] * len(topics))]
    asked = [Subscription(topic, its) for topic, its in zip(topics, given, strict=False) if len(topic) <= _CHARS_MAX]
    formed = [Subscription(f"{each.kind}:{form(each.kind, each.name)}", each.version) for each in asked]
    found = {each.topic: each for each in formed}
    return list(found.values())[:TOPICS_MAX]


@asynccontextmanager
async def merged(*listening: AbstractAsyncContextManager[asyncio.Event]) -> AsyncIterator[asyncio.Event]:
    """Yield an event that is set whenever one of others is; the caller clears it.

    Args:
        listening: What yields the others, such as `Index.listen`.
    """
    news = asyncio.Event()

    async def follow(one: asyncio.Event) -> None:
        while True:
            await one.wait()
            one.clear()
            news.set()

    async with AsyncExitStack() as stack:
        tasks = [asyncio.create_task(follow(await stack.enter_async_context(each))) for each in listening]
        try:
            yield news
        finally:
            await end_tasks(tasks)


BEAT_S: Final = 2.0
"""The pause between two signs of life: a page says within five seconds that it hears nothing any more."""
STREAMS_MAX: Final = 2000
OF_CALLER_MAX: Final = 20
_TOO_MANY: Final = "too many browsers follow changes: close some, or load the page again later"
_WITHDRAWN: Final = "You may not see this any more."
_TOO_MUCH: Final = "You follow too much at once: close some pages, then load this one again."
_GONE: Final = "This is not there any more."


class _Open(NamedTuple):
    """A topic of a stream.

    Attributes:
        over: Set when the right to see it is withdrawn.
    """

    topic: Topic
    over: asyncio.Event


class Streams:
    """The open streams."""

    def __init__(
        self,
        visitors: Visitors,
        topics: Topics,
        reviews: VisitorReviews,
        wall: Callable[[], float] = time.time,
        age_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Begin without streams.

        Args:
            visitors: Finds out who asks.
            topics: What there is to see.
            reviews: Asks whether they still may.
            wall: Returns the Unix seconds by which labs end.
            age_s: Returns how old what is shown may be, if that matters; else 0.
        """
        self._visitors = visitors
        self._topics = topics
        self._reviews = reviews
        self._wall = wall
        self._age_s = age_s
        self._places = Places(STREAMS_MAX, OF_CALLER_MAX, lambda _: TooManyReviews(_TOO_MANY))
        self._followed: dict[str, Counter[str]] = {}

    def __len__(self) -> int:
        """Count the streams."""
        return len(self._places)

    def close(self) -> None:
        """End all streams, and those that begin later at once."""
        self._places.close()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Answer a request with the changes of some topics.

        Raises:
            Refused: 401: nobody who is known; 429: too many streams; 503: the API server cannot be asked.
            HTTPNotFound: The visitor may see none of the topics.
        """
        require_own(request)
        visitor = await self._visitors.of(request)
        asked = wanted(request.query.getall("topic", []), request.query.getall("version", []), self._topics.form)
        allowed = {each: found for each in asked if (found := await self._allowed(visitor, each)) is not None}
        if not allowed:
            raise web.HTTPNotFound
        caller = visitor.known.of_cluster.username
        fitting = self._fitting(caller, allowed)
        ended = asyncio.Event()
        news = asyncio.Event()
        async with AsyncExitStack() as stack:
            stack.enter_context(self._places.taken(caller, news))
            stack.enter_context(self._following(caller, [each.topic for each in fitting]))
            stack.enter_context(
                self._reviews.sessions.during(visitor.session, visitor.token, visitor.ends_at, ended, news)
            )
            try:
                stream = await EventStream.begin(request)
            except ConnectionResetError:
                return web.Response()  # there is nobody to read it
            open_ = {each: await self._opened(stack, visitor, each, allowed[each], news) for each in fitting}
            with suppress(ConnectionResetError):
                for each in asked:
                    if each not in fitting:
                        await stream.send(gone(each.topic, _TOO_MUCH if each in allowed else _WITHDRAWN))
                await self._follow(stream, news, open_, ended)
            return stream.answer

    async def _allowed(self, visitor: Visitor, each: Subscription) -> TopicView | None:
        """Return what a visitor may see of a topic; None if that is nothing.

        Raises:
            Refused: 503: nobody knows.
        """
        source = self._topics.source(each.kind)
        if source is None:
            return None
        try:
            return await source.allowed(visitor, each.name)
        except (NotAllowed, web.HTTPNotFound):
            return None

    def _fitting(self, caller: str, asked: Iterable[Subscription]) -> list[Subscription]:
        """Return those of some topics that somebody may follow beside what their other streams do.

        Raises:
            Refused: 429: none.
        """
        topics, found = set(self._followed.get(caller, ())), []
        for each in asked:
            if each.topic in topics or len(topics) < TOPICS_MAX:
                topics.add(each.topic)
                found.append(each)
        if not found:
            raise TooManyReviews(_TOO_MUCH)
        return found

    @contextmanager
    def _following(self, caller: str, names: Sequence[str]) -> Iterator[None]:
        """Note that somebody follows topics while the block runs."""
        self._followed.setdefault(caller, Counter()).update(names)
        try:
            yield
        finally:
            left = Counter(self._followed.pop(caller)) - Counter(names)
            if left:
                self._followed[caller] = left

    async def _opened(
        self, stack: AsyncExitStack, visitor: Visitor, each: Subscription, allowed: TopicView, news: asyncio.Event
    ) -> _Open:
        over = await stack.enter_async_context(self._reviews.holding(visitor, allowed.right, news))
        looking = self._topics.looking(each.kind, each.name, allowed.role, visitor.base, news)
        return _Open(await stack.enter_async_context(looking), over)

    async def _follow(
        self, stream: EventStream, news: asyncio.Event, open_: dict[Subscription, _Open], ended: asyncio.Event
    ) -> None:
        """Send what changes until nothing is left to see, or the session has ended: whoever asks again must log in.

        Raises:
            ConnectionResetError: The visitor has left.
        """
        sent: dict[Subscription, Rendering | None] = {
            each: its.topic.recent(each.version) for each, its in open_.items()
        }
        await stream.send(beat(self._wall(), self._age_s()))
        while sent and not self._places.is_closed and not ended.is_set():
            news.clear()
            for each, its in open_.items():
                if ended.is_set():
                    break  # it sets `over` as well, and takes no right away
                if each in sent and (its.over.is_set() or its.topic.shown is None):
                    del sent[each]
                    await stream.send(gone(each.topic, _WITHDRAWN if its.over.is_set() else _GONE))
                elif each in sent and (frame := its.topic.frame(sent[each])):
                    sent[each] = its.topic.shown  # before the frame is on its way: it may change meanwhile
                    await stream.send(frame)
            try:
                async with asyncio.timeout(BEAT_S):
                    await news.wait()
            except TimeoutError:
                await stream.send(beat(self._wall(), self._age_s()))


class Live(NamedTuple):
    """All that lets pages change by themselves.

    Attributes:
        topics: Views register theirs here, and get what a page shows first.
        reviews: Asks whether somebody still may; also for what is no stream of these.
        streams: The open streams.
    """

    topics: Topics
    reviews: VisitorReviews
    streams: Streams

    def measures(self) -> Iterator[Measure]:
        """Yield the metrics."""
        topics, reviews, streams = self
        yield gauge("vkprovider_portal_browsers", "Browsers that follow changes.", lambda: value(len(streams)))
        yield gauge("vkprovider_portal_topics", "Topics that browsers look at.", lambda: value(len(topics)))
        yield counter(
            "vkprovider_portal_renderings_total", "Renderings of topics.", lambda: value(topics.renderings_total)
        )
        yield counter(
            "vkprovider_portal_reviews_total",
            "Reviews of who looks at something; unknown: the API server could not be asked.",
            lambda: by_name(reviews.answers_total),
            "answer",
        )

    async def finish(self) -> None:
        """End the streams: browsers come back to another replica."""
        self.streams.close()


def live_parts(site: SiteContext) -> Live:
    """Make it, without any topic."""
    own_tokens = not site.settings.token_audiences
    reviews = VisitorReviews(Asking(site.as_visitor, site.callers, own_tokens=own_tokens).ask, wall=site.ctx.wall)
    topics = Topics()
    return Live(topics, reviews, Streams(site.visitors, topics, reviews, site.ctx.wall, site.index.age_s))


def routes(live: Live) -> tuple[Route, ...]:
    """Return the paths."""
    return (Route("GET", "/live", live.streams.serve),)
