"""The status of a CMLWorker, and the Warnings about it: each is written when it changes, and only then."""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from vkprovider.lablet import names
from vkprovider.lablet.models.status import (
    LabCounts,
    NodeDefinitionFigures,
    NodeDefinitionTimeout,
    ResourceCondition,
    WorkerStatus,
    stored,
    worker_status,
)
from vkprovider.lablet.reasons import ConditionReason, WorkerReason
from vkprovider.labs.controllers.worker.worker import Worker
from vkprovider.labs.pure.conditions import condition
from vkprovider.labs.pure.worker.leftlab import unclaimed_lab
from vkprovider.labs.pure.worker.node import Health, address_of
from vkprovider.labs.pure.worker.reach import insecure
from vkprovider.labs.pure.worker.registration import Bearer, turned_away
from vkprovider.platform.errors import NotFound
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.flow import Lane
from vkprovider.platform.messages import TimelessCondition
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.reasons import Reason
from vkprovider.platform.runtime.context import Context, ref_of

_NO_FAULT: Final = frozenset({WorkerReason.STARTING, WorkerReason.AWAITING_APPROVAL})
"""Why a worker is not Ready although nothing is wrong with it; anything else is a Warning on the CMLWorker."""
_COUNTS_EVERY_S: Final = 10.0
"""How often a status is written of which only counts have changed; not at all while other requests wait."""


class WorkerStatusWriter:
    """Writes the statuses of CMLWorkers.

    Args:
        ctx: The replica.
        bearers: Returns the agents that bear a worker's name.
        page_url: Where people reach the page; "" if that is not known. Every user who may read workers finds it there.
    """

    def __init__(self, ctx: Context, bearers: Callable[[str], Sequence[Bearer]], page_url: str = "") -> None:
        self._ctx = ctx
        self._bearers = bearers
        self._page_url = page_url
        self._written_at: dict[str, float] = {}
        self._warned: set[tuple[str, Reason, str]] = set()

    async def report(self, resource: CustomResource, worker: Worker, epoch: int) -> None:
        """Write the status of a worker that this replica owns, and warn of what is wrong with it.

        Raises:
            Fenced: This replica does not own the Node any more.
        """
        health, seen = worker.health, worker.seen
        if health.reason == WorkerReason.WORKER_READY:
            self.recovered(resource.metadata.uid)
        elif health.reason not in _NO_FAULT:
            self.warn(resource, health.reason, health.message)
        if not seen.ip:
            note = f"address {address_of(worker.spec)!r} cannot be resolved; until then its lablets have no IP"
            self.warn(resource, WorkerReason.ADDRESS_UNRESOLVED, note)
        known = WorkerStatus(
            node=names.node_name(worker.name),
            cml_version=seen.version,
            identity=worker.identity,
            user=seen.access.user if seen.access.user or resource.status.get("user") else UNSET,
            address=seen.ip or UNSET,
            owner=self._ctx.replica,
            epoch=epoch,
            labs=LabCounts(len(worker.claims.claims), worker.lab_index.foreign),
            node_definitions=UNSET
            if seen.definitions is None
            else [NodeDefinitionFigures(one.name, one.cpus, one.ram) for one in seen.definitions],
            boot_timeouts=UNSET
            if seen.boot_timeouts is None
            else [NodeDefinitionTimeout(name, seconds) for name, seconds in seen.boot_timeouts.items()],
            page_url=self._page_url if self._page_url or resource.status.get("pageURL") else UNSET,
        )
        shown = health if resource.metadata.deletion_timestamp is None else worker.in_use
        await self.write(resource, shown, known, worker.guard, further=(worker.ports_open, insecure(worker.spec)))
        if worker.ports_open is not None and worker.ports_open.status == "False":
            self.warn(resource, worker.ports_open.reason, worker.ports_open.message)
        for lab_id, title in worker.lab_index.unclaimed.items():
            self.warn(resource, WorkerReason.UNCLAIMED_LAB, unclaimed_lab(worker.spec.cml_url, lab_id, title))

    async def write(
        self,
        resource: CustomResource,
        health: Health,
        known: WorkerStatus,
        guard: Guard | None = None,
        *,
        further: Iterable[TimelessCondition | None] = (),
    ) -> None:
        """Write the fields that have changed.

        Args:
            resource: The CMLWorker as it is known.
            health: Becomes its condition Ready.
            known: Its status but for the conditions; what is `UNSET` stays as it is stored.
            guard: Called right before the write.
            further: Its other conditions, but for AgentTurnedAway. PortsOpen remains as it is if it is not among them;
                any other one is removed.

        Raises:
            Fenced: This replica does not own the Node any more.
        """
        before = worker_status(resource)
        is_ready = "True" if health.ready else "False"
        now = self._ctx.now_unix
        ready = condition(
            before.ready, TimelessCondition("Ready", is_ready, health.reason, health.message), now_unix=now
        )
        others: dict[str, ResourceCondition] = {}
        if said := before.condition(ConditionReason.PORTS_OPEN):
            others[said.type] = said
        if (away := turned_away(resource, self._bearers(resource.metadata.name))) is not None:
            self.warn(resource, away.reason, away.message)
        for each in (*further, away):
            if each is not None:
                others[each.type] = condition(before.condition(each.type), each, now_unix=now)
        conditions = [ready, *(others[type_] for type_ in sorted(others))]
        wanted = stored(replace(known, conditions=conditions, observed_generation=resource.metadata.generation))
        different = {key for key, value in wanted.items() if resource.status.get(key) != value}
        written_at = self._written_at.get(resource.metadata.name, -1e9)
        counts = different == {"labs"}
        if not different or (counts and (self._ctx.kube.flow.busy or self._ctx.now() - written_at < _COUNTS_EVERY_S)):
            return
        self._written_at[resource.metadata.name] = self._ctx.now()
        with contextlib.suppress(NotFound):
            workers = self._ctx.api.workers.metadata_only
            lane = Lane.NEWS if counts else Lane.WORK
            await workers.patch_status(resource.metadata.name, {"status": wanted}, guard=guard, lane=lane)

    def warn(self, resource: CustomResource, reason: Reason, note: str) -> None:
        """Emit a Warning about a CMLWorker once, however often it is found."""
        key = (resource.metadata.uid, reason, note)
        if key in self._warned:
            return
        self._warned.add(key)
        said = [(each.reason, each.message) for each in worker_status(resource).conditions]
        if (reason, note) not in said:  # else an earlier owner has emitted it
            self._ctx.events.emit(ref_of(resource, "CMLWorker"), "Warning", reason, note)

    def recovered(self, uid: str) -> None:
        """Note that a CMLWorker is Ready: a fault that comes back is reported again."""
        self._warned = {key for key in self._warned if key[0] != uid or key[1].lasting}

    def forget(self, uid: str) -> None:
        """Forget the Warnings about a CMLWorker that is gone."""
        self._warned = {key for key in self._warned if key[0] != uid}
