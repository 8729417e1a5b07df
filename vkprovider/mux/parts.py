"""The process that serves muxes: its list of parts."""

from collections.abc import Iterable
from dataclasses import dataclass

from vkprovider.mux.debug.callers import Callers
from vkprovider.mux.debug.routes import DebugPage
from vkprovider.mux.effects.writes import Writes
from vkprovider.mux.events import Events
from vkprovider.mux.index import Index
from vkprovider.mux.informers import Informers, informers
from vkprovider.mux.leases import muxes_of
from vkprovider.mux.memory import Memory
from vkprovider.mux.reconciler import Muxes
from vkprovider.mux.settings import MuxProcessSettings
from vkprovider.mux.showing import Showing
from vkprovider.mux.strays import Strays
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.kube.queue import KeyedQueue
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.metrics.measure import Measure, counter, gauge, value
from vkprovider.platform.runtime.ownership import Ownership
from vkprovider.platform.runtime.parts import Change, Part, Work
from vkprovider.platform.runtime.process import Process
from vkprovider.platform.settings import reveal

_AT_ONCE = 8
"""Muxes that are served at once."""


@dataclass(frozen=True, slots=True)
class MuxProcess:
    """One replica of the program: its process, and what tests and the page look at."""

    ctx: Context
    index: Index
    objects: Informers
    ownership: Ownership
    memory: Memory
    strays: Strays
    events: Events
    writes: Writes
    queue: KeyedQueue[str]
    process: Process


def mux_process(ctx: Context, settings: MuxProcessSettings) -> MuxProcess:
    """Build a replica; nothing is read or written before its process runs."""
    of_mux = settings.mux
    queue: KeyedQueue[str] = KeyedQueue(name="muxes", workers=_AT_ONCE)
    shown: KeyedQueue[str] = KeyedQueue(name="shown", workers=_AT_ONCE)
    writes, events = Writes(dry=of_mux.dry_run), Events(ctx)
    memory = Memory(events)
    membership = Membership(ctx, settings.replica.lease_ttl_s)
    objects = informers(ctx, of_mux.prefix)
    default = of_mux.default_namespace or ctx.namespace

    def replan() -> None:
        ownership.plan.renew()

    index = Index(of_mux.prefix, default, ctx.namespace, wake=queue.add, replan=replan)
    ownership = Ownership(
        ctx,
        membership,
        muxes_of(ctx.program, ctx.namespace),
        index.muxes.keys,
        levels=settings.replica.workload_levels,
        wake=queue.add,
        holders=(memory,),
    )
    muxes = Muxes(ctx, of_mux, index, objects, ownership, memory, writes, events, show=shown.add)
    showing = Showing(ctx, of_mux, ownership, memory, writes, events)
    strays = Strays(ctx, of_mux, index, objects.services, ownership, muxes.leaving, events)

    def wake_all() -> None:
        for key in index.muxes:
            queue.add(key)

    access = AccessControl(ctx.kube, audiences=settings.web.token_audiences)
    callers = Callers(access, reveal(settings.web.token))
    page = DebugPage(settings.web, of_mux, ctx.replica, index, memory, events, callers)
    part = Part(
        owns=(ownership,),
        informers=(objects.services, objects.addressed, objects.slices, objects.workers, ownership.leases),
        changes=(
            Change(objects.services, writes.seen),
            Change(objects.slices, writes.seen),
            Change(objects.services, index.service_changed),
            Change(objects.addressed, index.addresses_changed),
            Change(objects.slices, index.slice_changed),
        ),
        works=(Work(queue, muxes.reconcile), Work(shown, showing.show)),
        loops={
            "plan": ownership.plan.run,  # decides which muxes to take and to hand over
            "heartbeat": ownership.run_heartbeat,  # renews the Leases of our muxes
            "strays": strays.run,  # looks for what belongs to no mux, if this replica leads
        },
        measures=tuple(_measures(ownership, memory, writes)),
        health=lambda: {"owned_muxes": sorted(ownership.epochs), "dry_run": of_mux.dry_run},
        stats=lambda: {"fenced": ownership.fenced_total, "takeovers": ownership.takeovers_total},
        resumed=wake_all,
        routes=page.routes(),
    )
    process = Process(ctx, membership, (part,), serves_fenced=True)
    return MuxProcess(ctx, index, objects, ownership, memory, strays, events, writes, queue, process)


def _measures(ownership: Ownership, memory: Memory, writes: Writes) -> Iterable[Measure]:
    yield gauge("vkprovider_mux_owned", "Muxes that this replica serves.", lambda: value(len(ownership.epochs)))
    yield gauge(
        "vkprovider_mux_channels",
        "Channels that have ports, of the muxes that this replica serves.",
        lambda: value(sum(len(seen.plan.mapped) for seen in memory.seen.values())),
    )
    yield gauge(
        "vkprovider_mux_refused",
        "Channels that have no port, of the muxes that this replica serves.",
        lambda: value(sum(len(seen.plan.refused) for seen in memory.seen.values())),
    )
    yield counter("vkprovider_mux_writes_total", "Writes for muxes.", lambda: value(writes.total))
