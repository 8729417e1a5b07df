"""What many open `kubectl logs -f` cost to which nothing is written."""

import asyncio
import json
import ssl
from contextlib import AsyncExitStack
from typing import Any, Final

import aiohttp

from bench.figures import Figures
from bench.outside import cpu_s, resident_now_mb
from tests.support.topologies import definition, pod
from tests.support.waiting import until
from vkpsandbox import Sandbox

LABLETS: Final = 10
FOLLOWERS: Final = 200
SETTLE_S: Final = 15.0
MEASURE_S: Final = 60.0


async def followers() -> Figures:
    """Measure a replica whose logs are followed: half of them of lablets, half of devices."""
    sandbox = await asyncio.to_thread(
        Sandbox.up, "bench-kubelet", workers=1, worker_args=[["--boot-seconds=0.2-0.5"]], tied=True, on_progress=print
    )
    try:
        return await _follow(sandbox)
    finally:
        await asyncio.to_thread(sandbox.down)


async def _follow(sandbox: Sandbox) -> Figures:
    names = [f"quiet-{number}" for number in range(LABLETS)]
    await _apply(sandbox, definition("quiet"))
    await asyncio.to_thread(
        until, lambda: sandbox.kubectl("get", "runtimeclass/quiet", check=False).returncode == 0, 60
    )
    await _apply(sandbox, *(pod(name, "quiet", devices=["h0"]) for name in names))
    pods = [f"pod/{name}" for name in names]
    await asyncio.to_thread(sandbox.kubectl, "wait", "--for=condition=Ready", *pods, "--timeout=120s")
    provider = sandbox.process("provider-1").pid or 0
    without, without_mb = await _cpu(provider), resident_now_mb(provider)
    pki, tls = sandbox.layout.pki, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.load_cert_chain(pki / "apiserver-kubelet-client.crt", pki / "apiserver-kubelet-client.key")
    found = await asyncio.to_thread(sandbox.kubectl, "get", f"node/{sandbox.workers[0].node}", "-o", "json")
    port = json.loads(found.stdout)["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    async with AsyncExitStack() as stack:
        timeout, connector = aiohttp.ClientTimeout(total=None), aiohttp.TCPConnector(ssl=tls, limit=0)
        session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, timeout=timeout))
        for number in range(FOLLOWERS):
            container = "lab" if number % 2 else "h0"
            path = f"/containerLogs/default/{names[number // 2 % LABLETS]}/{container}?follow=true"
            answer = await stack.enter_async_context(session.get(f"https://127.0.0.1:{port}{path}"))
            assert answer.status == 200, await answer.text()
        beside, beside_mb = await _cpu(provider), resident_now_mb(provider)
    return {
        "CPU of 200 logs -f, nothing written": (100 * (beside - without), "%"),
        "CPU without them": (100 * without, "%"),
        "memory of a logs -f, nothing written": ((beside_mb - without_mb) * 1000 / FOLLOWERS, "KB"),
    }


async def _apply(sandbox: Sandbox, *objects: dict[str, Any]) -> None:
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    await asyncio.to_thread(sandbox.kubectl, "apply", "-f", "-", input=listed)


async def _cpu(pid: int) -> float:
    """Return the part of a core that a process uses once it has settled."""
    await asyncio.sleep(SETTLE_S)
    before = cpu_s(pid)
    await asyncio.sleep(MEASURE_S)
    return (cpu_s(pid) - before) / MEASURE_S
