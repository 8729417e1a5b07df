"""Where the log of a container comes from: the console of a device, or the story of the lablet."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from vkprovider.api import names
from vkprovider.api.objects import Pod
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.definition.content import Content
from vkprovider.domain.lablet.pod import intent
from vkprovider.kubelet.spi import Devices, LogLine, LogOptions, Target
from vkprovider.kubelet.story import Stories


@dataclass(frozen=True, slots=True)
class Sources:
    """Finds the source of a log.

    Attributes:
        workers: Those that this replica acts for, by name.
        contents: By digest.
        devices: Read the logs of devices.
        stories: Tell those of lablets.
    """

    workers: Mapping[str, Worker]
    contents: Mapping[str, Content]
    devices: Devices
    stories: Stories

    def read(self, pod: Pod, target: Target, options: LogOptions) -> AsyncIterator[LogLine]:
        """Read the log of a container.

        A container that names a device has the story, too, as long as the lablet has no lab: it says why.
        """
        claim = self._claim(pod)
        content = self.contents.get(claim.digest) if claim is not None and claim.lab_id else None
        if content is not None and target.container in intent.devices_of(pod, content):
            return self.devices.log(target, options)
        return self.stories.lines(pod, options, claim.last_at if claim is not None else 0.0)

    def _claim(self, pod: Pod) -> Claim | None:
        worker = self.workers.get(names.worker_of(pod.spec.node_name) or "")
        return worker.claims.claims.get(pod.metadata.uid) if worker is not None else None
