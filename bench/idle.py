"""Five hundred idle nodes and two replicas: the cost of being idle, also beside many foreign pods.

The null backend answers at once, so all that is left is the bridge's own: Leases, membership, probes, watches.
"""

import asyncio
import itertools
import json

from bench.controlplane import ETCD
from bench.figures import Figures
from bench.outside import audited, cpu_s, resident_now_mb
from vkprovider.platform.kube.client import MERGE_PATCH, KubeClient
from vkprovider.platform.settings import KubeSettings
from vkpsandbox import Sandbox

NODES = 500
FEWER_NODES = 100
"""Memory per node is a difference, because a replica with a hundred nodes has already opened a burst's connections."""
SETTLE_S = 25.0
MEASURE_S = 85.0  # five renewals of a Lease: in any other time some are counted once more than others
FOREIGN_PODS = 5000
CHANGES_PER_S = 50
_BATCH = 200
CAPACITY = {"cpu": "8", "memory": "16Gi", "labs": 10, "labNodes": 20}


async def run() -> Figures:
    """Measure."""
    print(ETCD, flush=True)
    fewer_mb, all_mb = await _alone_mb(FEWER_NODES), await _alone_mb(NODES)
    owned_kb = (all_mb - fewer_mb) * 1000 / (NODES - FEWER_NODES)
    among_mb = await _joining_mb(NODES, NODES // FEWER_NODES)
    standby_kb = (among_mb - fewer_mb) * 1000 / (NODES - FEWER_NODES)
    sandbox = await _up(NODES, 2)
    try:
        return await _measure(sandbox, owned_kb, standby_kb)
    finally:
        await asyncio.to_thread(sandbox.down)


async def _up(nodes: int, replicas: int) -> Sandbox:
    return await asyncio.to_thread(
        Sandbox.up,
        "bench-idle",
        workers=nodes,
        replicas=replicas,
        backend="null",
        audit=True,
        tied=True,
        worker_spec={"capacity": CAPACITY},
        on_progress=print,
    )


def _pids(sandbox: Sandbox) -> list[int]:
    found = [status for status in sandbox.processes() if status.name.startswith("provider-")]
    return [status.pid for status in found if status.pid]


async def _alone_mb(nodes: int) -> float:
    """Return the memory of one replica that owns so many nodes, once its first connections are closed."""
    sandbox = await _up(nodes, 1)
    try:
        await asyncio.sleep(SETTLE_S + MEASURE_S)
        return resident_now_mb(_pids(sandbox)[0])
    finally:
        await asyncio.to_thread(sandbox.down)


async def _joining_mb(nodes: int, replicas: int) -> float:
    """Return the memory of a replica that joins others: it owns its share of the nodes and stands by for the rest."""
    sandbox = await _up(nodes, replicas)
    try:
        last = f"provider-{replicas}"
        await asyncio.sleep(SETTLE_S)
        await asyncio.to_thread(sandbox.stop, last, grace_s=20)
        await asyncio.to_thread(sandbox.start, last)
        await asyncio.sleep(SETTLE_S + MEASURE_S)
        return resident_now_mb(sandbox.process(last).pid or 0)
    finally:
        await asyncio.to_thread(sandbox.down)


async def _measure(sandbox: Sandbox, owned_kb: float, standby_kb: float) -> Figures:
    assert sandbox.audit_log is not None
    await asyncio.sleep(SETTLE_S)
    pids = _pids(sandbox)
    before, audit_from = [cpu_s(pid) for pid in pids], sandbox.audit_log.stat().st_size
    await asyncio.sleep(MEASURE_S)
    calm = max(cpu_s(pid) - was for pid, was in zip(pids, before, strict=True)) / MEASURE_S
    writes = audited(sandbox.audit_log, audit_from)
    resident = [resident_now_mb(pid) for pid in pids]
    kube = await KubeClient.connect(KubeSettings(kubeconfig=str(sandbox.kubeconfig), in_flight_max=16))
    try:
        names = await _foreign_pods(kube)
        busy = await _while_they_change(kube, names, pids)
    finally:
        await kube.close()
    grown = max(resident_now_mb(pid) - was for pid, was in zip(pids, resident, strict=True))
    return {
        "writes per node and minute": ((sum(writes.values()) - writes["failed"]) / NODES / (MEASURE_S / 60), "writes"),
        "CPU of a replica that owns 250": (100 * calm, "%"),
        "memory per owned node": (owned_kb, "KB"),
        "memory per standby node": (standby_kb, "KB"),
        "CPU beside foreign pods": (100 * busy, "%"),
        "memory for foreign pods": (grown, "MB"),
        "resident": (max(resident), "MB"),
    }


async def _foreign_pods(kube: KubeClient) -> list[str]:
    """Create foreign pods, bound to plain Node objects without a kubelet."""
    for number in range(10):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"plain-{number}"}}
        await kube.create("/api/v1/nodes", json.dumps(node).encode())
    names = [f"foreign-{number}" for number in range(FOREIGN_PODS)]

    async def make(name: str, node: str) -> None:
        containers = [{"name": "app", "image": "app:1", "env": [{"name": "TEXT", "value": "x" * 1500}]}]
        spec = {"nodeName": node, "containers": containers, "automountServiceAccountToken": False}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        await kube.create("/api/v1/namespaces/default/pods", json.dumps(pod).encode(), timeout_s=60)

    pairs = list(enumerate(names))
    for start in range(0, len(pairs), _BATCH):
        await asyncio.gather(*(make(name, f"plain-{number % 10}") for number, name in pairs[start : start + _BATCH]))
    await asyncio.sleep(SETTLE_S)
    return names


async def _while_they_change(kube: KubeClient, names: list[str], pids: list[int]) -> float:
    """Change foreign pods at a steady rate; return the share of a core that a replica uses meanwhile."""
    before = [cpu_s(pid) for pid in pids]
    loop = asyncio.get_running_loop()
    began, turn = loop.time(), itertools.count()
    pending: set[asyncio.Task[bytes]] = set()
    while (elapsed := loop.time() - began) < MEASURE_S:
        number = next(turn)
        path = f"/api/v1/namespaces/default/pods/{names[number % len(names)]}"
        body = json.dumps({"metadata": {"annotations": {"turn": str(number)}}}).encode()
        task = asyncio.create_task(kube.request("PATCH", path, body=body, content_type=MERGE_PATCH))
        pending.add(task)
        task.add_done_callback(pending.discard)
        await asyncio.sleep(max(0.0, (number + 1) / CHANGES_PER_S - elapsed))
    await asyncio.gather(*pending)
    return max(cpu_s(pid) - was for pid, was in zip(pids, before, strict=True)) / MEASURE_S
