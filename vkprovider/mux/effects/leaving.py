"""The end of a mux: its backends go, its channels show nothing of it, and then its Service is released.

Its UDP ports lead to nobody for a while before, so that kube-proxy ends the flows that are open: `mux.pure.state`.
The stamp of what leads there says since when, whichever replica goes on. A mux whose namespace is deleted goes at once,
because its backends do and nothing can be created there; from 1.37 on kube-proxy ends flows without a backend.
Its ConfigMap stays, so that a mux that is made again with the same name has the same ports.
"""

from typing import Any, Final

import structlog

from vkprovider.mux.effects.carriers import Carriers
from vkprovider.mux.effects.reports import AT_ONCE, ChannelReport, Reports, refusal
from vkprovider.mux.effects.store import Writes
from vkprovider.mux.index import SERVICES, MuxIndex, Service, finalizer, mux_of
from vkprovider.mux.memory import MuxMemory
from vkprovider.mux.pure import muxnames
from vkprovider.mux.pure import slices as muxslices
from vkprovider.mux.pure.facts import MuxRef, annotation_key
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.pure.slices import MuxObject
from vkprovider.mux.pure.state import DRAIN_S
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Forbidden
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)
_ENDING: Final = "because it is being terminated"
"""The words with which an API server refuses to create anything in a namespace that is deleted."""


class Leaving:
    """Ends muxes."""

    def __init__(
        self,
        ctx: Context,
        prefix: str,
        index: MuxIndex,
        memory: MuxMemory,
        carriers: Carriers,
        reports: Reports,
        writes: Writes,
    ) -> None:
        self._wall = ctx.wall
        self._memory = memory
        self._services = Resource(ctx.kube, SERVICES)
        self._prefix = prefix
        self._index = index
        self._carriers = carriers
        self._reports = reports
        self._writes = writes

    async def end(self, service: Service, guard: Guard) -> float:
        """End a mux that is being deleted, is no load balancer, or is not marked any more.

        Return the seconds after which to call again, because open flows end until then; 0 if it has ended.

        Raises:
            Fenced: This replica no longer serves it.
            Conflict: Somebody has written the Service meanwhile.
        """
        meta = service.metadata
        mark = finalizer(self._prefix)
        if mark not in meta.finalizers:
            return 0.0
        left_s = await self._drain(service, guard)
        if not left_s:
            await self._carriers.withdraw(service.ref, guard)
        await self.clear(service.ref, guard)
        if left_s:
            return left_s
        kept = [name for name in meta.finalizers if name != mark]
        change: dict[str, Any] = {"finalizers": kept or None}
        if meta.deletion_timestamp is None:
            reports = (muxnames.MUX_CHANNELS, muxnames.MUX_TOPOLOGY, muxnames.MUX_SUMMARY)
            change["annotations"] = {annotation_key(self._prefix, name): None for name in reports}
        body = {"metadata": change}
        services, version = self._services.within(meta.namespace).metadata_only, meta.resource_version
        await self._writes.send(
            f"release mux {service.ref}",
            body,
            lambda: services.patch(meta.name, body, resource_version=version, guard=guard),
        )
        self._memory.ends_since.pop(str(service.ref), None)
        return 0.0

    async def _drain(self, service: Service, guard: Guard) -> float:
        """Lead the UDP ports of a mux to nobody; return the seconds for which they still must."""
        discards = muxslices.last_discards(mux_of(service), service.spec.ip_families)
        if not discards:
            return 0.0
        mux, now = MuxObject(service.ref, service.metadata.uid, self._prefix), self._wall()
        began = self._memory.ends_since.setdefault(str(service.ref), now)
        if (since := self._carriers.since(mux, discards)) is not None:  # another replica may have begun
            began = min(began, since)
        left_s = max(0.0, began + DRAIN_S - now)
        if left_s:
            try:
                await self._carriers.write(mux, discards, guard)
            except Forbidden as error:
                if _ENDING not in error.message:
                    raise
                _log.info(
                    "its namespace ends, and its backends with it: kube-proxy ends open flows, from 1.37 on",
                    mux=str(service.ref),
                )
                return 0.0
        return left_s

    async def clear(self, ref: MuxRef, guard: Guard) -> None:
        """Take its ports and address from the channels that name a mux that there is not, and answer such lablets."""
        await self._reports.update_channel_service_metadata(
            [ChannelReport(channel) for channel in self._index.channels(ref)], guard
        )
        why = f"{MuxReason.MUX_NOT_FOUND}: mux {ref} does not exist"
        await at_most(
            AT_ONCE, lambda each: self._reports.answer(each, refusal(each, why), guard), self._index.lablets(ref)
        )
