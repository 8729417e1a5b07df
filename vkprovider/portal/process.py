"""The process of one replica of the portal: its list of parts."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

import structlog

from vkprovider.platform import wellknown
from vkprovider.platform.errors import InputError
from vkprovider.platform.http.page import Page
from vkprovider.platform.http.tls import page_tls
from vkprovider.platform.kube.queue import KeyedQueue
from vkprovider.platform.reasons import StartReason
from vkprovider.platform.replica import run
from vkprovider.platform.runtime.context import Context, Program
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.metrics import Measure, by_name, counter, gauge, value
from vkprovider.platform.runtime.parts import Change, Part, Work, no_host
from vkprovider.platform.runtime.process import Process
from vkprovider.portal.api.routes import portal_api, portal_callers
from vkprovider.portal.pure import portalnames
from vkprovider.portal.pure.config import PortalConfig
from vkprovider.portal.service.choices import Choices, read_config
from vkprovider.portal.service.index import UserLabIndex
from vkprovider.portal.service.informers import OtherLablets, PortalInformers, informers
from vkprovider.portal.service.keeper import Instructors, Keeper
from vkprovider.portal.service.learners import LabletLearners
from vkprovider.portal.service.leftwork import left_work
from vkprovider.portal.service.locks import Locks
from vkprovider.portal.service.making import Making, lab_objects
from vkprovider.portal.service.reconciler import UserLabs
from vkprovider.portal.service.requests import Requests
from vkprovider.portal.service.workbenches import Workbenches
from vkprovider.portal.settings import PortalProcessSettings
from vkprovider.portal.ssh.door import Door
from vkprovider.portal.ssh.terminal import SshConsoles
from vkprovider.portal.web.build import PortalSite, portal_site
from vkprovider.portal.web.consoles.bridge import BrowserConsoles
from vkprovider.portal.web.live.streams import Live

_log: Final = structlog.get_logger(__name__)

PORTAL: Final = Program(portalnames.PORTAL_PROGRAM, f"{wellknown.GROUP}/portal-replica")
"""The portal: its replicas share out operations of user labs."""
_AT_ONCE: Final = 32
"""Labs that are served at once."""
_BINDINGS_AT_ONCE: Final = 4
"""Labs that get the instructors of their class at once."""


@dataclass(frozen=True, slots=True)
class PortalProcess:
    """One replica of the portal: its process, and what tests and the page look at."""

    ctx: Context
    index: UserLabIndex
    lablets: OtherLablets
    objects: PortalInformers
    locks: Locks
    requests: Requests
    choices: Choices
    labs: UserLabs
    keeper: Keeper
    live: Live
    queue: KeyedQueue[str]
    process: Process


def portal_process(ctx: Context, settings: PortalProcessSettings) -> PortalProcess:
    """Build a replica; nothing is read or written before its process runs.

    Raises:
        InputError: `SettingInvalid`: the file of `VKPROVIDER_PORTAL_CONFIG` cannot be used.
    """
    of_portal = settings.portal
    config = read_config(of_portal.config)
    queue: KeyedQueue[str] = KeyedQueue(name="userlabs", workers=_AT_ONCE)
    membership = Membership(ctx, settings.replica.lease_ttl_s)
    objects = informers(ctx, of_portal.namespace_prefix, {each.image for each in config.workbenches.values()})
    instructed: KeyedQueue[str] = KeyedQueue(name="instructors", workers=_BINDINGS_AT_ONCE)

    def wake(namespace: str) -> None:
        queue.add(namespace)
        instructed.add(namespace)

    index = UserLabIndex(
        ctx.namespace, of_portal.starts_max, wake, longest_s=of_portal.duration_max_s, age_s=objects.age_s
    )
    instructors = Instructors(ctx, index, membership, instructed.add)
    lablets = OtherLablets(index.strays, index.stray_namespaces)
    learners = LabletLearners(lablets)

    effects = lab_objects(ctx, objects, restricted=bool(config.workbenches))
    locks = Locks(ctx, membership, lambda key: _add_all(queue, index.namespaces_of(key)), index.about)
    choices = Choices(config, objects, learners)
    requests = Requests(ctx, effects, of_portal, index, locks, membership, choices, queue.add)
    making = Making(ctx, effects.pods, of_portal.username_prefix, choices.environment_of, index.definition)
    workbenches = Workbenches(ctx, of_portal, config, effects.pods, objects.nodes.items.values)
    labs = UserLabs(ctx, effects, of_portal, index, locks, membership, making, workbenches)
    keeper = Keeper(ctx, of_portal, index, locks, membership, choices, wake, records=effects.records)
    callers = portal_callers(ctx, of_portal, objects, settings.kube)
    page = portal_api(ctx, of_portal, index, requests, choices, callers, left := left_work(of_portal))
    site = portal_site(
        ctx, settings, index, lablets, learners, instructors, requests, choices, left=left, callers=callers
    )
    door = Door(site.linked, ctx.wall)

    async def finish() -> None:
        await asyncio.gather(page.finish(), site.finish())

    part = Part(
        informers=(*objects.all(), locks.leases),
        changes=tuple(_changes(objects, index, choices, lablets, learners, instructors, locks)),
        works=(Work(queue, labs.reconcile), Work(instructed, instructors.reconcile)),
        loops={"look": keeper.run, **_bench_loop(config, workbenches, index, membership), **_ssh(settings, door, site)},
        measures=(*_measures(index, lablets, locks, labs, site.consoles, door), *site.live.measures()),
        health=lambda: {"userlabs": len(index.labs()), "locks": len(locks.held())},
        known=keeper.known,
        resumed=lambda: _wake_all(index, wake),
        routes=(*page.routes(), *site.routes),
        hosted=site.benches.hosted if site.benches is not None else no_host,
        finish=finish,
        hand_over=locks.release_all,
    )
    process = Process(ctx, membership, (part,), serves_fenced=True)
    return PortalProcess(
        ctx, index, lablets, objects, locks, requests, choices, labs, keeper, site.live, queue, process
    )


def _wake_all(index: UserLabIndex, wake: Callable[[str], None]) -> None:
    for namespace in index.namespaces():
        wake(namespace)


def _bench_loop(
    config: PortalConfig, workbenches: Workbenches, index: UserLabIndex, membership: Membership
) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
    """Return the loop of workbenches, where there are any."""
    return {"workbenches": lambda: workbenches.keep(index, membership)} if config.workbenches else {}


def _ssh(
    settings: PortalProcessSettings, door: Door, site: PortalSite
) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
    """Return the loop of the port for ssh, where there is one.

    Raises:
        InputError: `SettingInvalid`: its key is none, or the package is not installed.
    """
    of_portal = settings.portal
    if not of_portal.ssh_port or of_portal.ssh_host_key is None:
        return {}
    try:
        from vkprovider.portal.ssh.server import SshPort  # noqa: PLC0415 (most portals do without its package)
    except ModuleNotFoundError as error:
        text = "VKPROVIDER_PORTAL_SSH_PORT is set, and asyncssh is not installed: pip install 'vkprovider[ssh]'"
        raise InputError(StartReason.SETTING_INVALID, text) from error
    key, consoles = of_portal.ssh_host_key.get_secret_value(), SshConsoles(site.linked, site.consoles, door)
    return {"ssh": SshPort(settings.http.host, of_portal.ssh_port, key, door, consoles).run}


def _add_all(queue: KeyedQueue[str], keys: Iterable[str]) -> None:
    for key in keys:
        queue.add(key)


def _changes(
    objects: PortalInformers,
    index: UserLabIndex,
    choices: Choices,
    lablets: OtherLablets,
    learners: LabletLearners,
    instructors: Instructors,
    locks: Locks,
) -> Iterable[Change[Any]]:
    """Yield who hears of a change of which objects, in this order."""
    yield Change(objects.definitions, index.definition_changed)
    yield Change(objects.definitions, choices.definition_changed)
    yield Change(objects.namespaces, index.namespace_changed)
    yield Change(objects.pods, index.pod_changed)
    yield Change(objects.pods, lablets.stray_changed)
    yield Change(objects.events, index.event_changed)
    yield Change(objects.lablets, lablets.pod_changed)
    yield Change(objects.bindings, instructors.binding_changed)
    yield Change(objects.bindings, learners.binding_changed)
    yield Change(locks.leases, locks.lease_changed)


def _measures(
    index: UserLabIndex, lablets: OtherLablets, locks: Locks, labs: UserLabs, consoles: BrowserConsoles, door: Door
) -> Iterable[Measure]:
    yield gauge("vkprovider_portal_userlabs", "User labs.", lambda: value(len(index.labs())))
    yield gauge("vkprovider_portal_lablets", "Lablets that are not user labs.", lambda: value(len(lablets)))
    yield gauge("vkprovider_portal_warm", "Warm labs.", lambda: value(len(index.warm())))
    yield gauge("vkprovider_portal_waiting", "User labs that wait for their start.", lambda: value(index.waiting))
    yield gauge(
        "vkprovider_portal_locks", "Users whose lab this replica has in hand.", lambda: value(len(locks.held()))
    )
    yield gauge("vkprovider_portal_consoles", "Consoles that this replica passes on.", lambda: value(len(consoles)))
    yield counter(
        "vkprovider_portal_ssh_refused_total",
        "Connections by ssh that were refused before anybody was known.",
        lambda: value(door.refused_total),
    )
    yield gauge("vkprovider_portal_listeners", "Streams of this replica.", lambda: value(index.listeners_total))
    yield counter("vkprovider_portal_steps_total", "Steps for user labs.", lambda: by_name(labs.steps_total), "step")


async def main(settings: PortalProcessSettings) -> None:
    """Run one replica until SIGTERM or SIGINT.

    Raises:
        InputError: `SettingInvalid`: the page cannot listen, or a file of the settings cannot be used.
    """
    of_portal = settings.portal
    if of_portal.callers == "token" and of_portal.cookie_key is None:
        _log.warning("nobody can log in with a browser", why="VKPROVIDER_PORTAL_COOKIE_KEY is not set")

    def build(ctx: Context, _: AsyncExitStack) -> Process:
        return portal_process(ctx, settings).process

    page, about = page_of(settings), {"prefix": of_portal.namespace_prefix, "dialect": of_portal.dialect}
    await run(PORTAL, settings, page, build, **about)


def page_of(settings: PortalProcessSettings) -> Page:
    """Return the page of a replica; nothing listens before `Page.start`.

    Raises:
        InputError: `SettingInvalid`: the certificate cannot be used.
    """
    own = ["localhost", "127.0.0.1", f"{PORTAL.name}.{settings.replica.namespace}.svc"]
    return Page(
        settings.http,
        settings.replica.instance_id,
        tls=page_tls(settings.http, own),
        starting={},
        headers=settings.portal.headers,
    )
