"""The end of a replica: its Nodes are handed over, so that the others need not wait for its silence."""

import asyncio
from typing import Final

import structlog

from vkprovider.app.kubelet import Kubelet
from vkprovider.controllers.console.open import Opened
from vkprovider.controllers.worker.reconciler import Workers
from vkprovider.runtime.context import Context
from vkprovider.runtime.ownership import Ownership

_log: Final = structlog.get_logger(__name__)
_HAND_OVER_S: Final = 8.0
_LEAVE_S: Final = 2.0
_CLOSE_S: Final = 2.0
"""All of them, and the steps in hand before, within the default grace period of a Pod, with time to spare."""


async def hand_over(ctx: Context, workers: Workers, ownership: Ownership, opened: Opened, kubelet: Kubelet) -> None:
    """End sessions, write what is left, release the Nodes, and leave the other replicas."""
    opened.end()
    try:
        async with asyncio.timeout(_HAND_OVER_S):
            await workers.close()
            await ctx.events.flush(1.0)
            await ownership.release_all()
    except TimeoutError:
        _log.warning("the API server did not answer in time: nodes are not handed over", replica=ctx.replica)
    try:
        async with asyncio.timeout(_LEAVE_S):
            await ownership.membership.leave()
    except TimeoutError:
        _log.warning("the API server did not answer in time: membership not ended", replica=ctx.replica)
    try:
        async with asyncio.timeout(_CLOSE_S):
            await kubelet.close()
    except TimeoutError:
        _log.warning("sessions of the kubelet API are cut off", replica=ctx.replica)
