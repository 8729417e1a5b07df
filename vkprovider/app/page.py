"""The HTTP page of a replica: probes and metrics for everyone, the rest by RBAC; events and agents have secrets.

It listens before the API server has answered, so that no liveness probe restarts a replica for an outage elsewhere.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from aiohttp import web

from vkprovider import __version__
from vkprovider.api.errors import InputError
from vkprovider.app.metrics.exposition import exposition, registry_of
from vkprovider.app.replica.run import Replica
from vkprovider.app.settings import Settings
from vkprovider.app.tunnels import agent_tokens
from vkprovider.serving.access import Access
from vkprovider.serving.answers import Refused, Starting
from vkprovider.serving.connections import listen, runner_of
from vkprovider.web.admin import Admin
from vkprovider.web.agents import Agents
from vkprovider.web.downloads import Downloads
from vkprovider.web.events import Receiver
from vkprovider.web.logins import Logins
from vkprovider.web.tls import ServingCertificate

_log: Final = structlog.get_logger(__name__)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_FINISH_S: Final = 3.0
"""How long requests in hand may go on when the process ends, and again after they were cancelled."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_SERVED: Final = (
    ("GET", "/metrics"),
    ("GET", "/info"),
    ("GET", "/admin/stats"),
    ("POST", "/admin/trigger-reconcile"),
    ("GET", "/labs/{id}/download"),
    ("GET", "/labs/{id}/login"),
    ("POST", "/events"),
    ("GET", "/tunnel"),
)
"""What needs a replica; until there is one the answer is 503 `Starting`."""


class Page:
    """Serves what the replica reports, and receives requests and events for it.

    Attributes:
        port: That it listens on; 0 before `start`.
    """

    def __init__(self, settings: Settings) -> None:
        """Prepare to serve; nothing listens before `start`.

        Raises:
            InputError: `SettingInvalid`: the certificate cannot be used.
        """
        self._settings = settings
        self._tls = _certificate(settings)
        self._agent_tokens = agent_tokens(settings.http_tunnel)
        self._replica: Replica | None = None
        self._handlers: Mapping[str, Handler] = {}
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self.port = 0

    async def start(self) -> None:
        """Begin to listen.

        Raises:
            OSError: The port is taken.
        """
        app = web.Application()
        app.router.add_get("/health", self._health)
        app.router.add_get("/ready", self._ready)
        for method, path in _SERVED:
            app.router.add_route(method, path, self._served(path))
        self._runner = runner_of(app, shutdown_s=_FINISH_S)
        await self._runner.setup()
        self._listener = await listen(self._runner, self._settings.http, self._tls.context if self._tls else None)
        self.port = self._listener.sockets[0].getsockname()[1]

    def serve(self, replica: Replica) -> None:
        """Answer for a replica from now on."""
        access, registry = Access(replica.ctx.kube, audiences=self._settings.http.token_audiences), registry_of(replica)
        admin = Admin(
            access,
            info=lambda: _info(replica),
            stats=lambda: _stats(replica),
            trigger=lambda: _trigger(replica),
        )

        async def metrics(_: web.Request) -> web.Response:
            return web.Response(body=await exposition(registry), headers={"Content-Type": CONTENT_TYPE})

        async def created(namespace: str) -> str:
            found = await replica.ctx.api.namespaces.get(namespace)
            return found.metadata.creation_timestamp if found is not None else ""

        login_url = replica.sessions.login_url if replica.deployments is not None else None
        receiver = Receiver(replica.inbox.accept, self._settings.http.events_secrets, counts=replica.session_events)
        self._handlers = {
            "/metrics": metrics,
            "/info": admin.info,
            "/admin/stats": admin.stats,
            "/admin/trigger-reconcile": admin.trigger,
            "/labs/{id}/download": Downloads(access, replica.exports, replica.archive, created).handle,
            "/labs/{id}/login": Logins(access, replica.exports, login_url).handle,
            "/events": receiver.handle,
            "/tunnel": Agents(self._agent_tokens, replica.listening).handle,
        }
        self._replica = replica

    async def stop(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def _served(self, path: str) -> Handler:
        """Return the handler that passes a request on to that of the replica."""

        async def handle(request: web.Request) -> web.StreamResponse:
            handler, replica = self._handlers.get(path), self._replica
            if handler is None or replica is None:
                raise _too_early()
            try:
                return await handler(request)
            except Refused as refusal:
                replica.http_refusals[refusal.word] += 1
                raise

        return handle

    async def _health(self, _: web.Request) -> web.Response:
        """Answer 200 as long as the process does: a fault outside of it does not call for a restart."""
        body = _health(self._replica) if self._replica is not None else _starting(self._settings)
        return web.json_response(body)

    async def _ready(self, _: web.Request) -> web.Response:
        missing = self._replica.unready() if self._replica is not None else ["api-server"]
        return web.json_response({"ready": not missing, "missing": missing}, status=503 if missing else 200)


def _certificate(settings: Settings) -> ServingCertificate | None:
    """Return the certificate of the page; None if it is plain HTTP.

    Raises:
        InputError: `SettingInvalid`: it cannot be used.
    """
    http = settings.http
    own = ["localhost", "127.0.0.1", f"vkprovider.{settings.replica.namespace}.svc", settings.kubelet.internal_ip]
    hosts = [host for host in own if host] if http.tls_self_signed else []
    client_ca = settings.http_tunnel.client_ca_file
    if http.tls_files or hosts:
        return ServingCertificate(http.tls_files, hosts=hosts, client_ca=client_ca)
    if client_ca is not None:
        text = (
            "VKPROVIDER_TUNNEL_HTTP_CLIENT_CA_FILE is set, but the page serves plain HTTP: see VKPROVIDER_HTTP_TLS_CERT"
        )
        raise InputError("SettingInvalid", text)
    return None


def _too_early() -> Refused:
    return Starting("the API server has not answered yet")


def _starting(settings: Settings) -> dict[str, Any]:
    return {
        "status": "starting",
        "is_leader": False,
        "instance_id": settings.replica.instance_id,
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
    counters, kube = replica.counters, replica.ctx.kube
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
        "fenced": replica.ownership.fenced_total,
        "takeovers": replica.ownership.takeovers_total,
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
    """Queue everything that this replica acts for."""
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
