"""The part of administration: what a replica is, what it counts, and a pass that a person asks for."""

from collections.abc import Sequence
from typing import Any

from vkprovider import __version__
from vkprovider.labs.controllers.worker.reconciler import Workers
from vkprovider.labs.http.admin import answering
from vkprovider.labs.wiring.base import Base
from vkprovider.labs.wiring.parts.changes import trigger
from vkprovider.platform.runtime.parts import Part, Route, stats


def admin(base: Base, workers: Workers, parts: Sequence[Part]) -> Part:
    """Build the part.

    Args:
        base: What all parts share.
        workers: The reconciler of workers, which observes them in a pass.
        parts: All other parts, whose counts it reports.
    """
    ctx = base.ctx
    info = {
        "name": "vkprovider",
        "version": __version__,
        "instance_id": ctx.replica,
        "namespace": ctx.namespace,
        "installation": ctx.installation,
    }

    def told() -> dict[str, Any]:
        return stats(ctx, base.membership, parts)

    def triggered() -> dict[str, Any]:
        return {"triggered": True, **trigger(base, workers)}

    return Part(
        routes=(
            Route("GET", "/info", answering(base.access, lambda: info)),
            Route("GET", "/admin/stats", answering(base.access, told)),
            Route("POST", "/admin/trigger-reconcile", answering(base.access, triggered, status=202)),
        )
    )
