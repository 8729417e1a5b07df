"""Which topics are looked at, and their renderings: one for a change, however many look, and what differs between two.

    event: change
    data: {"topic": "class:net101", "from": "", "version": "aGk…", "elements": {…}, "lists": {…}}

Without `from`, the change is all that there is, and what a list has beside it is there no more.

After a change a topic is rendered at once, then not again for a pause, so that a class that starts does not cost a
rendering for each Pod. Topics whose renderings are dear take turns, so that all of them together leave half a core.
What depends on the time alone, or on what tells nobody, is found by a rendering now and then.
"""

import asyncio
import hashlib
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Final, NamedTuple

import msgspec
import structlog

from vkprovider.platform.concurrency import end_tasks
from vkprovider.platform.http.sse import frame
from vkprovider.platform.rights import Right
from vkprovider.portal.web.visitors import Visitor

_MINUTE_S: Final = 60
_EXACT_MINUTES: Final = 10
_HOURS_MAX: Final = 48


def time_left(seconds: float) -> str:
    """Return how long something still lasts, for `<time data-until="…">`.

    >>> time_left(5000)
    '1 h 23 min left'
    """
    if seconds <= 0:
        return "over"
    minutes, rest = divmod(int(seconds), _MINUTE_S)
    if minutes < _EXACT_MINUTES:
        return f"{minutes}:{rest:02} min left"
    hours, minutes = divmod(minutes, 60)
    if not hours:
        return f"{minutes} min left"
    return f"{hours} h {minutes} min left" if hours < _HOURS_MAX else f"{hours // 24} d {hours % 24} h left"


_VERSION_BYTES: Final = 12
_NOTHING: Final[Mapping[str, str]] = {}


class Rendered(msgspec.Struct, frozen=True):
    """The elements of a page that change.

    Attributes:
        elements: The HTML of whole elements, by the id that each has.
        lists: Elements that come, go and change places, by the id of the element that holds them alone; each as in
            `elements`, in the order of the page.
    """

    elements: Mapping[str, str] = {}
    lists: Mapping[str, Mapping[str, str]] = {}

    def version(self) -> str:
        """Return a name for exactly this: every replica that sees the same gives it the same name."""
        parts = hashlib.blake2b(digest_size=_VERSION_BYTES)
        for key, html in self.elements.items():
            parts.update(f"{key}\0{html}\0".encode())
        for parent, children in self.lists.items():
            parts.update(f"\0{parent}\0".encode())
            for key, html in children.items():
                parts.update(f"{key}\0{html}\0".encode())
        return urlsafe_b64encode(parts.digest()).decode()


class Rendering(NamedTuple):
    """A rendering and its version."""

    version: str
    rendered: Rendered


class Put(NamedTuple):
    """An element of a list that is new, has changed, or has another place.

    Attributes:
        after: The id of the element before it; "" for the first.
    """

    id: str
    html: str
    after: str


class ListChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What differs in a list.

    Attributes:
        put: What is new, has changed, or has another place, in the order of the page.
        gone: The ids of what is there no more.
    """

    put: tuple[Put, ...] = ()
    gone: tuple[str, ...] = ()


class PageChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What differs between two renderings.

    Attributes:
        elements, lists: What is to be shown now; as in `Rendered`.
    """

    elements: Mapping[str, str] = {}
    lists: Mapping[str, ListChange] = {}


def all_of(new: Rendered) -> PageChange:
    """Return everything, for a page of which nobody knows what it shows."""
    return PageChange(new.elements, {parent: ListChange(_put(its, its)) for parent, its in new.lists.items()})


def difference(old: Rendered, new: Rendered) -> PageChange:
    """Return what differs."""
    elements = {key: html for key, html in new.elements.items() if old.elements.get(key) != html}
    lists = {parent: _list_change(old.lists.get(parent, _NOTHING), its) for parent, its in new.lists.items()}
    return PageChange(elements, {parent: change for parent, change in lists.items() if change != _SAME})


_SAME: Final = ListChange()


def _list_change(old: Mapping[str, str], new: Mapping[str, str]) -> ListChange:
    stay = [key for key, html in new.items() if old.get(key) == html]
    kept = set(stay)
    if [key for key in old if key in kept] != stay:
        kept = set()  # they have changed places without a change of themselves: rare, so all are put
    return ListChange(_put(new, (key for key in new if key not in kept)), tuple(key for key in old if key not in new))


def _put(its: Mapping[str, str], keys: Iterable[str]) -> tuple[Put, ...]:
    before = dict(zip(its, ["", *its], strict=False))
    return tuple(Put(key, its[key], before[key]) for key in keys)


