"""The story of a lablet, from the API server: once, or as it goes on.

Events are read from the API server, as they come from several programs and replicas; Pods are known already. A story
that is followed ends with its Pod.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, nullcontext, suppress
from typing import Final

import structlog

from vkprovider.lablet import story
from vkprovider.labs.kubelet.spi import LogLine, LogOptions
from vkprovider.platform.errors import Invalid, OutsideError
from vkprovider.platform.kube.api import EVENTS
from vkprovider.platform.kube.client import KubeClient
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.objects import Event, Pod

_log: Final = structlog.get_logger(__name__)


class Stories:
    """Tells the stories of lablets."""

    def __init__(self, kube: KubeClient) -> None:
        """Create it; `pod_changed` must be called for every change of a Pod."""
        self._kube = kube
        self._followers: defaultdict[str, set[_Follower]] = defaultdict(set)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Pass a change of a Pod on to who follows its story."""
        pod = new or old
        if pod is not None and pod.metadata.uid in self._followers:
            for follower in self._followers[pod.metadata.uid]:
                follower.pod, follower.ended = pod, new is None or pod.terminal
                follower.news.set()

    async def lines(self, pod: Pod, options: LogOptions, restarted_at: float) -> AsyncGenerator[LogLine]:
        """Tell the story of a Pod; with `follow` it goes on until the Pod ends, or it is closed.

        Args:
            pod: Whose.
            options: Which lines.
            restarted_at: When its lab was started again, seconds since the epoch; 0: it never was.

        Raises:
            Invalid: There is no earlier run.
            OutsideError: The API server refused, or did not answer.
        """
        if options.previous and not restarted_at:
            raise Invalid(f"the lablet of pod {pod.key} was never started again: leave out --previous")
        events = Resource(self._kube, EVENTS, pod.metadata.namespace)
        selector = f"involvedObject.uid={pod.metadata.uid}"
        follower = _Follower(pod)
        with self._registered(follower) if options.follow else nullcontext():
            told = story.tell(pod, await events.list(fields=selector))
            for line in _wanted(told, options, restarted_at):
                yield LogLine(line.at, line.text)
            if not options.follow or options.previous or pod.terminal:
                return
            async with aclosing(self._go_on(follower, events, selector, {line.key for line in told})) as more:
                async for line in more:
                    yield LogLine(line.at, line.text)

    @contextmanager
    def _registered(self, follower: "_Follower") -> Iterator[None]:
        uid = follower.pod.metadata.uid
        self._followers[uid].add(follower)
        try:
            yield
        finally:
            self._followers[uid].discard(follower)
            if not self._followers[uid]:
                del self._followers[uid]

    async def _go_on(
        self, follower: "_Follower", events: Resource[Event], selector: str, told: set[tuple[str, ...]]
    ) -> AsyncGenerator[story.Line, None]:
        informer = Informer(self._kube, events.path, Event, name="story", field_selector=selector)
        informer.add_handler(lambda _, __: follower.news.set())
        watching = asyncio.create_task(informer.run(), name=f"story of {follower.pod.key}")
        try:
            ended = False
            while not ended:
                await follower.news.wait()
                follower.news.clear()
                ended = follower.ended
                known = await _last(events, selector) if ended else list(informer.items.values())
                for line in story.tell(follower.pod, known):
                    if line.key not in told:
                        told.add(line.key)
                        yield line
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


async def _last(events: Resource[Event], selector: str) -> list[Event]:
    """Return the Events of a Pod that has ended; none if they cannot be listed."""
    try:
        return await events.list(fields=selector)
    except OutsideError:
        return []


def _wanted(told: list[story.Line], options: LogOptions, restarted_at: float) -> Iterator[story.Line]:
    """Yield the lines that are asked for: first the last ones, of them those that are not too old."""
    found = [line for line in told if line.at <= restarted_at] if options.previous else told
    if options.tail_lines is not None:
        found = found[len(found) - min(options.tail_lines, len(found)) :]
    return (line for line in found if line.at >= (options.since_at or 0.0))


class _Follower:
    """Who follows a story: a Pod as it is known, and whether there is news."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.ended = False
        self.news = asyncio.Event()
