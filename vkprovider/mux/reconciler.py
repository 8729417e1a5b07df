"""One pass over a mux: read what is there, decide, write what is to be remembered, then what differs."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import structlog

from vkprovider.mux.backends import Vouching, backends_of, lent_to
from vkprovider.mux.effects.carriers import Carriers
from vkprovider.mux.effects.leaving import Leaving
from vkprovider.mux.effects.reports import AT_ONCE, Reports, answers_of, channel_reports, format_port_changes
from vkprovider.mux.effects.store import MuxStore, StoredMux, Writes
from vkprovider.mux.events import Events, Told
from vkprovider.mux.index import SERVICES, MuxIndex, Service, channel_of, finalizer, is_leaving, mux_of
from vkprovider.mux.informers import MuxInformers, reserved_addresses
from vkprovider.mux.memory import LastPass, MuxMemory
from vkprovider.mux.pure import slices as muxslices
from vkprovider.mux.pure.decide import decide
from vkprovider.mux.pure.endpoints import backends_of as lablet_backends
from vkprovider.mux.pure.endpoints import channel_of as lablet_channel
from vkprovider.mux.pure.endpoints import lent_targets, owner_of
from vkprovider.mux.pure.facts import Channel, Mux, Owner, ServicePort, unfit_for_mux
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.pure.slices import MuxObject, Source
from vkprovider.mux.settings import MuxSettings
from vkprovider.platform.concurrency import at_most
from vkprovider.platform.errors import Conflict, Forbidden, InputError, Invalid, Unavailable
from vkprovider.platform.kube.client import Guard
from vkprovider.platform.kube.queue import DONE, Result
from vkprovider.platform.kube.resources import Resource
from vkprovider.platform.leases import Duty
from vkprovider.platform.messages import Fault, listed
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.ownership import Ownership

_log: Final = structlog.get_logger(__name__)
_TAKE_AGAIN_S: Final = 1.0
_ASK_AGAIN_S: Final = 2.0
"""After a request for a mux that nobody serves got no answer: a back-off would outlast what kept the answer away."""


class Muxes:
    """Serves muxes."""

    def __init__(
        self,
        ctx: Context,
        settings: MuxSettings,
        index: MuxIndex,
        objects: MuxInformers,
        ownership: Ownership,
        memory: MuxMemory,
        writes: Writes,
        events: Events,
        *,
        show: Callable[[str], None],
    ) -> None:
        """Serve none yet.

        Args:
            ctx: The replica.
            settings: How muxes are served.
            index: Muxes, channels and slices.
            objects: What is followed.
            ownership: Which muxes this replica serves.
            memory: What is remembered of them.
            writes: Carries out writes.
            events: Tells of what was done and found.
            show: Called with a mux at the end of each pass over it.
        """
        self._ctx = ctx
        self._settings = settings
        self._index = index
        self._objects = objects
        self._ownership = ownership
        self._memory = memory
        self._writes = writes
        self._events = events
        self._show = show
        self._services = Resource(ctx.kube, SERVICES)
        self._store = MuxStore(ctx, settings.prefix, writes)
        self._carriers = Carriers(ctx, settings.endpoints, index, writes)
        self._reports = Reports(ctx, settings.prefix, writes)
        self._leaving = Leaving(ctx, settings.prefix, index, memory, self._carriers, self._reports, writes)
        self._vouching = Vouching(ctx)
        self._refused = settings.refused_networks

    @property
    def leaving(self) -> Leaving:
        """Ends muxes."""
        return self._leaving

    async def reconcile(self, key: str) -> Result:
        """Serve a mux, if this replica should.

        Raises:
            Fenced: This replica no longer serves it, or may not act for a while.
            OutsideError: The API server refused or did not answer; nothing is decided then.
        """
        known = self._index.muxes.get(key)
        if known is None:
            await self._ownership.release(key)
            return DONE
        match self._ownership.plan.act(key):
            case Duty.STAND_BY:
                return DONE
            case Duty.HAND_OVER:
                await self._ownership.release(key)
                return DONE
            case Duty.TAKE:
                try:
                    taken = await self._ownership.acquire(key, known.metadata.uid)
                except InputError as error:
                    _log.error("cannot serve a mux", mux=key, error=error.message)
                    return Result(self._settings.reconcile_s)
                except Unavailable as error:
                    if error.status:
                        raise
                    _log.warning("cannot serve a mux yet; tries again", mux=key, error=error.message)
                    return Result(_ASK_AGAIN_S)
                if not taken:
                    return Result(_TAKE_AGAIN_S)
            case Duty.OWN:
                pass
        guard = self._ownership.guard(key)
        service = await self._services.within(known.metadata.namespace).get(known.metadata.name)
        if service is None:
            return DONE  # the watch will show it
        if is_leaving(service, self._settings.prefix):
            left_s = await self._leaving.end(service, guard)
            return Result(min(left_s, self._settings.queue_timeout_s)) if left_s else DONE
        self._memory.ends_since.pop(key, None)
        try:
            return await self._serve(key, service, guard)
        except InputError as error:
            fault = error.fault
        except (Forbidden, Invalid) as error:
            fault = Fault(MuxReason.MUX_WRITE_REFUSED, error.message)
        self._events.found(key, [Told(service.about, fault)], guard)
        await self._withdraw_ended(service, guard)
        return Result(self._settings.queue_timeout_s)

    async def _serve(self, key: str, service: Service, guard: Guard) -> Result:
        """Serve a mux that this replica owns.

        Raises:
            InputError: Nothing can be decided.
        """
        spec, again_s = service.spec, self._settings.queue_timeout_s
        unfit = unfit_for_mux(spec.type, spec.selector)
        if unfit is not None:
            raise InputError(unfit.reason, unfit.message)
        mux, last = mux_of(service), self._memory.seen.get(key)
        stored = await self._store.read(mux, last and last.stored)
        seen = await self._pass(service, mux, stored)
        service = await self._mark(service, guard)
        await self._store.write(mux, stored, seen.plan.state, guard)
        await self._write(service, mux, seen, guard)
        self._memory.seen[key] = seen
        self._tell(key, seen, guard)
        self._show(key)
        wake_at = seen.plan.wake_at
        return Result(again_s if wake_at is None else min(again_s, max(0.1, wake_at - self._ctx.wall())))

    async def _pass(self, service: Service, mux: Mux, stored: StoredMux) -> LastPass:
        """Read what channels have, and decide; nothing is written."""
        services, lablets = self._index.channels(mux.ref), self._index.lablets(mux.ref)
        channels: list[Channel] = [channel_of(each) for each in services]
        channels += [lablet_channel(each.exposure, self._settings.prefix) for each in lablets]
        now = self._ctx.wall()
        mux = mux._replace(forwarded=muxslices.forwarded_udp(self._index.own_slices(mux.ref).values()))
        plan = decide(
            mux,
            channels,
            stored.state,
            now,
            prefix=self._settings.prefix,
            rest_s=self._settings.rest_s,
            sure=self._ctx.is_sure(),
        )
        found: dict[Owner, Sequence[Source]] = {}
        refused: dict[Owner, Mapping[str, str]] = {}
        reserved = reserved_addresses(self._objects, self._index, self._ctx, self._refused)
        asked: Counter[str] = Counter()
        for each in services:
            owner = each.owner
            if owner in plan.mapped:
                slices = self._index.slices_of(owner.namespace, owner.service)
                its = await backends_of(slices, owner.namespace, reserved, self._vouching, asked)
                found[owner], refused[owner] = its
        for lablet in lablets:
            source = Source(lablet.slice.metadata.name, lablet.slice.address_type, lablet_backends(lablet.exposure))
            found.setdefault(owner_of(lablet.exposure), [source])
        sources = muxslices.collect_sources(plan, found)
        return LastPass(service, stored, services, lablets, plan, sources, refused, now)

    # ------------------------------------------------------------------------------------------ writes

    async def _mark(self, service: Service, guard: Guard) -> Service:
        """Set the finalizer, so that channels do not show a mux that is gone; return the Service as it is then."""
        mark, meta = finalizer(self._settings.prefix), service.metadata
        if mark in meta.finalizers:
            return service
        body = {"metadata": {"finalizers": [*meta.finalizers, mark]}}
        services, version = self._services.within(meta.namespace), meta.resource_version
        marked: list[Service] = []

        async def call() -> None:
            marked.append(await services.patch(meta.name, body, resource_version=version, guard=guard))

        await self._writes.send(f"patch the finalizer of mux {service.ref}", body, call)
        return marked[0] if marked else service

    async def _write(self, service: Service, mux: Mux, seen: LastPass, guard: Guard) -> None:
        """Write backends, ports, and what channels show, in this order."""
        owned = MuxObject(mux.ref, service.metadata.uid, self._settings.prefix)
        carried = muxslices.with_discards(seen.plan, seen.sources, service.spec.ip_families)
        changed = await self._carriers.write(owned, carried, guard)
        if changed is not None:
            self._events.happened(str(service.ref), service.about, *changed, guard)
        await self._write_ports(service, mux, seen.plan.ports, guard)
        channels = channel_reports(seen.channels, seen.plan, service.ingress)
        await self._reports.update_channel_service_metadata(channels, guard)
        answers = answers_of(seen.lablets, seen.plan, service.addresses)
        await at_most(AT_ONCE, lambda each: self._reports.answer(*each, guard), answers)

    async def _withdraw_ended(self, service: Service, guard: Guard) -> None:
        """Withdraw the backends that channels lend no more, where nothing else can be decided."""
        if await self._carriers.withdraw_ended(service.ref, lent_targets(lent_to(service.ref, self._index)), guard):
            text = "backends that are lent no more were withdrawn"
            self._events.happened(str(service.ref), service.about, MuxReason.MUX_ENDPOINTS_CHANGED, text, guard)

    async def _write_ports(self, service: Service, mux: Mux, ports: Sequence[ServicePort], guard: Guard) -> None:
        if set(mux.ports) == set(ports):
            return
        meta = service.metadata
        body = {"spec": {"ports": [{"name": p.name, "port": p.port, "protocol": p.protocol} for p in ports]}}
        services = self._services.within(meta.namespace)

        async def patch() -> None:
            version = meta.resource_version
            try:
                await services.metadata_only.patch(meta.name, body, resource_version=version, guard=guard)
            except Conflict:  # what is shown of it is written by another task; the ports must be those that were read
                now = await services.get(meta.name)
                if now is None or set(mux_of(now).ports) != set(mux.ports):
                    raise
                version = now.metadata.resource_version
                await services.metadata_only.patch(meta.name, body, resource_version=version, guard=guard)

        await self._writes.send(f"patch the ports of mux {mux.ref}", body, patch)
        self._events.happened(
            str(service.ref), service.about, MuxReason.MUX_PORTS_CHANGED, format_port_changes(mux.ports, ports), guard
        )

    # ------------------------------------------------------------------------------------------ Events

    def _tell(self, key: str, seen: LastPass, guard: Guard) -> None:
        """Tell the mux and each of its channels what is wrong with it."""
        about = {each.owner: each.about for each in seen.channels}
        told = [Told(seen.service.about, note) for note in seen.plan.notes]
        told += [
            Told(about[each.channel.owner], each.fault) for each in seen.plan.refused if each.channel.owner in about
        ]
        told += [Told(about[owner], _of_backends(owner, its)) for owner, its in seen.refused.items() if its]
        if not seen.service.spec.load_balancer_source_ranges and any(o.learner is not None for o in seen.plan.mapped):
            text = f"mux {seen.service.ref} leads to consoles of lablets, and has no spec.loadBalancerSourceRanges"
            told.append(Told(seen.service.about, Fault(MuxReason.MUX_OPEN_TO_ALL, text)))
        self._events.found(key, told, guard)


def _of_backends(owner: Owner, refused: Mapping[str, str]) -> Fault:
    """Return one fault of a channel for all its addresses: whoever writes slices decides how many there are."""
    named = listed([f"{address} is {what}" for address, what in refused.items()], _NAMED_MAX)
    it, they = ("it", "backend") if len(refused) == 1 else ("them", "backends")
    text = f"{they} {named}, and no Pod of namespace {owner.namespace} has {it}: nothing leads there"
    return Fault(MuxReason.MUX_BACKEND_REFUSED, text)


_NAMED_MAX: Final = 3