_encoder: Final = msgspec.json.Encoder()


class _Change(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    topic: str
    from_: str
    version: str
    elements: object
    lists: object


class _Gone(msgspec.Struct, frozen=True):
    topic: str
    words: str


def change(topic: str, old: Rendering | None, new: Rendering) -> bytes:
    """Return the event after which a page that shows `old` shows `new`; without `old`, it may have shown anything."""
    found: PageChange = difference(old.rendered, new.rendered) if old is not None else all_of(new.rendered)
    body = _Change(topic, old.version if old is not None else "", new.version, found.elements, found.lists)
    return frame("", _encoder.encode(body).decode(), "change")


def gone(topic: str, words: str) -> bytes:
    """Return the event by which a topic ends for a visitor."""
    return frame("", _encoder.encode(_Gone(topic, words)).decode(), "gone")


class _Beat(msgspec.Struct, frozen=True):
    at: int
    age: int


def beat(unix_s: float, age_s: float) -> bytes:
    """Return the sign of life.

    Args:
        unix_s: The API server's time, by which labs end: clocks of visitors are wrong.
        age_s: How old what is shown may be, if that matters; else 0.
    """
    return frame("", _encoder.encode(_Beat(int(unix_s * 1000), int(age_s))).decode(), "beat")


_log: Final = structlog.get_logger(__name__)
PAUSE_S: Final = 0.1
PAUSE_S_MAX: Final = 0.5
_SHARE: Final = 9
"""A topic pauses for so many times the CPU that its last rendering took, which leaves it a tenth of a core."""
_CHEAP_S: Final = 0.01
"""A topic whose last rendering took more CPU waits for its turn, and rests for as long before it is another's."""
REFRESH_S: Final = 30.0
_RECENT: Final = 8
"""Renderings that a page may have been loaded with, and still gets only what differs."""
_IDLE_MAX: Final = 32
"""Topics at which nobody looks whose renderings are kept, for pages that were just loaded."""


class TopicView(NamedTuple):
    """What a visitor may see of a topic.

    Attributes:
        role: A word by which HTML differs: what one role sees is the same for all visitors.
        right: The right that allows it, which is asked for again every minute.
    """

    role: str
    right: Right


class TopicSource(NamedTuple):
    """A kind of topic, as a view describes it; `name` is what follows the kind.

    Attributes:
        kind: The kind.
        allowed: Returns what a visitor may see; raises `Refused` or `HTTPNotFound` if that is nothing.
        render: Returns what `name` looks like in a role, below a base path; None if it is gone. It asks nobody.
        listen: Yields an event that is set whenever `name` may look different; the caller clears it.
        form: Returns the one name of what `name` names.
    """

    kind: str
    allowed: Callable[[Visitor, str], Awaitable[TopicView]]
    render: Callable[[str, str, str], Rendered | None]
    listen: Callable[[str], AbstractAsyncContextManager[asyncio.Event]]
    form: Callable[[str], str] = str


class Key(NamedTuple):
    """What one rendering is for."""

    kind: str
    name: str
    role: str
    base: str


class Topic:
    """A topic in one role, and how it looked of late."""

    def __init__(self, source: TopicSource, key: Key, rendered: Callable[[], None]) -> None:
        """Render nothing yet; `rendered` is called at each rendering."""
        self._source = source
        self._key = key
        self._rendered = rendered
        self._recent: deque[Rendering] = deque(maxlen=_RECENT)
        self._frames: dict[str, bytes] = {}
        self._news: set[asyncio.Event] = set()
        self.listeners: set[asyncio.Event] = set()

    @property
    def shown(self) -> Rendering | None:
        """How it looks; None if it is gone."""
        return self._recent[-1] if self._recent else None

    def recent(self, version: str) -> Rendering | None:
        """Return a rendering of late; None if nobody knows that version."""
        return next((each for each in self._recent if each.version == version), None)

    def frame(self, old: Rendering | None) -> bytes:
        """Return the event that brings a page up to date; made once for all who show the same."""
        new = self.shown
        if new is None or (old is not None and old.version == new.version):
            return b""
        since = old.version if old is not None else ""
        if since not in self._frames:
            self._frames[since] = change(f"{self._key.kind}:{self._key.name}", old, new)
        return self._frames[since]

    def render(self) -> Rendering | None:
        """Render it, and wake who looks if it looks different."""
        self._rendered()
        found = self._source.render(self._key.name, self._key.role, self._key.base)
        before = self.shown
        if found is None:
            self._recent.clear()
        elif before is None or before.rendered != found:
            self._recent.append(Rendering(found.version(), found))
        if self.shown is not before:
            self._frames.clear()
            for news in self.listeners:
                news.set()
        return self.shown

    def fresh(self) -> Rendering | None:
        """Return how it looks now: it is rendered unless it is followed, and nothing has changed since."""
        is_fresh = bool(self._news) and not any(news.is_set() for news in self._news)
        return self.shown if is_fresh else self.render()

    async def follow(self, ready: asyncio.Event, turns: asyncio.Lock) -> None:
        """Render it whenever it may look different, for ever.

        Args:
            ready: Is set when the first rendering is there.
            turns: Whoever has it renders a topic that is dear.
        """
        took_s = 0.0
        async with self._source.listen(self._key.name) as news:
            while True:
                async with _turn(turns, took_s):
                    news.clear()
                    began = time.thread_time()  # on a busy machine a rendering lasts longer, and costs no more
                    try:
                        self.render()
                    except Exception:  # noqa: BLE001 (a bug of a view must not end the streams of all who look)
                        _log.exception("a topic cannot be rendered", topic=f"{self._key.kind}:{self._key.name}")
                    took_s = time.thread_time() - began
                    self._news.add(news)
                    ready.set()
                try:
                    await asyncio.sleep(pause_s(took_s))
                    with suppress(TimeoutError):
                        async with asyncio.timeout(REFRESH_S):
                            await news.wait()
                finally:
                    self._news.discard(news)


@asynccontextmanager
async def _turn(turns: asyncio.Lock, took_s: float) -> AsyncIterator[None]:
    """Wait for the turn of a topic whose last rendering took so much CPU, and rest at its end."""
    if took_s <= _CHEAP_S:
        yield
        return
    async with turns:
        yield
        await asyncio.sleep(took_s)


def pause_s(took_s: float) -> float:
    """Return how long a topic is not rendered again after a rendering that took so much CPU."""
    return min(max(PAUSE_S, _SHARE * took_s), PAUSE_S_MAX)


class Topics:
    """The topics of a replica.

    Attributes:
        renderings_total: How often topics were rendered.
    """

    def __init__(self) -> None:
        """Know no kind."""
        self.renderings_total = 0
        self._sources: dict[str, TopicSource] = {}
        self._followed: dict[Key, tuple[Topic, asyncio.Task[None], asyncio.Event]] = {}
        self._idle: OrderedDict[Key, Topic] = OrderedDict()
        self._turns = asyncio.Lock()

    def __len__(self) -> int:
        """Count the topics that somebody looks at."""
        return len(self._followed)

    def register(self, source: TopicSource) -> None:
        """Add a kind."""
        self._sources[source.kind] = source

    def source(self, kind: str) -> TopicSource | None:
        """Return a kind; None if there is no such one."""
        return self._sources.get(kind)

    def form(self, kind: str, name: str) -> str:
        """Return the one name of what a name of a kind names."""
        source = self._sources.get(kind)
        return source.form(name) if source is not None else name

    def now(self, kind: str, name: str, role: str, base: str) -> Rendering | None:
        """Return how a topic looks now, for a page; None if it is gone."""
        key = Key(kind, name, role, base)
        followed = self._followed.get(key)
        topic = followed[0] if followed is not None else self._take(key)
        shown = topic.fresh()
        if followed is None:
            self._keep(key, topic)
        return shown

    @asynccontextmanager
    async def looking(self, kind: str, name: str, role: str, base: str, news: asyncio.Event) -> AsyncIterator[Topic]:
        """Yield a topic that is followed as long as somebody looks; `news` is set whenever it looks different."""
        key = Key(kind, name, role, base)
        topic, task, ready = self._followed.get(key) or self._begin(key)
        topic.listeners.add(news)
        try:
            await ready.wait()
            yield topic
        finally:
            topic.listeners.discard(news)
            if not topic.listeners:
                del self._followed[key]
                self._keep(key, topic)
                await end_tasks((task,))

    def _begin(self, key: Key) -> tuple[Topic, asyncio.Task[None], asyncio.Event]:
        topic, ready = self._take(key), asyncio.Event()
        task = asyncio.create_task(topic.follow(ready, self._turns), name=f"topic {key.kind}:{key.name}")
        self._followed[key] = topic, task, ready
        return self._followed[key]

    def _take(self, key: Key) -> Topic:
        return self._idle.pop(key, None) or Topic(self._sources[key.kind], key, self._count)

    def _keep(self, key: Key, topic: Topic) -> None:
        self._idle[key] = topic
        if len(self._idle) > _IDLE_MAX:
            self._idle.popitem(last=False)

    def _count(self) -> None:
        self.renderings_total += 1
