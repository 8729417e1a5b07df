"""What the kubelet API costs while nobody uses it."""

import asyncio
import os
import resource
from typing import Final

from aiohttp import web

from bench.figures import Figures
from bench.outside import resident_now_mb
from vkprovider.labs.kubelet.listeners import NodeListeners
from vkprovider.labs.kubelet.tls import ServingTls
from vkprovider.labs.settings.cluster import KubeletSettings
from vkprovider.platform.http.tls import self_signed

NODES: Final = 2000


async def nodes() -> Figures:
    """Measure the listeners of Nodes that nobody asks, in this process."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * NODES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    listeners = NodeListeners(
        KubeletSettings(host="127.0.0.1", ports="0"),
        web.Application(),
        ServingTls(self_signed(["127.0.0.1"])),
        "127.0.0.1",
    )
    own = os.getpid()
    for number in range(50):
        await listeners.open(f"warm-{number}")
    tasks, before_mb = len(asyncio.all_tasks()), resident_now_mb(own)
    for number in range(NODES):
        await listeners.open(f"w-{number}")
    grown_kb, more = (resident_now_mb(own) - before_mb) * 1000 / NODES, len(asyncio.all_tasks()) - tasks
    await listeners.close()
    return {"memory of a node without sessions": (grown_kb, "KB"), "tasks of 2,000 nodes": (more, "tasks")}
