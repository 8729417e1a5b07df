"""One bulk observation of a worker for all of its lablets: which labs it has, and in which state their devices are."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import structlog

from vkprovider.api.errors import Fenced, OutsideError, TlsFailed, Unauthorized, Unavailable
from vkprovider.api.labs import DeviceFact
from vkprovider.cml.stats import WorkerUsage
from vkprovider.controllers.context import Context
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.topology.resources import Resources
from vkprovider.domain.worker.node import Stats, down

_log: Final = structlog.get_logger(__name__)
_VERSION_EVERY_S: Final = 60.0
_STATS_S_MAX: Final = 5.0


class Observer:
    """Asks workers."""

    def __init__(self, ctx: Context, need: Callable[[str], Resources | None]) -> None:
        """Take the replica, and what tells how much a lablet of a content takes, by digest."""
        self._ctx = ctx
        self._need = need

    async def observe(self, worker: Worker) -> list[str]:
        """Ask a worker for what it has, as often as its lablets need it; what it does not answer is noted in it.

        Returns:
            UIDs of the Pods about whose labs something is new.
        """
        ctx, now = self._ctx, self._ctx.now()
        awaiting, worker.awaiting = worker.awaiting, set()
        full = awaiting or now - worker.devices_at >= ctx.tuning.refresh_s
        before, silent_before = worker.devices, worker.silent
        try:
            if now - worker.version_at >= _VERSION_EVERY_S:
                worker.version = await worker.labs.version()
                worker.version_at = now
            labs_at = ctx.now()
            lab_ids = frozenset(await worker.labs.list_lab_ids())
            worker.lab_ids, worker.labs_at = lab_ids, labs_at
            if full:
                devices_at = ctx.now()
                worker.devices = await worker.labs.list_all_devices()
                worker.devices_at = devices_at
            await worker.finder.scan(lab_ids, worker.claims.claims)
        except Fenced:
            return []
        except OutsideError as error:
            worker.awaiting |= awaiting  # they go on waiting
            awaiting = set()
            self._failed(worker, error)
        else:
            worker.failures, worker.reached, worker.silent = 0, True, ""
        await self._ask_stats(worker)
        if worker.silent != silent_before:
            return list(worker.claims.claims)
        if worker.labs.immediate:
            return []  # whoever acts knows at once
        return list({*_news(worker, before), *awaiting})

    def _failed(self, worker: Worker, error: OutsideError) -> None:
        worker.failures += 1
        worker.version_at = -1e9  # who comes back may have been upgraded
        if isinstance(error, Unauthorized):
            reason = "CredentialsInvalid"
        elif isinstance(error, TlsFailed):
            reason = "CertificateInvalid"
        elif isinstance(error, Unavailable):
            reason = "WorkerUnreachable"
            if worker.reached and worker.failures < self._ctx.tuning.probe_failures_max:
                return
        else:
            reason = "WorkerError"
        worker.health = down(reason, error.message)
        worker.silent = f"worker {worker.name}: {error.message}"
        worker.reached = False

    async def _ask_stats(self, worker: Worker) -> None:
        """Ask how much is used, now and then, and not for long: lablets wait for what else was observed."""
        tuning, now = self._ctx.tuning, self._ctx.now()
        every_s = tuning.reconcile_s if worker.usage is not None else min(tuning.reconcile_s, tuning.refresh_s)
        if worker.stats is None or worker.silent or now - worker.usage_at < every_s:
            return
        worker.usage_at = now
        try:
            async with asyncio.timeout(_STATS_S_MAX):
                worker.usage = self._amounts(worker, await worker.stats.usage())
        except (OutsideError, TimeoutError) as error:
            _log.warning("worker tells no statistics", worker=worker.name, error=str(error) or f"{_STATS_S_MAX:g} s")

    def _amounts(self, worker: Worker, usage: WorkerUsage) -> Stats:
        """Tell what a worker has and what foreign labs use of it, from CML's figures of this moment."""
        ours = Resources()
        for claim in worker.claims.claims.values():
            if claim.started and (need := self._need(claim.digest)) is not None:
                ours = ours.plus(need)
        used = Resources(
            (usage.cpus_allocated or 0) * 1000, usage.memory_allocated_bytes or 0, usage.licences_started or 0
        )
        return Stats(usage.cpus, usage.memory_bytes, usage.licences, used.minus(ours))


def _news(worker: Worker, before: Mapping[str, tuple[DeviceFact, ...]]) -> Iterator[str]:
    """Name the Pods whose labs are not as they were."""
    for uid, claim in worker.claims.claims.items():
        if (lab_id := claim.lab_id) and (
            worker.devices.get(lab_id) != before.get(lab_id) or lab_id not in worker.lab_ids
        ):
            yield uid
