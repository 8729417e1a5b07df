"""The page for probes and Prometheus: /health, /ready, /info, /metrics."""

from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry

from vkprovider import __version__
from vkprovider.app.metrics import exposition

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Page:
    """Serves what the replica says of itself."""

    def __init__(self, replica: "Any", registry: CollectorRegistry) -> None:
        self._replica = replica
        self._registry = registry
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Begin to listen.

        Raises:
            OSError: The port is taken.
        """
        app = web.Application()
        app.router.add_get("/health", self._health)
        app.router.add_get("/ready", self._ready)
        app.router.add_get("/info", self._info)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, _: web.Request) -> web.Response:
        replica = self._replica
        return web.json_response(
            {
                "status": "fenced" if replica.ownership.is_fenced else "ok",
                "is_leader": bool(replica.ownership.epochs),
                "instance_id": replica.ctx.replica,
                "last_reconciliation": datetime.now(UTC).isoformat(),
                "instances_managed": len(replica.lablets.items),
                "instances_running": sum(bool(lablet.ready_since) for lablet in replica.lablets.items.values()),
                "owned_nodes": sorted(replica.ownership.epochs),
            }
        )

    async def _ready(self, _: web.Request) -> web.Response:
        missing = self._replica.not_ready()
        return web.json_response({"ready": not missing, "missing": missing}, status=503 if missing else 200)

    async def _info(self, _: web.Request) -> web.Response:
        ctx = self._replica.ctx
        return web.json_response(
            {"name": "vkprovider", "version": __version__, "instance_id": ctx.replica, "namespace": ctx.namespace}
        )

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=await exposition(self._registry), headers={"Content-Type": CONTENT_TYPE})
