"""The ports of lablets: whether they open, the EndpointSlices that lend them, and labs that claim the same.

Only the condition `PortsOpen` depends on whether the ports open: a lablet whose ports do not open stays Ready.

Two CMLWorkers may be one controller by two urls. Two urls of a controller that is still empty have nothing in common
yet (`labs.pure.worker.identity`): both CMLWorkers are Ready, and both allocate the same ports. Their first labs are the
first evidence. So a lab is started only after a look at the labs on the controller: of two with one port the one that
was imported later is not.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import structlog

from vkprovider.doctor.reasons import DoctorReason
from vkprovider.lablet import exposure, names, ports
from vkprovider.lablet import observations as words
from vkprovider.lablet.exposure import Exposure
from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.lablet.ports import consoles_of, describe_closed_ports
from vkprovider.lablet.reasons import ConditionReason
from vkprovider.labs.controllers.lablet.index import Lablet
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.definition.content import Content
from vkprovider.labs.pure.lablet.identity import KnownLab
from vkprovider.labs.pure.worker.identity import may_be_twin
from vkprovider.labs.settings.cluster import PortSettings
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict, Fenced, InputError, NotFound, OutsideError
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.kube.queue import KeyedQueue, Result
from vkprovider.platform.messages import TimelessCondition
from vkprovider.platform.objects import CustomResource, EndpointSlice
from vkprovider.platform.ports.allocator import PortBounds
from vkprovider.platform.reasons import PortReason
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)

_CONNECT_S: Final = 3.0
_AGAIN_S: Final = 2.0
_OPEN: Final = TimelessCondition(ConditionReason.PORTS_OPEN, "True", ConditionReason.PORTS_OPEN)


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
        return consoles_of(content.topology.template, claim.ports)

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
        text = describe_closed_ports(ports, range_of(worker.spec, self.settings.range))
        return self._conclude(
            lablet, worker, TimelessCondition(ConditionReason.PORTS_OPEN, "False", DoctorReason.PORTS_NOT_OPENED, text)
        )

    def _conclude(self, lablet: Lablet, worker: Worker, result: TimelessCondition) -> Result:
        self._until.pop(lablet.uid, None)
        lablet.ports_open = worker.ports_open = result
        self.checked(lablet.uid)
        return Result()


def range_of(spec: CMLWorkerSpec, default: tuple[int, int]) -> PortBounds:
    """Return a worker's range of outside ports."""
    own = spec.port_range
    return PortBounds(*default) if own is None else PortBounds(own.start, own.end)


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


def slice_of(slices: Mapping[str, EndpointSlice], namespace: str, pod_uid: str) -> EndpointSlice | None:
    """Return the slice of a lablet among those of the provider's namespace; None if it has none."""
    return slices.get(f"{namespace}/{exposure.slice_name(pod_uid)}") if slices else None


