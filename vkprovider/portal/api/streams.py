"""Streams of the events of labs, as long as an operation goes on and the listener may follow it.

A listener costs no request: the index wakes it. Only its right is asked for again, every half minute.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from vkprovider.platform.http.open import Ask, Places, Reviews, ReviewTimes
from vkprovider.platform.http.sse import HEARTBEAT_S, EventStream
from vkprovider.portal.api.bodies import PortalDialect
from vkprovider.portal.pure import stream
from vkprovider.portal.pure.facts import unknown
from vkprovider.portal.pure.options import Grounds
from vkprovider.portal.pure.stream import LabStory, Position, news, parse
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.requests import LabCaller, Rejected

STREAMS_MAX: Final = 2000
OF_USER_MAX: Final = 20
_TOO_MANY: Final = "too many follow labs here: end other streams, or try again"


class StreamTimes(msgspec.Struct, frozen=True):
    """The times of streams, in seconds.

    Attributes:
        heartbeat_s: The pause between two comments of a quiet stream.
        settle_s: How long the news of an operation may take from the replica that was asked for it to this one: who
            finds that there is no lab, or that its last operation has ended, is answered only then.
        review_s: How often is asked whether a listener still may.
    """

    heartbeat_s: float = HEARTBEAT_S
    settle_s: float = 0.5
    review_s: float = 30.0


class LabStreams:
    """The open streams of a replica."""

    def __init__(self, index: UserLabIndex, dialect: PortalDialect, times: StreamTimes) -> None:
        self._index = index
        self._dialect = dialect
        self._times = times
        self._places = Places(STREAMS_MAX, OF_USER_MAX, lambda _: Rejected(Grounds.UNAVAILABLE, _TOO_MANY))
        again_s = times.review_s
        self._reviews = Reviews(ReviewTimes(first_s=again_s, every_s=again_s, again_s=again_s))

    def __len__(self) -> int:
        """Count the streams."""
        return len(self._places)

    def close(self) -> None:
        """End all streams, and those that begin later at once."""
        self._places.close()

    async def serve(self, request: web.Request, user: str, by: LabCaller, ask: Ask) -> web.StreamResponse:
        """Answer a request with the events of a user's lab.

        Args:
            request: The listener's, who may follow this lab.
            user: Whose lab.
            by: The listener.
            ask: Called every half minute while the stream is open; it raises `Refused` if the listener may not follow
                the lab any more.

        Raises:
            Rejected: There is no lab, or there are too many streams.
        """
        async with self._listening(user) as changed:
            told = await self._first(user, changed)
            if told is None:
                raise Rejected(*unknown(user))
            position, sent = news(parse(request.headers.get("Last-Event-ID", "")), told)
            if told.ended and not sent:
                return web.Response(status=HTTPStatus.NO_CONTENT)  # so that a browser does not come back again
            try:
                open_ = await EventStream.begin(request)
            except ConnectionResetError:
                return web.Response()  # there is nobody to read it
            over = asyncio.Event()
            async with self._reviews.holding(by.username, _key(by, user), ask, over, changed):
                with suppress(ConnectionResetError):
                    await open_.send(self._dialect.frames(sent))
                    await self._follow(open_, user, changed, over, told, position)
            return open_.answer

    @asynccontextmanager
    async def _listening(self, user: str) -> AsyncIterator[asyncio.Event]:
        async with self._index.listen(user) as changed:
            with self._places.taken(user, changed):
                yield changed

    async def _first(self, user: str, changed: asyncio.Event) -> LabStory | None:
        """Return the story at the beginning of a stream."""
        told = self._look(user, None)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._times.settle_s):
                while (told is None or told.ended) and not self._places.is_closed:
                    await changed.wait()
                    changed.clear()
                    told = self._look(user, None)
        return told

    def _look(self, user: str, last: LabStory | None) -> LabStory | None:
        return stream.follow(last, self._index.lab(user), self._index.events_of(user))

    async def _follow(
        self,
        open_: EventStream,
        user: str,
        changed: asyncio.Event,
        over: asyncio.Event,
        told: LabStory,
        position: Position,
    ) -> None:
        """Send the events that follow until the operation ends, or the listener may not follow it any more.

        Raises:
            ConnectionResetError: The listener has left.
        """
        while not (told.ended or self._places.is_closed):
            await open_.wait(changed, self._times.heartbeat_s)
            changed.clear()
            if over.is_set():
                return
            told = self._look(user, told) or told
            position, sent = news(position, told)
            if sent:
                await open_.send(self._dialect.frames(sent))


def _key(by: LabCaller, user: str) -> bytes:
    """Return what tells the listeners of a lab apart in memory: the token itself is not kept."""
    return hashlib.sha256(msgspec.json.encode([by, user])).digest()
