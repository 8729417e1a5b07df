"""`kubectl top`: what devices use, as CML reports it: CPU in percent of a core; memory is what a device was given.

CML is asked when somebody wants to know, and then for all lablets of a worker, not more often than figures change. An
answer takes its time, so that a caller gets the figures of the time before.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.lablet import names
from vkprovider.labs.controllers.console.finding import Finder
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.kubelet.spi import DeviceUsage, Target
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.topology.resources import NodeDefinition
from vkprovider.labs.pure.topology.topology import Device
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Fenced, OutsideError
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)

FRESH_S: Final = 10.0
_LABS_AT_ONCE: Final = 4
_NANO: Final = 10_000_000
"""Nano cores in a percent of a core."""
_MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class _Used:
    """What a device uses.

    Attributes:
        percent: CPU now, in percent of a core.
        cpu_s: CPU time since `started_at`, as far as it was watched.
        at: When that was noted, on the monotonic clock.
        started_at: When the lab was started; the sum begins again then.
    """

    percent: float
    cpu_s: float
    at: float
    started_at: float


class UsageFigures:
    """The figures of the workers of this replica.

    Args:
        ctx: The replica.
        finder: Finds lablets.
        definitions: What devices are given, by node definition.
    """

    def __init__(self, ctx: Context, finder: Finder, definitions: Mapping[str, NodeDefinition]) -> None:
        self._ctx = ctx
        self._finder = finder
        self._definitions = definitions
        self._used: dict[str, dict[tuple[str, str], _Used]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._asked_at: dict[str, float] = {}

    def of_node(self, node: str) -> Iterator[DeviceUsage]:
        """Yield the known figures of the devices on a Node, and ask again if they are old."""
        worker = self._finder.workers.get(names.worker_of(node) or "")
        if worker is None:
            return
        self._ask(worker)
        used = self._used.get(worker.name, {})
        for uid, claim in worker.claims.claims.items():
            content = self._finder.contents.get(claim.digest)
            facts = worker.seen.devices.get(claim.lab_id, ())
            if content is None:
                continue
            containers = {device.label: device for device in content.topology.devices}
            for fact in facts:
                found, device = used.get((claim.lab_id, fact.id)), containers.get(fact.label)
                if found is not None and device is not None:
                    target = Target(claim.namespace, claim.pod, uid, device.container)
                    yield DeviceUsage(
                        target, found.cpu_s, int(found.percent * _NANO), self._memory(device), found.started_at
                    )

    def _memory(self, device: Device) -> int:
        given = self._definitions.get(device.definition)
        return (device.ram_mib or (given.ram_mib if given is not None else 0)) * _MIB

    def _ask(self, worker: Worker) -> None:
        name = worker.name
        task = self._asking.get(name)
        if (task is None or task.done()) and self._ctx.now() - self._asked_at.get(name, -FRESH_S) >= FRESH_S:
            self._asked_at[name] = self._ctx.now()
            self._asking[name] = asyncio.get_running_loop().create_task(self._look(worker), name=f"usage of {name}")

    async def _look(self, worker: Worker) -> None:
        """Ask for the figures of all lablets of a worker; those of a lab that is not answered for are left out."""
        before, found = self._used.get(worker.name, {}), dict[tuple[str, str], _Used]()

        async def ask(claim: Claim) -> None:
            try:
                percents = await worker.labs.consoles.cpu_percent(claim.lab_id)
            except OutsideError as error:
                _log.warning("usage of a lab is unknown", worker=worker.name, error=error.message)
                return
            now = self._ctx.now()
            for node, percent in percents.items():
                key = (claim.lab_id, node)
                last = before.get(key)
                cpu_s = 0.0
                if last is not None and last.started_at == claim.started_at:
                    cpu_s = last.cpu_s + (now - last.at) * percent / 100
                found[key] = _Used(percent, cpu_s, now, claim.started_at)

        claims = [claim for claim in worker.claims.claims.values() if claim.lab_id and claim.started_at]
        try:
            await at_most(_LABS_AT_ONCE, ask, claims)
        except Fenced:
            return
        workers = self._finder.workers
        self._used = {name: kept for name, kept in self._used.items() if name in workers} | {worker.name: found}
