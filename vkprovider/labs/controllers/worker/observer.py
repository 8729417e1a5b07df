"""One bulk observation of a worker for all of its lablets: its labs, the states of their devices, and its address.

While a lablet is in transition, the worker is observed every second with two requests, however many lablets there are;
otherwise every few seconds. A worker that an agent watches is observed when the agent reports a change, and else only
now and then, in case one was missed.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

import structlog

from vkprovider.lablet.models.worker import CMLWorkerSpec
from vkprovider.lablet.observations import ACTIVE, DeviceFact, WorkerUsage
from vkprovider.lablet.reasons import WorkerReason
from vkprovider.labs.controllers.worker.worker import FOREVER, NEVER, Worker
from vkprovider.labs.pure.claims.claim import Claim
from vkprovider.labs.pure.topology.resources import Resources, boot_timeouts, lacking
from vkprovider.labs.pure.worker.capacity import Stats, shown_images
from vkprovider.labs.pure.worker.identity import unseen_labs
from vkprovider.labs.pure.worker.node import address_of, is_ip, unhealthy
from vkprovider.labs.settings.cluster import WorkerSettings
from vkprovider.platform.errors import Fenced, InputError, OutsideError, TlsFailed, Unauthorized, Unavailable, Withheld
from vkprovider.platform.messages import Fault
from vkprovider.platform.reasons import Reason
from vkprovider.platform.runtime.context import Context

_log: Final = structlog.get_logger(__name__)
_VERSION_EVERY_S: Final = 60.0
_STATS_S_MAX: Final = 5.0
_DEFINITIONS_EVERY_S: Final = 600.0
"""People add node definitions by hand, and rarely."""
_IMAGES_EVERY_S: Final = 300.0
_RESOLVE_EVERY_S: Final = 60.0
_RESOLVE_S_MAX: Final = 2.0
_PORTS_LET_OUT: Final = frozenset({443, 6443, 8443, 8883, 9000})
_POLICY_FILE: Final = "manifests/deployment/networkpolicy.yaml"
"""The TCP ports to which the shipped NetworkPolicy lets the provider out, and where it stands."""


class Observer:
    """Observes workers; the only writer of `Worker.seen`, `awaiting` and `look_at`."""

    def __init__(self, ctx: Context, settings: WorkerSettings, need: Callable[[str], Resources | None]) -> None:
        """Create the observer.

        Args:
            ctx: The replica.
            settings: How often workers are asked.
            need: Returns what a lablet of a content needs, by digest.
        """
        self._ctx = ctx
        self._settings = settings
        self._need = need
        self._addresses: dict[str, tuple[str, float]] = {}

    def await_look(self, worker: Worker, uid: str, newer_than: float) -> float | None:
        """Note that a worker is to be observed soon, and its lablet queued after it, if a Pod is named.

        Args:
            worker: The worker.
            uid: The Pod's; "" for none.
            newer_than: If what is known of the worker's devices is newer than this, only a change is awaited: an agent
                that watches the worker reports it.

        Returns:
            After how many seconds the worker may be observed; None if its turn then is queued already.
        """
        first, now, seen = not worker.awaiting, self._ctx.now(), worker.seen
        worker.awaiting.add(uid)
        if self._is_watched(worker):
            settings = self._settings  # a report, which usually comes first, makes a look for what was done needless
            pause_s = settings.watched_s if seen.devices_at > newer_than else 2 * settings.transition_s
            worker.look_at = min(worker.look_at, now + pause_s)
            return max(0.0, worker.look_at - now)
        return max(0.0, seen.devices_at + self._settings.transition_s - now) if first else None

    def look_now(self, worker: Worker) -> None:
        """Note that a worker is to be observed at its next turn."""
        worker.awaiting.add("")
        worker.look_at = self._ctx.now()

    def is_due(self, worker: Worker) -> bool:
        """Return whether a worker is to be observed now."""
        now, seen, settings = self._ctx.now(), worker.seen, self._settings
        if self._is_watched(worker):
            return now >= worker.look_at or now - seen.labs_at >= settings.resync_s
        return bool(worker.awaiting or seen.silent_because) or now - seen.labs_at >= 0.9 * settings.probe_s

    def next_s(self, worker: Worker) -> float:
        """Return when to come back: a look that is due sooner must not wait for the next probe."""
        return min(self._settings.probe_s, max(0.0, worker.look_at - self._ctx.now()))

    def _is_watched(self, worker: Worker) -> bool:
        """Return whether an agent reports what changes; not while the worker is in doubt, which probes are to end."""
        seen = worker.seen
        return seen.reached and not seen.failures and not seen.silent_because and worker.connection.is_watched()

    async def observe(self, worker: Worker) -> list[str]:
        """Ask a worker what it has, as often as its lablets need it; note also that it does not answer.

        Returns:
            UIDs of the Pods about whose labs something is new.
        """
        ctx, now, seen = self._ctx, self._ctx.now(), worker.seen
        awaiting, worker.awaiting, worker.look_at = worker.awaiting, set(), FOREVER
        full = awaiting or now - seen.devices_at >= self._settings.refresh_s
        before, silent_before = seen.devices, seen.silent_because
        try:
            if now - seen.version_at >= _VERSION_EVERY_S:
                seen.version = await worker.labs.version()
                seen.version_at = now
            await self._list_labs(worker)
            if full:
                devices_at = ctx.now()
                seen.devices = await worker.labs.list_all_devices()
                seen.devices_at = devices_at
            await worker.lab_index.scan(seen.lab_ids, worker.claims.claims)
        except Fenced:
            return []
        except OutsideError as error:
            worker.awaiting |= awaiting  # they continue to wait
            awaiting = set()
            self._failed(worker, error)
        except InputError as fault:
            worker.awaiting |= awaiting
            awaiting = set()
            seen.failures, seen.reached, seen.fault = 0, True, unhealthy(fault.reason, fault.message)
            seen.silent_because = _for_pods(worker, fault.reason)
        else:
            seen.failures, seen.reached, seen.fault, seen.silent_because = 0, True, None, ""
            if not worker.lab_index.examined:  # lablets wait until all labs were looked at, a few each time
                worker.awaiting.add("")
                worker.look_at = ctx.now() + self._settings.transition_s
        seen.ip = await self._resolve(address_of(worker.spec))
        if seen.silent_because != silent_before:
            return list(worker.claims.claims)
        if worker.labs.immediate:
            return []  # a turn that acts knows the effect at once
        return list({*_news(worker, before), *awaiting})

    async def _list_labs(self, worker: Worker) -> None:
        """Note the labs of a worker, with when and by which access they were asked for.

        Raises:
            InputError: `LabsNotSeen`: the list does not say whether the labs of the claims are gone.
            OutsideError: They could not be listed.
        """
        while True:
            user, labs_at = worker.labs.user(), self._ctx.now()
            lab_ids = frozenset(await worker.labs.list_lab_ids())
            if user in {"", worker.labs.user()}:  # else the login has changed meanwhile
                break
        seen, access = worker.seen, worker.access
        claimed = {claim.lab_id for claim in worker.claims.claims.values() if claim.lab_id}
        before = claimed & seen.lab_ids or claimed  # a lab that was just imported says nothing of those before
        if unseen := unseen_labs(worker.name, seen.access, access, before, lab_ids):
            raise InputError(WorkerReason.LABS_NOT_SEEN, unseen)
        if worker.claims.complete or not access.differs(seen.access):
            seen.lab_ids, seen.labs_at, seen.access = lab_ids, labs_at, access
        else:  # nobody knows yet which labs to look for, so that the list says of none that it is gone
            seen.lab_ids, seen.labs_at = lab_ids, NEVER

    def refuse(self, worker: Worker, fault: InputError) -> bool:
        """Note that a worker's CMLWorker was made unusable; return whether that is news."""
        before = worker.seen.silent_because
        worker.seen.fault = unhealthy(fault.reason, fault.message)
        worker.seen.silent_because = f"worker {worker.name}: {fault.reason}: {fault.message}"
        return worker.seen.silent_because != before

    def reconnected(self, worker: Worker, before: CMLWorkerSpec) -> None:
        """Keep what is known of the labs of a worker whose connection changed, and ask for everything again.

        Only another worker, by its spec of before, is asked for its image definitions sooner than else.
        """
        seen = worker.seen
        seen.version_at = seen.usage_at = seen.labs_at = seen.devices_at = seen.definitions_at = NEVER
        seen.usage, seen.host = None, ""
        if (before.cml_url, before.tunnel) != (worker.spec.cml_url, worker.spec.tunnel):
            seen.images, seen.images_at = None, NEVER
        seen.login_at, seen.login_fault = NEVER, None

    def _failed(self, worker: Worker, error: OutsideError) -> None:
        seen = worker.seen
        seen.failures += 1
        seen.version_at = NEVER  # it may be upgraded when it comes back
        if (away := worker.connection.away()) is not None:
            seen.fault, seen.reached = away, False
            seen.silent_because = f"worker {worker.name}: {away.reason}: {away.message}"
            return
        if isinstance(error, Unauthorized):
            reason = _refused(error)
        elif isinstance(error, TlsFailed):
            reason = WorkerReason.CERTIFICATE_INVALID
        elif isinstance(error, Unavailable):
            reason = WorkerReason.WORKER_UNREACHABLE
            if seen.reached and seen.failures < self._settings.probe_failures_max:
                return
        else:
            reason = WorkerReason.WORKER_ERROR
        seen.fault = unhealthy(reason, error.message + _hint(worker.spec, error))
        refused = isinstance(error, Unauthorized)
        seen.silent_because = _for_pods(worker, reason) if refused else f"worker {worker.name}: {error.message}"
        seen.reached = False

    async def check_login(self, worker: Worker) -> None:
        """Log in with credentials that have changed since the login, and note if that fails; now and then.

        Labs go on with the present login, so a Secret that is wrong makes nothing not Ready before its time.
        """
        now, seen = self._ctx.now(), worker.seen
        if not seen.reached or now - seen.login_at < self._settings.login_check_s:
            return
        seen.login_at = now
        try:
            await worker.labs.check_login()
        except Fenced:
            return
        except Unauthorized as error:
            seen.login_fault = Fault(_refused(error), error.message)
        except OutsideError as error:  # nothing is known of the credentials then
            _log.info("the worker's credentials could not be tried", worker=worker.name, error=str(error))
        else:
            seen.login_fault = None
            if worker.access.differs(seen.access):
                self.look_now(worker)

    async def ask_more(self, worker: Worker) -> None:
        """Ask for more than labs, as far as the CMLWorker says so."""
        await self.ask_stats(worker)
        await self.ask_definitions(worker)
        await self.ask_images(worker)

    async def ask_stats(self, worker: Worker) -> None:
        """Ask how much is used, now and then, and not for long: lablets wait for what else was observed."""
        settings, now, seen, stats = self._settings, self._ctx.now(), worker.seen, worker.connection.stats
        every_s = settings.reconcile_s if seen.usage is not None else min(settings.reconcile_s, settings.refresh_s)
        if stats is None or seen.silent_because or now - seen.usage_at < every_s:
            return
        seen.usage_at = now
        try:
            async with asyncio.timeout(_STATS_S_MAX):
                usage = await stats.usage()
                seen.usage, seen.host = self._amounts(worker, usage), usage.host
        except Fenced:
            return
        except (OutsideError, TimeoutError) as error:
            _log.warning("worker sends no statistics", worker=worker.name, error=str(error) or f"{_STATS_S_MAX:g} s")

    async def ask_definitions(self, worker: Worker) -> None:
        """Ask for CML's own node definitions, if the worker's system API may be asked, and rarely."""
        now, seen, stats = self._ctx.now(), worker.seen, worker.connection.stats
        if stats is None or seen.silent_because or now - seen.definitions_at < _DEFINITIONS_EVERY_S:
            return
        seen.definitions_at = now
        try:
            async with asyncio.timeout(_STATS_S_MAX):
                found = await stats.definitions()
            seen.definitions, seen.boot_timeouts = lacking(found), boot_timeouts(found)
        except Fenced:
            return
        except (OutsideError, TimeoutError) as error:
            why = str(error) or f"{_STATS_S_MAX:g} s"
            _log.warning("worker sends no node definitions", worker=worker.name, error=why)

    async def ask_images(self, worker: Worker) -> None:
        """Ask for CML's image definitions, if the CMLWorker says so, and rarely.

        Without an answer the last list stays, also that on the Node, which this replica may not have written itself.
        """
        now, seen, images = self._ctx.now(), worker.seen, worker.connection.images
        if images is None or seen.silent_because or seen.failures or now - seen.images_at < _IMAGES_EVERY_S:
            return
        seen.images_at = now
        try:
            async with asyncio.timeout(_STATS_S_MAX):
                ids = await images.ids()
        except Fenced:
            return
        except (OutsideError, TimeoutError) as error:
            why = str(error) or f"{_STATS_S_MAX:g} s"
            _log.warning("worker sends no image definitions", worker=worker.name, error=why)
            return
        shown = shown_images(ids)
        if shown is None:
            _log.warning("the Node shows no image definitions: there are too many", worker=worker.name, count=len(ids))
        seen.images = shown or ()

    def _amounts(self, worker: Worker, usage: WorkerUsage) -> Stats:
        """Return a worker's capacity and the usage by foreign labs, from CML's current figures."""
        ours = Resources()
        for claim in worker.claims.claims.values():
            if _is_on(worker, claim) and (need := self._need(claim.digest)) is not None:
                ours = ours.plus(need)
        used = Resources(
            (usage.cpus_allocated or 0) * 1000, usage.memory_allocated_bytes or 0, usage.licences_started or 0
        )
        return Stats(usage.cpus, usage.memory_bytes, usage.licences, used.minus(ours))

    async def _resolve(self, address: str) -> str:
        """Resolve an address; one that cannot be resolved now keeps its last answer."""
        if is_ip(address) or not address:
            return address
        known, at = self._addresses.get(address, ("", NEVER))
        now = self._ctx.now()
        if now - at < _RESOLVE_EVERY_S:
            return known
        try:
            async with asyncio.timeout(_RESOLVE_S_MAX):
                found = await asyncio.get_running_loop().getaddrinfo(address, None, type=socket.SOCK_STREAM)
            ips = sorted({str(entry[4][0]) for entry in found})
            known = known if known in ips else ips[0]
        except (OSError, TimeoutError, UnicodeError) as error:
            _log.warning("worker's address cannot be resolved", address=address, error=str(error))
        self._addresses[address] = (known, now)
        return known


