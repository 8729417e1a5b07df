"""The page of a replica: probes and metrics for anybody, events for who knows the secret, the rest as RBAC says.

It listens before the API server has answered, so that nobody ends a replica for an outage that is not its own.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from vkprovider import __version__
from vkprovider.app.metrics import exposition, registry_of
from vkprovider.app.run import Replica
from vkprovider.app.settings import Settings
from vkprovider.web.access import Access
from vkprovider.web.admin import Admin
from vkprovider.web.answers import Refused
from vkprovider.web.downloads import Downloads
from vkprovider.web.events import Receiver
from vkprovider.web.logins import Logins
from vkprovider.web.tls import ServingCertificate

_log: Final = structlog.get_logger(__name__)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Page:
    """Serves what the replica says of itself, and takes what is said to it."""

    def __init__(self, settings: Settings) -> None:
        """Take in how to serve; nothing listens before `start`.

        Raises:
            InputError: `SettingInvalid`: the certificate cannot be used.
        """
        self._settings = settings
        cert, key = settings.http_tls_cert, settings.http_tls_key
        self._tls = ServingCertificate(cert, key) if cert and key else None
        self._replica: Replica | None = None
        self._registry: CollectorRegistry | None = None
        self._admin: Admin | None = None
        self._downloads: Downloads | None = None
        self._logins: Logins | None = None
        self._receiver: Receiver | None = None
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            OSError: The port is taken.
        """
        app = web.Application()
        app.router.add_get("/health", self._health)
        app.router.add_get("/ready", self._ready)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/info", self._info)
        app.router.add_get("/admin/stats", self._stats)
        app.router.add_post("/admin/trigger-reconcile", self._trigger)
        app.router.add_get("/labs/{id}/download", self._download)
        app.router.add_get("/labs/{id}/login", self._login)
        app.router.add_post("/events", self._events)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        context = self._tls.context if self._tls is not None else None
        site = web.TCPSite(self._runner, self._settings.http_host, self._settings.http_port, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    def serve(self, replica: Replica) -> None:
        """Answer for a replica from now on."""
        access = Access(replica.ctx.kube)
        self._registry = registry_of(replica)
        self._admin = Admin(
            access,
            info=lambda: _info(replica),
            stats=lambda: _stats(replica),
            trigger=lambda: _trigger(replica),
        )
        self._downloads = Downloads(access, replica.exports, replica.archive)
        self._logins = Logins(access, replica.exports, replica.login_url)
        self._receiver = Receiver(replica.inbox.accept, self._settings.events_secrets, counts=replica.session_events)
        self._replica = replica

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    # --------------------------------------------------------------------------------------------- probes

    async def _health(self, _: web.Request) -> web.Response:
        """Say that the process answers; whatever is wrong outside of it, this is no reason to end it."""
        body = _health(self._replica) if self._replica is not None else _starting(self._settings)
        return web.json_response(body)

    async def _ready(self, _: web.Request) -> web.Response:
        missing = self._replica.unready() if self._replica is not None else ["api-server"]
        return web.json_response({"ready": not missing, "missing": missing}, status=503 if missing else 200)

    async def _metrics(self, _: web.Request) -> web.Response:
        if self._registry is None:
            raise _too_early()
        return web.Response(body=await exposition(self._registry), headers={"Content-Type": CONTENT_TYPE})

    # --------------------------------------------------------------------------------------------- the rest

    async def _info(self, request: web.Request) -> web.Response:
        return await self._administered().info(request)

    async def _stats(self, request: web.Request) -> web.Response:
        return await self._administered().stats(request)

    async def _trigger(self, request: web.Request) -> web.Response:
        return await self._administered().trigger(request)

    def _administered(self) -> Admin:
        if self._admin is None:
            raise _too_early()
        return self._admin

    async def _download(self, request: web.Request) -> web.Response:
        if self._downloads is None:
            raise _too_early()
        return await self._downloads.handle(request)

    async def _login(self, request: web.Request) -> web.Response:
        if self._logins is None:
            raise _too_early()
        return await self._logins.handle(request)

    async def _events(self, request: web.Request) -> web.Response:
        if self._receiver is None:
            raise _too_early()
        return await self._receiver.handle(request)


def _too_early() -> Refused:
    return Refused(503, "Starting", "the API server has not answered yet", {"Retry-After": "5"})


def _starting(settings: Settings) -> dict[str, Any]:
    return {
        "status": "starting",
        "is_leader": False,
        "instance_id": settings.instance_id,
        "last_reconciliation": None,
        "instances_managed": 0,
        "instances_running": 0,
        "owned_nodes": [],
    }


def _health(replica: Replica) -> dict[str, Any]:
    ours = [lablet for lablet in replica.index.items.values() if lablet.worker in replica.fleet.items]
    ended = max((queue.ended_unix for queue in replica.queues.measured.values()), default=0.0)
    return {
        "status": "fenced" if replica.ownership.is_fenced else "healthy",
        "is_leader": bool(replica.ownership.epochs),
        "instance_id": replica.ctx.replica,
        "last_reconciliation": datetime.fromtimestamp(ended, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if ended else None,
        "instances_managed": len(ours),
        "instances_running": sum(bool(lablet.ready_since) for lablet in ours),
        "owned_nodes": sorted(replica.ownership.epochs),
    }


def _info(replica: Replica) -> dict[str, Any]:
    ctx = replica.ctx
    return {
        "name": "vkprovider",
        "version": __version__,
        "instance_id": ctx.replica,
        "namespace": ctx.namespace,
        "installation": ctx.installation,
    }


def _stats(replica: Replica) -> dict[str, Any]:
    counters, kube = replica.ctx.counters, replica.ctx.kube
    workers = replica.fleet.items
    states = Counter(
        str(lablet.state or "unreported") for lablet in replica.index.items.values() if lablet.worker in workers
    )
    return {
        **_health(replica),
        "lablets_by_state": dict(states),
        "claims": sum(len(worker.claims.claims) for worker in workers.values()),
        "steps": dict(counters.steps),
        "step_failures": dict(counters.step_failures),
        "transitions": {f"{old or 'none'} -> {new}": count for (old, new), count in counters.transitions.items()},
        "transitions_refused": counters.transitions_refused,
        "status_writes": counters.status_writes,
        "claim_writes": counters.claim_writes,
        "fenced": counters.fenced,
        "takeovers": counters.takeovers,
        "session_events": dict(replica.session_events),
        "sessions_in_inbox": len(replica.inbox.rows),
        "queues": {
            name: {"waiting": queue.depth, "runs": queue.runs_total, "failures": queue.failures_total}
            for name, queue in replica.queues.measured.items()
        },
        "api_requests": kube.requests_total,
        "api_errors": dict(kube.errors),
    }


def _trigger(replica: Replica) -> Mapping[str, int]:
    """Have everything looked at now that this replica acts for."""
    workers, queues = replica.fleet.items, replica.queues
    found = {
        "workers": [*workers],
        "lablets": [uid for uid, lablet in replica.index.items.items() if lablet.worker in workers],
        "definitions": [*replica.objects.definitions.items],
    }
    for name, keys in found.items():
        for key in keys:
            queues.measured[name].add(key)
    for name in found["workers"]:
        replica.workers.observe_soon(name)
    _log.info("a pass was asked for", **{name: len(keys) for name, keys in found.items()})
    return {name: len(keys) for name, keys in found.items()}
