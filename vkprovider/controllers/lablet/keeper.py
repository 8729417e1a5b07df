"""Keeps what a learner leaves, and drops it when it is old."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from vkprovider.api import labs, names
from vkprovider.api.errors import Conflict, InputError, Invalid, NotFound, OutsideError
from vkprovider.api.labs import DeviceFact
from vkprovider.api.objects import ConfigMap
from vkprovider.controllers.context import Context
from vkprovider.controllers.worker.worker import Worker
from vkprovider.domain.claims.claim import Claim
from vkprovider.domain.lablet import leftovers
from vkprovider.domain.lablet.leftovers import Left

_log: Final = structlog.get_logger(__name__)
_SWEEP_EVERY_S: Final = 600.0
_PAGE: Final = "100"

_config_map: Final = msgspec.json.Decoder(ConfigMap)


class _Head(msgspec.Struct, frozen=True):
    items: list[ConfigMap] = []
    metadata: dict[str, Any] = {}


_heads: Final = msgspec.json.Decoder(_Head)


class Keeper:
    """Keeps configurations and responses in ConfigMaps of the provider's namespace."""

    def __init__(self, ctx: Context, leads: Callable[[], bool]) -> None:
        """Take the replica, and whether it is the one that sweeps."""
        self._ctx = ctx
        self._leads = leads
        self._path = f"/api/v1/namespaces/{ctx.namespace}/configmaps"

    async def keep(
        self,
        worker: Worker,
        claim: Claim,
        devices: tuple[DeviceFact, ...],
        *,
        username: str = "",
        responses: Any = None,
    ) -> tuple[Left, dict[str, OutsideError]]:
        """Extract what the devices of a lab hold and keep it; one that cannot be extracted stops no other.

        Returns:
            What is kept, and by label why there is no configuration of a device that has one.

        Raises:
            Fenced: The node is not ours any more.
            OutsideError: The API server does not take it; the worker's faults are returned, not raised.
        """
        running = tuple(device for device in devices if device.state == labs.BOOTED)
        configs, faults = await worker.labs.extract_configs(claim.lab_id, running) if claim.lab_id else ({}, {})
        why = {label: error.message for label, error in faults.items()}
        left = leftovers.left_by(claim, configs, why, at=self._ctx.now_unix, username=username, responses=responses)
        if configs or responses is not None:
            await self._write(worker, left)
        return left, {label: error for label, error in faults.items() if not isinstance(error, Invalid)}

    async def _write(self, worker: Worker, left: Left) -> None:
        ctx, name = self._ctx, leftovers.name_of(left.pod_uid)
        body = leftovers.build(left, namespace=ctx.namespace, installation=ctx.installation)
        try:
            await ctx.kube.create(self._path, msgspec.json.encode(body), guard=worker.guard)
        except Conflict:
            old = await self.find(left.pod_uid)
            if old is not None and not leftovers.same_learner(old, left):
                await self._set_aside(worker, old)
            left = leftovers.merged(old, left)
            body = leftovers.build(left, namespace=ctx.namespace, installation=ctx.installation)
            await ctx.kube.replace(f"{self._path}/{name}", msgspec.json.encode(body), guard=worker.guard)

    async def _set_aside(self, worker: Worker, old: Left) -> None:
        """Keep what an earlier learner of a pool's lablet left beside what the next one leaves."""
        ctx, name = self._ctx, leftovers.earlier_name_of(old)
        body = leftovers.build(old, namespace=ctx.namespace, installation=ctx.installation, name=name)
        with contextlib.suppress(Conflict):  # it is there already
            await ctx.kube.create(self._path, msgspec.json.encode(body), guard=worker.guard)

    async def find(self, pod_uid: str) -> Left | None:
        """Get what was kept of a lablet; None if nothing was, or if it is damaged.

        Raises:
            OutsideError: The API server does not tell.
        """
        try:
            return leftovers.read(
                _config_map.decode(await self._ctx.kube.get(f"{self._path}/{leftovers.name_of(pod_uid)}"))
            )
        except NotFound:
            return None
        except InputError as error:
            _log.warning("what was kept cannot be read", pod=pod_uid, error=str(error))
            return None

    async def run(self) -> None:
        """Drop what is old, if this replica leads, until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_EVERY_S * (0.5 + self._ctx.dice()))
            if not self._leads():
                continue
            try:
                await self.sweep()
            except OutsideError as error:
                _log.warning("what is old cannot be dropped", error=str(error))

    async def sweep(self) -> None:
        """Drop what was written too long ago.

        Raises:
            OutsideError: The API server does not answer, or refuses.
        """
        query = {"labelSelector": f"{names.LABEL_COMPONENT}={names.COMPONENT_CONFIGS}", "limit": _PAGE}
        oldest = self._ctx.now_unix - self._ctx.tuning.kept_s
        while True:
            page = _heads.decode(await self._ctx.kube.get(self._path, query))
            for config_map in page.items:
                written = leftovers.kept_at(config_map)
                if written is not None and written < oldest:
                    with contextlib.suppress(NotFound):
                        await self._ctx.kube.delete(f"{self._path}/{config_map.metadata.name}")
            if not (token := page.metadata.get("continue")):
                return
            query["continue"] = str(token)
