"""The EndpointSlices by which lablets lend their ports to muxes; `lablet.exposure` describes them."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from vkprovider.lablet import exposure, names
from vkprovider.lablet.exposure import Exposure
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.platform import wellknown
from vkprovider.platform.errors import Conflict, Fenced, OutsideError
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.objects import EndpointSlice
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)


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
