"""The status of a CMLWorker, and the Warnings about it: written where something is new, told once."""

from typing import Any, Final

import msgspec

from vkprovider.api import names
from vkprovider.api.errors import NotFound
from vkprovider.api.objects import CustomResource
from vkprovider.controllers.context import Context, ref_of
from vkprovider.domain.conditions import become, conditions_of
from vkprovider.domain.worker.node import Health
from vkprovider.kube.client import Guard

_WORKERS: Final = f"/apis/{names.API_VERSION}/cmlworkers"
_LASTING: Final = frozenset({"AddressUnresolved", "PortsNotOpened", "UnclaimedLab"})
"""What is told of a worker that is Ready all the same."""
_COUNTS_EVERY_S: Final = 10.0
"""How often mere counts may be written."""

_encode: Final = msgspec.json.encode


class WorkerStatusWriter:
    """Writes the statuses of CMLWorkers."""

    def __init__(self, ctx: Context) -> None:
        """Take the replica."""
        self._ctx = ctx
        self._written_at: dict[str, float] = {}
        self._warned: set[tuple[str, str, str]] = set()

    async def write(
        self,
        resource: CustomResource,
        health: Health,
        known: dict[str, Any],
        guard: Guard | None = None,
        *,
        ports_open: tuple[str, str, str] | None = None,
    ) -> None:
        """Write what is different.

        Args:
            resource: The CMLWorker as it is known.
            health: Becomes its condition Ready.
            known: Further fields of its status.
            guard: Called right before the write.
            ports_open: Status, reason and message of its condition PortsOpen; None keeps the one there is.

        Raises:
            OutsideError: The API server was no help.
            Fenced: The node is not ours any more.
        """
        status = resource.status
        before = conditions_of(status)
        is_ready = "True" if health.ready else "False"
        now = self._ctx.now_unix
        conditions = [become(before, "Ready", is_ready, health.reason, health.message, now_unix=now)]
        if ports_open is not None:
            conditions.append(become(before, "PortsOpen", *ports_open, now_unix=now))
        elif said := before.get("PortsOpen"):
            conditions.append(said)
        wanted = {
            "conditions": conditions,
            "observedGeneration": resource.metadata.generation,
            **known,
        }
        different = {key for key, value in wanted.items() if status.get(key) != value}
        written_at = self._written_at.get(resource.metadata.name, -1e9)
        if not different or (different == {"labs"} and self._ctx.now() - written_at < _COUNTS_EVERY_S):
            return
        self._written_at[resource.metadata.name] = self._ctx.now()
        path = f"{_WORKERS}/{resource.metadata.name}/status"
        try:
            await self._ctx.kube.merge_patch(path, _encode({"status": wanted}), guard=guard, brief=True)
        except NotFound:
            return

    def warn(self, resource: CustomResource, reason: str, note: str) -> None:
        """Emit a Warning about a CMLWorker once, however often it is found to be true."""
        key = (resource.metadata.uid, reason, note)
        if key in self._warned:
            return
        self._warned.add(key)
        said = conditions_of(resource.status).get("Ready", {})
        if (said.get("reason"), said.get("message")) != (reason, note):  # an earlier replica told it
            self._ctx.events.emit(ref_of(resource, "CMLWorker"), "Warning", reason, note)

    def recovered(self, uid: str) -> None:
        """Note that a CMLWorker is Ready: a fault that comes back is told again."""
        self._warned = {key for key in self._warned if key[0] != uid or key[1] in _LASTING}

    def forget(self, uid: str) -> None:
        """Forget what was told of a CMLWorker that is gone."""
        self._warned = {key for key in self._warned if key[0] != uid}
