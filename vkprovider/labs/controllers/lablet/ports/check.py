"""Whether the ports of ready lablets open: CML's port service has a port range of its own, and may be off.

Only the condition `PortsOpen` depends on the answer: a lablet whose ports do not open stays Ready.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet import mappings
from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.lablet.reasons import ConditionReason
from vkprovider.labs.controllers.lablet.state import Lablet
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.settings.cluster import PortSettings
from vkprovider.platform.kube.queue import KeyedQueue, Result
from vkprovider.platform.messages import Condition
from vkprovider.platform.ports.allocator import PortRange
from vkprovider.platform.runtime.context import Context

_CONNECT_S: Final = 3.0
_AGAIN_S: Final = 2.0
_OPEN: Final = Condition(ConditionReason.PORTS_OPEN, "True", ConditionReason.PORTS_OPEN)


@dataclass(frozen=True, slots=True)
class PortCheck:
    """Connects to the console ports of lablets that became ready.

    Attributes:
        lablets: By Pod UID.
        workers: By name.
        contents: By digest.
        checked: Called with the Pod UID of a lablet when the result is known.
        queue: Lablets whose ports are checked, by Pod UID.
    """

    ctx: Context
    settings: PortSettings
    lablets: Mapping[str, Lablet]
    workers: Mapping[str, Worker]
    contents: Mapping[str, Content]
    checked: Callable[[str], None]
    queue: KeyedQueue[str]
    _until: dict[str, float] = field(default_factory=dict, init=False)

    def begin(self, lablet: Lablet, worker: Worker) -> None:
        """Begin to check the ports of a lablet that has just become ready."""
        if not self.settings.check_s or worker.labs.immediate or worker.spec.tunnel != "direct":
            return
        if self._consoles(lablet, worker):
            self._until[lablet.uid] = self.ctx.now() + self.settings.check_s
            self.queue.add(lablet.uid)

    def _consoles(self, lablet: Lablet, worker: Worker) -> list[int]:
        claim = worker.claims.claims.get(lablet.uid)
        content = self.contents.get(claim.digest) if claim is not None else None
        if claim is None or content is None:
            return []
        return mappings.consoles_of(content.topology.template, claim.ports)

    async def check(self, uid: str) -> Result:
        """Connect to the ports of one lablet, until one opens or the time for it is over."""
        lablet = self.lablets.get(uid)
        worker = self.workers.get(lablet.worker) if lablet is not None else None
        ports = self._consoles(lablet, worker) if lablet is not None and worker is not None else []
        if lablet is None or worker is None or not ports or not lablet.ready_since:
            self._until.pop(uid, None)
            return Result()
        host = urlsplit(worker.spec.cml_url).hostname or ""
        if await _any_opens(host, ports):
            return self._conclude(lablet, worker, _OPEN)
        if self.ctx.now() < self._until.get(uid, 0.0):
            return Result(_AGAIN_S)
        text = mappings.describe_closed_ports(ports, range_of(worker.spec, self.settings.range))
        return self._conclude(
            lablet, worker, Condition(ConditionReason.PORTS_OPEN, "False", DoctorReason.PORTS_NOT_OPENED, text)
        )

    def _conclude(self, lablet: Lablet, worker: Worker, result: Condition) -> Result:
        self._until.pop(lablet.uid, None)
        lablet.ports_open = worker.ports_open = result
        self.checked(lablet.uid)
        return Result()


def range_of(spec: CMLWorkerSpec, default: tuple[int, int]) -> PortRange:
    """Return a worker's range of outside ports."""
    own = spec.port_range
    return PortRange(*default) if own is None else PortRange(own.start, own.end)


async def _any_opens(host: str, ports: list[int]) -> bool:
    """Connect to the ports one after the other until one opens; nothing is sent."""
    for port in ports:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CONNECT_S):
                _, writer = await asyncio.open_connection(host, port)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return True
    return False
