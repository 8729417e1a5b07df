"""The process of one replica that serves muxes: its Leases and parts."""

import dataclasses
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from vkprovider.lablet import names
from vkprovider.mux.debug.routes import DebugCallers, DebugPage
from vkprovider.mux.effects.store import Writes
from vkprovider.mux.events import Events, LoggedEvents
from vkprovider.mux.index import MuxIndex
from vkprovider.mux.informers import MuxInformers, informers
from vkprovider.mux.memory import MuxMemory
from vkprovider.mux.pure.muxnames import MuxReason
from vkprovider.mux.reconciler import Muxes
from vkprovider.mux.settings import MuxProcessSettings
from vkprovider.mux.showing import Showing
from vkprovider.mux.strays import Strays
from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.access import AccessControl
from vkprovider.platform.http.page import Page
from vkprovider.platform.http.tls import page_tls
from vkprovider.platform.kube.events import EventRecorder, ObjectRef
from vkprovider.platform.kube.queue import KeyedQueue
from vkprovider.platform.replica import run
from vkprovider.platform.runtime.context import Context, Program
from vkprovider.platform.runtime.leases import LeaseKind
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.metrics import Measure, counter, gauge, value
from vkprovider.platform.runtime.ownership import Ownership
from vkprovider.platform.runtime.parts import Change, Part, Work
from vkprovider.platform.runtime.process import Process
from vkprovider.platform.settings import reveal

MUX: Final = Program(names.MUX_PROXY, f"{wellknown.GROUP}/mux-replica")
DRY_RUN: Final = Program(f"{names.MUX_PROXY}-dry-run", f"{wellknown.GROUP}/mux-dry-run-replica")
"""The program, and one that only says what it would do: it takes no mux from the other."""
_SECONDS: Final = 40


def muxes_of(program: Program, namespace: str) -> LeaseKind:
    """Return the muxes as keys, `namespace/name`, whose Leases are in the namespace of the program.

    A Lease has no owner, because its mux may be in another namespace; `strays` deletes those of muxes that are gone.
    """
    prefix = f"{program.name}."
    return LeaseKind(
        noun="mux",
        key="mux",
        namespace=namespace,
        seconds=_SECONDS,
        labels={f"{program.member_label}-key": "true"},
        name_of=partial(_name, prefix),
        key_of=partial(_key, prefix),
        about=_about,
        taken_over=MuxReason.MUX_TAKEN_OVER,
        owner=lambda key, uid: None,  # noqa: ARG005 (see above)
        foreign=partial(_foreign, namespace),
    )


def _name(prefix: str, key: str) -> str:
    namespace, _, name = key.partition("/")
    return f"{prefix}{name}.{namespace}"  # neither has a dot


def _key(prefix: str, lease: str) -> str | None:
    name, _, namespace = lease.removeprefix(prefix).partition(".")
    return f"{namespace}/{name}" if lease.startswith(prefix) and namespace else None


def _about(key: str, uid: str) -> ObjectRef:
    namespace, _, name = key.partition("/")
    return ObjectRef("v1", "Service", namespace, name, uid)


def _foreign(namespace: str, lease: str) -> InputError:
    text = f"Lease {namespace}/{lease} exists and is of no mux of this cluster; delete it"
    return InputError(MuxReason.MUX_TAKEN_OVER, text)


_AT_ONCE = 8
"""Muxes that are served at once."""


@dataclass(frozen=True, slots=True)
class MuxProcess:
    """One replica of the program: its process, and what tests and the page look at."""

    ctx: Context
    index: MuxIndex
    objects: MuxInformers
    ownership: Ownership
    memory: MuxMemory
    strays: Strays
    events: Events
    writes: Writes
    queue: KeyedQueue[str]
    process: Process


def mux_process(ctx: Context, settings: MuxProcessSettings) -> MuxProcess:
    """Build a replica; nothing is read or written before its process runs, and in a dry run Events are only logged."""
    of_mux = settings.mux
    ctx = _dry(ctx) if of_mux.dry_run else ctx
    queue: KeyedQueue[str] = KeyedQueue(name="muxes", workers=_AT_ONCE)
    shown: KeyedQueue[str] = KeyedQueue(name="shown", workers=_AT_ONCE)
    writes, events = Writes(dry=of_mux.dry_run), Events(ctx)
    memory = MuxMemory(events)
    membership = Membership(ctx, settings.replica.lease_ttl_s)
    objects = informers(ctx, of_mux.prefix)
    default = of_mux.default_namespace or ctx.namespace

    def replan() -> None:
        ownership.plan.renew()

    index = MuxIndex(of_mux.prefix, default, ctx.namespace, wake=queue.add, replan=replan)
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
    callers = DebugCallers(access, reveal(settings.web.token))
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


def _dry(ctx: Context) -> Context:
    events: EventRecorder = LoggedEvents(ctx.kube, component=ctx.program.name, instance=ctx.replica)
    return dataclasses.replace(ctx, events=events)


def _measures(ownership: Ownership, memory: MuxMemory, writes: Writes) -> Iterable[Measure]:
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


async def main(settings: MuxProcessSettings) -> None:
    """Run one replica until SIGTERM or SIGINT.

    Raises:
        InputError: `SettingInvalid`: the page cannot listen, or its certificate cannot be used.
    """

    def build(ctx: Context, _: AsyncExitStack) -> Process:
        return mux_process(ctx, settings).process

    about = {"prefix": settings.mux.prefix, "dry_run": settings.mux.dry_run}
    await run(program_of(settings), settings, page_of(settings), build, **about)


def program_of(settings: MuxProcessSettings) -> Program:
    """Return whose replica it is."""
    return DRY_RUN if settings.mux.dry_run else MUX


def page_of(settings: MuxProcessSettings) -> Page:
    """Return the page of a replica; nothing listens before `Page.start`.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    http, port = settings.http, settings.web.port
    if port is not None:
        http = http.model_copy(update={"port": port})
    own = ["localhost", "127.0.0.1", f"{names.MUX_PROXY}.{settings.replica.namespace}.svc"]
    return Page(http, settings.replica.instance_id, tls=page_tls(http, own), starting={"owned_muxes": []})
