"""What a process says of itself: `GET /health` for everyone, and `GET /admin/stats`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.parts import Part, owned, works


def starting(replica: str) -> dict[str, Any]:
    """Return the health of a process that has no parts yet: the API server has not answered."""
    return {"status": "starting", "is_leader": False, "instance_id": replica, "last_reconciliation": None}


def health(ctx: Context, membership: Membership, parts: Sequence[Part]) -> dict[str, Any]:
    """Return the health of a process."""
    ended = max((work.queue.ended_unix for work in works(parts)), default=0.0)
    found: dict[str, Any] = {
        "status": "fenced" if membership.is_fenced else "healthy",
        "is_leader": any(ownership.epochs for ownership in owned(parts)),
        "instance_id": ctx.replica,
        "last_reconciliation": datetime.fromtimestamp(ended, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if ended else None,
    }
    for part in parts:
        found |= part.health()
    return found


def stats(ctx: Context, membership: Membership, parts: Sequence[Part]) -> dict[str, Any]:
    """Return the health and the counts of a process."""
    found = health(ctx, membership, parts)
    for part in parts:
        found |= part.stats()
    queues = [work.queue for work in works(parts)]
    return {
        **found,
        "queues": {
            queue.name: {"waiting": queue.depth, "runs": queue.runs_total, "failures": queue.failures_total}
            for queue in queues
        },
        "api_requests": ctx.kube.requests_total,
        "api_errors": dict(ctx.kube.errors),
    }
