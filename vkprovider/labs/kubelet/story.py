"""Where the log of a container comes from: a console, or the lablet's story from the API server.

Events are read from the API server, as they come from several programs and replicas; Pods are known already. A story
that is followed ends with its Pod.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.lablet import names, story
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.kubelet.spi import Devices, LogLine, LogOptions, Target
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet import intent
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
    ) -> AsyncGenerator[story.ToldLine, None]:
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


def _wanted(told: list[story.ToldLine], options: LogOptions, restarted_at: float) -> Iterator[story.ToldLine]:
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


@dataclass(frozen=True, slots=True)
class Sources:
    """Finds the source of a log.

    Attributes:
        workers: Those that this replica acts for, by name.
        contents: By digest.
        devices: Read the logs of devices.
        stories: Tell those of lablets.
        wall: Returns the time of day; called for a line of this replica's own.
    """

    workers: Mapping[str, Worker]
    contents: Mapping[str, Content]
    devices: Devices
    stories: Stories
    wall: Callable[[], float] = time.time

    def read(self, pod: Pod, target: Target, options: LogOptions) -> AsyncIterator[LogLine]:
        """Read the log of a container.

        A container that names a device has the story, too, as long as the lablet has no lab: it says why. It has the
        story again, with a last line that says so, when the lab has gone.
        """
        claim = self._claim(pod)
        if claim is not None and claim.lab_id and self._is_device(pod, claim, target.container):
            return self.devices.log(target, options)
        story = self.stories.lines(pod, options, claim.last_at if claim is not None else 0.0)
        had_lab = pod.metadata.annotations.get(names.ANNOTATION_LAB_ID)
        if claim is None and had_lab and pod.terminal and target.container != names.LAB_CONTAINER:
            note = f"the console log of {target.container} went with its lab; this is the story of the lablet"
            return _followed_by(story, LogLine(self.wall(), f"[{note}]"))
        return story

    def _is_device(self, pod: Pod, claim: Claim, container: str) -> bool:
        content = self.contents.get(claim.digest)
        if content is None:  # not read yet: what is not the lab as a whole is a device, or refused
            return container != names.LAB_CONTAINER
        return container in intent.devices_of(pod, content)

    def _claim(self, pod: Pod) -> Claim | None:
        worker = self.workers.get(names.worker_of(pod.spec.node_name) or "")
        return worker.claims.claims.get(pod.metadata.uid) if worker is not None else None


async def _followed_by(story: AsyncGenerator[LogLine], last: LogLine) -> AsyncIterator[LogLine]:
    async with aclosing(story) as lines:
        async for line in lines:
            yield line
    yield last
