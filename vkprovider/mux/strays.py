"""What belongs to no mux: marked Services of a wrong type, channels of no mux, and Leases of muxes that are gone.

No event announces it, so that one replica looks for it once per `RECONCILE_INTERVAL`.
"""

import asyncio
from typing import Final

import structlog

from vkprovider.mux.effects.leaving import Leaving
from vkprovider.mux.events import Events, Told
from vkprovider.mux.index import SERVICES, MuxIndex, Service, finalizer, is_channel
from vkprovider.mux.pure.facts import MuxRef, is_marked, unfit_for_mux
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.settings import MuxSettings
from vkprovider.platform.errors import Conflict, Fenced, Forbidden, InputError, Invalid, OutsideError
from vkprovider.platform.kube.events import ObjectRef
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.messages import Fault
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.ownership import Ownership

_log: Final = structlog.get_logger(__name__)
_OTHER_TYPES: Final = "spec.type!=LoadBalancer"
_KEY: Final = "strays"


class Strays:
    """Looks for what belongs to no mux, while this replica leads."""

    def __init__(
        self,
        ctx: Context,
        settings: MuxSettings,
        index: MuxIndex,
        services: Informer[Service],
        ownership: Ownership,
        leaving: Leaving,
        events: Events,
    ) -> None:
        """Find nothing yet."""
        self._ctx = ctx
        self._settings = settings
        self._index = index
        self._items = services.items
        self._services = Resource(ctx.kube, SERVICES)
        self._ownership = ownership
        self._leaving = leaving
        self._events = events

    async def run(self) -> None:
        """Look again and again, for ever."""
        while True:
            if self._ownership.membership.leads():
                try:
                    await self.look()
                except (OutsideError, Fenced) as error:
                    _log.warning("cannot look for what belongs to no mux", error=str(error))
            await asyncio.sleep(self._settings.reconcile_s)

    async def look(self) -> None:
        """Look once."""
        told = await self._wrong_types()
        told += self._lost_channels()
        told += [
            Told(ObjectRef("discovery.k8s.io/v1", "EndpointSlice", meta.namespace, meta.name, meta.uid), fault)
            for each, fault in self._index.unreadable()
            for meta in (each.metadata,)
        ]
        self._events.found(_KEY, told, self._ownership.membership.check_leads)
        for ref in self._missing():
            try:
                await self._leaving.clear(ref, self._ownership.membership.check_leads)
            except (Forbidden, Invalid) as error:
                _log.warning("cannot clear up after a mux", mux=str(ref), error=error.message)
        await self._delete_leases()

    async def _wrong_types(self) -> list[Told]:
        """Return the marked Services that are no load balancers; one that was a mux is released."""
        told, prefix = [], self._settings.prefix
        async for page in self._services.pages(fields=_OTHER_TYPES):
            for service in page:
                unfit = unfit_for_mux(service.spec.type, service.spec.selector)
                if unfit is not None and is_marked(service.metadata.annotations, prefix):
                    told.append(Told(service.about, unfit))
                if finalizer(prefix) in service.metadata.finalizers:
                    try:
                        await self._leaving.end(service, self._ownership.membership.check_leads)
                    except Conflict:  # it changes: look again later
                        continue
                    except (Forbidden, Invalid) as error:  # whoever made it so holds up nothing of others
                        told.append(Told(service.about, Fault(MuxReason.MUX_WRITE_REFUSED, error.message)))
        return told

    def _lost_channels(self) -> list[Told]:
        """Return the channels whose mux cannot be known, or does not exist."""
        told = []
        for service in self._items.values():
            if not is_channel(service, self._settings.prefix):
                continue
            try:
                ref = self._index.mux_named_by(service)
            except InputError as error:
                told.append(Told(service.about, error.fault))
                continue
            if str(ref) not in self._index.muxes:
                text = f"mux {ref} does not exist: no Service of that name is marked as a mux"
                told.append(Told(service.about, Fault(MuxReason.MUX_NOT_FOUND, text)))
        return told

    def _missing(self) -> list[MuxRef]:
        return [ref for ref in self._index.named() if str(ref) not in self._index.muxes]

    async def _delete_leases(self) -> None:
        """Delete the Leases of muxes that are gone."""
        for lease in list(self._ownership.leases.items.values()):
            key = self._ownership.kind.key_of(lease.metadata.name)
            if key is None or key in self._index.muxes or key in self._ownership.epochs:
                continue
            try:
                await self._ctx.api.member_leases.delete(
                    lease.metadata.name,
                    resource_version=lease.metadata.resource_version,
                    guard=self._ownership.membership.check_leads,
                )
            except Conflict:  # the mux is there again
                continue
