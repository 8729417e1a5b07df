"""Whether the ports of ready lablets really open: CML's port service has a range of its own, and may be off.

Nothing depends on the answer but what people are told: a lablet whose ports do not open stays Ready.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from vkprovider.api.models import CMLWorkerSpec
from vkprovider.controllers.context import Context
from vkprovider.controllers.lablet.memory import Lablet
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.claims.ports import PortRange
from vkprovider.domain.definition.content import Content
from vkprovider.domain.topology import mappings
from vkprovider.kube.queue import KeyedQueue, Result

_CONNECT_S: Final = 3.0
_AGAIN_S: Final = 2.0
_OPEN: Final = ("True", "PortsOpen", "")


class PortCheck:
    """Connects to the console ports of lablets that became ready."""

    def __init__(
        self,
        ctx: Context,
        lablets: Mapping[str, Lablet],
        workers: Mapping[str, Worker],
        contents: Mapping[str, Content],
        told: Callable[[str], None],
        queue: KeyedQueue[str],
    ) -> None:
        """Create the check.

        Args:
            ctx: The replica.
            lablets: By Pod UID.
            workers: By name.
            contents: By digest.
            told: Called with the Pod UID of a lablet about whose ports something is known now.
            queue: Of lablets whose ports are checked, by Pod UID.
        """
        self._ctx = ctx
        self._lablets = lablets
        self._workers = workers
        self._contents = contents
        self._told = told
        self._until: dict[str, float] = {}
        self._queue = queue

    def begin(self, lablet: Lablet, worker: Worker) -> None:
        """Look whether the ports of a lablet open that has just become ready."""
        if not self._ctx.tuning.port_check_s or worker.labs.immediate or worker.spec.tunnel != "direct":
            return
        if self._consoles(lablet, worker):
            self._until[lablet.uid] = self._ctx.now() + self._ctx.tuning.port_check_s
            self._queue.add(lablet.uid)

    def _consoles(self, lablet: Lablet, worker: Worker) -> list[int]:
        claim = worker.claims.claims.get(lablet.uid)
        content = self._contents.get(claim.digest) if claim is not None else None
        if claim is None or content is None:
            return []
        return mappings.consoles_of(content.topology.template, claim.ports)

    async def check(self, uid: str) -> Result:
        """Connect to the ports of one lablet, until one opens or the time for it is over."""
        lablet = self._lablets.get(uid)
        worker = self._workers.get(lablet.worker) if lablet is not None else None
        ports = self._consoles(lablet, worker) if lablet is not None and worker is not None else []
        if lablet is None or worker is None or not ports or not lablet.ready_since:
            self._until.pop(uid, None)
            return Result()
        host = urlsplit(worker.spec.url).hostname or ""
        if await _any_opens(host, ports):
            return self._tell(lablet, worker, _OPEN)
        if self._ctx.now() < self._until.get(uid, 0.0):
            return Result(_AGAIN_S)
        text = mappings.shut(ports, range_of(worker.spec, self._ctx.tuning.port_range))
        return self._tell(lablet, worker, ("False", "PortsNotOpened", text))

    def _tell(self, lablet: Lablet, worker: Worker, result: tuple[str, str, str]) -> Result:
        self._until.pop(lablet.uid, None)
        lablet.ports_open = worker.ports_open = result
        self._told(lablet.uid)
        return Result()


def range_of(spec: CMLWorkerSpec, default: tuple[int, int]) -> PortRange:
    """Give a worker's range of outside ports."""
    own = spec.port_range
    return PortRange(*default) if own is None else PortRange(own.start, own.end)


async def _any_opens(host: str, ports: list[int]) -> bool:
    """Connect to ports one after the other until one opens; nothing is said on it."""
    for port in ports:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CONNECT_S):
                _, writer = await asyncio.open_connection(host, port)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            return True
    return False