@dataclass(frozen=True, slots=True)
class Slices:
    """Writes and removes the slices of the lablets of this replica.

    Attributes:
        workers: Those that this replica acts for, by name.
        seen: All slices of exposed lablets.
        every_s: From one look for slices without a lablet to the next.
    """

    ctx: Context
    workers: Mapping[str, Worker]
    seen: Informer[EndpointSlice]
    every_s: float

    async def write(self, wanted: Exposure, seen_uid: str, worker: Worker) -> None:
        """Replace the slice of a lablet: what a slice says never changes, so that no answer is that to another one."""
        slices, name = self.ctx.api.endpoint_slices.metadata_only, exposure.slice_name(wanted.pod_uid)
        try:
            if seen_uid:
                await slices.delete(name, uid=seen_uid, guard=worker.guard)
            body = exposure.encode(wanted, self.ctx.namespace, worker_uid=worker.uid)
            await slices.create(body, guard=worker.guard)
        except Conflict:  # another one stands: the watch is about to show it, unless it has lost its label
            if not seen_uid:
                await self._delete_unlabelled(name, worker)

    async def _delete_unlabelled(self, name: str, worker: Worker) -> None:
        """Delete a slice that no watch shows, so that the next attempt can make it again."""
        slices = self.ctx.api.endpoint_slices.metadata_only
        for found in await slices.list(fields=f"metadata.name={name}"):
            if found.metadata.labels.get(names.LABEL_COMPONENT) != names.COMPONENT_EXPOSED:
                with contextlib.suppress(Conflict):
                    await slices.delete(name, uid=found.metadata.uid, guard=worker.guard)

    async def withdraw(self, pod_uid: str, worker: Worker) -> None:
        """Delete the slice of a lablet, whichever stands."""
        slices = self.ctx.api.endpoint_slices.metadata_only
        await slices.delete(exposure.slice_name(pod_uid), guard=worker.guard, lane=Lane.AT_ONCE)

    async def run(self) -> None:
        """Look for slices without a lablet again and again, until cancelled."""
        while True:
            await asyncio.sleep(self.every_s * (0.5 + self.ctx.dice()))
            await self.sweep()

    async def sweep(self) -> None:
        """Delete the slices of lablets that have no claim: one was lost, or a replica wrote although it was overtaken.

        Nothing is deleted while the claims of a worker are not known, or those of a worker of another replica.
        """
        if not self.seen.synced.is_set():
            return
        workers = {wellknown.label_value(name): worker for name, worker in self.workers.items()}
        slices = self.ctx.api.endpoint_slices.metadata_only
        for found in list(self.seen.items.values()):
            meta = found.metadata
            worker = workers.get(meta.labels.get(names.LABEL_WORKER, ""))
            if worker is None or worker.parked or not worker.claims.complete:
                continue
            if exposure.pod_uid_of(meta.name) in worker.claims.claims:
                continue
            try:
                with contextlib.suppress(Conflict, Fenced):
                    await slices.delete(meta.name, uid=meta.uid, guard=worker.guard)
            except OutsideError as error:
                _log.warning("a slice without a lablet cannot be deleted", slice=meta.name, error=str(error))


@dataclass(frozen=True, slots=True)
class Twins:
    """Looks at the labs of other CMLWorkers on a controller.

    Attributes:
        lablets: All lablets, by Pod UID.
        resources: All CMLWorkers, by name.
    """

    lablets: Mapping[str, Lablet]
    resources: Mapping[str, CustomResource]

    async def check(self, claim: Claim, worker: Worker) -> None:
        """Refuse to start a lab whose ports an older lab of another CMLWorker has, or one of the same second.

        Raises:
            InputError: `PortConflict`.
            OutsideError: The worker could not be asked.
        """
        if not claim.ports or worker.labs.immediate:
            return
        if not may_be_twin(worker.name, worker.identity, self.resources.values()):
            return
        labs = await worker.lab_index.unknown_to(worker.claims.claims, strict=False)
        others = {lab_id: lab for lab_id, lab in labs.items() if not self._is_of(lab, worker)}
        if not others:
            return
        mine, held = await worker.labs.get_lab(claim.lab_id), {(slot.protocol, slot.port) for slot in claim.held}
        for lab_id, lab in others.items():
            shared = sorted(held & await self._opened_by(lab_id, lab, mine.created or "", worker))
            if shared:
                protocol, port = shared[0]
                raise InputError(
                    PortReason.PORT_CONFLICT,
                    f"{protocol} port {port} is that of lab {lab.title}, which is not of this CMLWorker: if two "
                    "CMLWorkers are one CML controller, delete one of them, then this pod",
                )

    def _is_of(self, lab: KnownLab, worker: Worker) -> bool:
        lablet = self.lablets.get(lab.origin.pod_uid) if lab.origin is not None else None
        return lablet is not None and lablet.worker == worker.name

    async def _opened_by(self, lab_id: str, lab: KnownLab, mine_created: str, worker: Worker) -> set[tuple[str, int]]:
        """Return the ports that a lab opens, or may open before one that was created at `mine_created`."""
        waits = lab.origin is not None and lab.origin.pod_uid in self.lablets  # its own start looks, too
        try:
            if waits and lab.created > mine_created:
                return set()
            if not waits and (await worker.labs.get_lab(lab_id)).state == words.DEFINED:
                return set()  # a saved copy
            return set(ports.named_by(await worker.labs.list_tags(lab_id)))
        except NotFound:
            return set()