def _news(worker: Worker, before: Mapping[str, tuple[DeviceFact, ...]]) -> Iterator[str]:
    """Yield the Pods whose labs have changed."""
    for uid, claim in worker.claims.claims.items():
        if (lab_id := claim.lab_id) and (
            worker.seen.devices.get(lab_id) != before.get(lab_id) or lab_id not in worker.seen.lab_ids
        ):
            yield uid


def _is_on(worker: Worker, claim: Claim) -> bool:
    """Return whether a lab takes room at CML; one that was paused, or ends, does as long as a device runs."""
    if not (claim.stopped_at or claim.closing_reason):
        return claim.started_at > 0
    return any(device.state in ACTIVE for device in worker.seen.devices.get(claim.lab_id, ()))


def _for_pods(worker: Worker, reason: Reason) -> str:
    """Return why a worker is silent, for its lablets: who reads Pods need not learn CML's account, nor our Secrets."""
    return f"worker {worker.name}: {reason}; its CMLWorker says more"


def _refused(error: Unauthorized) -> Reason:
    """Return the reason of a login that was refused, or not tried."""
    return WorkerReason.SECRET_NOT_ALLOWED if isinstance(error, Withheld) else WorkerReason.CREDENTIALS_INVALID


def _hint(spec: CMLWorkerSpec, error: OutsideError) -> str:
    """Return a hint on another mistake that a url which cannot be reached may have."""
    if not isinstance(error, Unavailable) or spec.tunnel != "direct":
        return ""
    if spec.cml_url.startswith("http://"):
        return "; if CML expects https there, as it does by default, write https:// in spec.url"
    if (port := urlsplit(spec.cml_url).port) is None:
        return f"; if CML listens on another port, write it: {spec.cml_url.rstrip('/')}:PORT"
    if port in _PORTS_LET_OUT:
        return ""
    return f"; in a cluster, its NetworkPolicy must let the provider out to port {port} ({_POLICY_FILE})"
