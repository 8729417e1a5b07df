"""Where the log of a container comes from: the console of a device, or the story of the lablet."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from vkprovider.lablet import names
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.kubelet.spi import Devices, LogLine, LogOptions, Target
from vkprovider.labs.kubelet.story import Stories
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet.pod import intent
from vkprovider.platform.objects import Pod


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
