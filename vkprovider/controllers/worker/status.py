"""The status of a CMLWorker, and the Warnings about it: each is written when it changes, and only then."""

import contextlib
from collections.abc import Iterable
from typing import Any, Final

from vkprovider.api.errors import NotFound
from vkprovider.api.messages import Condition
from vkprovider.api.objects import CustomResource
from vkprovider.api.reasons import known as reason_of
from vkprovider.controllers.context import Context, ref_of
from vkprovider.domain.conditions import condition, conditions_of
from vkprovider.domain.worker.node import Health
from vkprovider.kube.client import Guard
from vkprovider.kube.flow import Lane

_COUNTS_EVERY_S: Final = 10.0
"""How often a status is written of which only counts have changed; not at all while other requests wait."""


class WorkerStatusWriter:
    """Writes the statuses of CMLWorkers."""

    def __init__(self, ctx: Context) -> None:
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
        further: Iterable[Condition] = (),
    ) -> None:
        """Write the fields that have changed.

        Args:
            resource: The CMLWorker as it is known.
            health: Becomes its condition Ready.
            known: Further fields of its status.
            guard: Called right before the write.
            further: Its other conditions. PortsOpen remains as it is if it is not among them; any other one is removed.

        Raises:
            OutsideError: The API server refused or did not answer.
            Fenced: This replica does not own the Node any more.
        """
        status = resource.status
        before = conditions_of(status)
        is_ready = "True" if health.ready else "False"
        now = self._ctx.now_unix
        ready = condition(before, Condition("Ready", is_ready, health.reason, health.message), now_unix=now)
        others = {"PortsOpen": said} if (said := before.get("PortsOpen")) else {}
        others |= {each.type: condition(before, each, now_unix=now) for each in further}
        wanted = {
            "conditions": [ready, *(others[type_] for type_ in sorted(others))],
            "observedGeneration": resource.metadata.generation,
            **known,
        }
        different = {key for key, value in wanted.items() if status.get(key) != value}
        written_at = self._written_at.get(resource.metadata.name, -1e9)
        counts = different == {"labs"}
        if not different or (counts and (self._ctx.kube.flow.busy or self._ctx.now() - written_at < _COUNTS_EVERY_S)):
            return
        self._written_at[resource.metadata.name] = self._ctx.now()
        with contextlib.suppress(NotFound):
            workers = self._ctx.api.workers.metadata_only
            lane = Lane.NEWS if counts else Lane.WORK
            await workers.patch_status(resource.metadata.name, {"status": wanted}, guard=guard, lane=lane)

    def warn(self, resource: CustomResource, reason: str, note: str) -> None:
        """Emit a Warning about a CMLWorker once, however often it is found."""
        key = (resource.metadata.uid, reason, note)
        if key in self._warned:
            return
        self._warned.add(key)
        said = [(each.get("reason"), each.get("message")) for each in conditions_of(resource.status).values()]
        if (reason, note) not in said:  # else an earlier owner has emitted it
            self._ctx.events.emit(ref_of(resource, "CMLWorker"), "Warning", reason, note)

    def recovered(self, uid: str) -> None:
        """Note that a CMLWorker is Ready: a fault that comes back is reported again."""
        self._warned = {key for key in self._warned if key[0] != uid or reason_of(key[1]).lasting}

    def forget(self, uid: str) -> None:
        """Forget the Warnings about a CMLWorker that is gone."""
        self._warned = {key for key in self._warned if key[0] != uid}
