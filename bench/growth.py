"""What a doubling costs: of idle nodes, of pods, of replicas; and what joining and taking over a large cluster takes.

Each cost is compared with that of half as much; the null backend answers at once, so it is the bridge's own.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final
from urllib.request import urlopen

from bench.controlplane import COMPONENT_ARGS, COMPONENT_ENV, changes, without_spreading
from bench.figures import Figures
from bench.idle import MEASURE_S, SETTLE_S
from bench.outside import Watcher, audited, cpu_of, cpu_s, cpu_since, resident_now_mb, resident_peak_mb
from bench.throughput import CAPACITY, TOPOLOGY
from bench.updown import deployment, prepare, up_and_down
from vkpsandbox import Sandbox
from vkpsandbox.controlplane import content
from vkpsandbox.controlplane.programs import plan_workers

NODES: Final = (100, 200, 400, 800, 1600)
PODS: Final = (1250, 2500, 5000, 10000)
REPLICAS: Final = (1, 2, 3)
_NAME: Final = "bench-growth"
_NODES_OF_REPLICAS: Final = 400
_NODES_OF_PODS: Final = 100
_CROWD_NODES, _CROWD_PODS = 1000, 10000
_WITHIN_S: Final = 400.0
_NODES_S: Final = 180.0


async def _up(workers: int, *, replicas: int = 1, args: Mapping[str, Sequence[str]] = COMPONENT_ARGS) -> Sandbox:
    """Start the sandbox, with these arguments of the control plane's components; without any it is stock."""
    print(changes(args) if args else "control plane: stock", flush=True)
    return await asyncio.to_thread(
        Sandbox.up,
        _NAME,
        workers=workers,
        replicas=replicas,
        backend="null",
        audit=True,
        tied=True,
        worker_spec={"capacity": CAPACITY},
        component_args=args,
        component_env=COMPONENT_ENV if args else {},
        on_progress=print,
    )


def _doublings(name: str, sizes: Sequence[int], costs: Sequence[float], unit: str) -> Figures:
    """Return the cost of each size, and the factor between each size and the one before, its half."""
    figures: Figures = {f"{name}, {size:,}": (cost, unit) for size, cost in zip(sizes, costs, strict=True)}
    for (half, size), (before, after) in zip(pairwise(sizes), pairwise(costs), strict=True):
        figures[f"{name}, {size:,} / {half:,}"] = (after / before, "ratio")
    return figures


# ------------------------------------------------------------------------------------------------- nodes


async def nodes() -> Figures:
    """Measure one replica beside more and more idle nodes."""
    sandbox = await _up(NODES[0], args={})
    try:
        seen: list[tuple[float, float, float]] = []
        for before, number in pairwise((NODES[0], *NODES)):
            await asyncio.to_thread(_more_workers, sandbox, before, number)
            await _until_nodes(sandbox, number)
            seen.append(await _calm(sandbox))
            print(f"{number} nodes: {seen[-1]}", flush=True)
    finally:
        await asyncio.to_thread(sandbox.down)
    return (
        _doublings("CPU a minute, nodes", NODES, [one[0] for one in seen], "s")
        | _doublings("writes a minute, nodes", NODES, [one[1] for one in seen], "writes")
        | _doublings("resident, nodes", NODES, [one[2] for one in seen], "MB")
    )


def _more_workers(sandbox: Sandbox, before: int, count: int) -> None:
    """Create CMLWorkers until there are `count` instead of `before`."""
    workers = plan_workers(sandbox.layout, count, "null")
    items = [
        item
        for number, worker in enumerate(workers[before:], before + 1)
        for item in content.worker_objects(worker, number, sandbox.name, {"capacity": CAPACITY})
    ]
    if items:
        sandbox.kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


async def _until_nodes(sandbox: Sandbox, count: int) -> None:
    deadline = time.monotonic() + _NODES_S
    wanted = '{range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
    while True:
        listed = await asyncio.to_thread(sandbox.kubectl, "get", "nodes", "-o", f"jsonpath={wanted}")
        if listed.stdout.split().count("True") == count:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"not all of {count} nodes are Ready after {_NODES_S:.0f} s")
        await asyncio.sleep(0.5)


def _replicas(sandbox: Sandbox) -> list[str]:
    return [status.name for status in sandbox.processes() if status.name.startswith("provider-") and status.pid]


async def _calm(sandbox: Sandbox) -> tuple[float, float, float]:
    """Return the CPU seconds and the writes of all replicas per minute, and their resident megabytes."""
    assert sandbox.audit_log is not None
    await asyncio.sleep(SETTLE_S)
    before, audit_from = cpu_of(sandbox), sandbox.audit_log.stat().st_size
    await asyncio.sleep(MEASURE_S)
    used, names = cpu_since(before, sandbox), _replicas(sandbox)
    writes = audited(sandbox.audit_log, audit_from)
    resident = sum(resident_now_mb(sandbox.process(name).pid or 0) for name in names)
    per_minute = 60.0 / MEASURE_S
    written = sum(writes.values()) - writes["failed"]
    return sum(used[name] for name in names) * per_minute, written * per_minute, resident


# ------------------------------------------------------------------------------------------------- pods


async def pods() -> Figures:
    """Measure one replica with Deployments of more and more lablets, up and down.

    Each has a control plane of its own, so that none pays for what the one before left in the API server and in etcd.
    """
    seen = []
    for number in PODS:
        sandbox = await _up(_NODES_OF_PODS, args=without_spreading(_NAME))
        try:
            prepare(sandbox, TOPOLOGY)
            seen.append(await up_and_down(sandbox, number))
        finally:
            await asyncio.to_thread(sandbox.down)
        one = seen[-1]
        print(f"{number} pods: {one.ready_s:.1f} s, {one.gone_s:.1f} s, {one.resident_mb:.0f} MB", flush=True)
    return (
        _doublings("create to all Ready, pods", PODS, [one.ready_s for one in seen], "s")
        | _doublings("scale to 0 to all gone, pods", PODS, [one.gone_s for one in seen], "s")
        | _doublings("CPU up and down, pods", PODS, [one.cpu_s for one in seen], "s")
        | _doublings("CPU of API server and etcd, pods", PODS, [one.server_cpu_s for one in seen], "s")
        | _doublings(
            "CPU of scheduler and controller-manager, pods", PODS, [one.controllers_cpu_s for one in seen], "s"
        )
        | _doublings("create to all bound, pods", PODS, [one.bound_s for one in seen], "s")
        | _doublings("writes, pods", PODS, [float(sum(one.writes.values())) for one in seen], "writes")
        | _doublings("resident, pods", PODS, [one.resident_mb for one in seen], "MB")
    )


# ------------------------------------------------------------------------------------------------- replicas


async def replicas() -> Figures:
    """Measure more and more replicas that share the same idle nodes."""
    seen = []
    for number in REPLICAS:
        sandbox = await _up(_NODES_OF_REPLICAS, replicas=number, args={})
        try:
            seen.append(await _calm(sandbox))
            print(f"{number} replicas: {seen[-1]}", flush=True)
        finally:
            await asyncio.to_thread(sandbox.down)
    figures: Figures = {}
    for number, (cpu, writes, resident) in zip(REPLICAS, seen, strict=True):
        figures[f"CPU a minute of all, replicas, {number}"] = (cpu, "s")
        figures[f"writes a minute of all, replicas, {number}"] = (writes, "writes")
        figures[f"resident of each, replicas, {number}"] = (resident / number, "MB")
    figures["CPU a minute of all, 3 / 1 replicas"] = (seen[-1][0] / seen[0][0], "ratio")
    figures["writes a minute of all, 3 / 1 replicas"] = (seen[-1][1] / seen[0][1], "ratio")
    return figures


# ------------------------------------------------------------------------------------------------- a crowd


async def crowd() -> Figures:
    """Let a replica join 1,000 nodes with 10,000 lablets, and take over half of them."""
    sandbox = await _up(_CROWD_NODES, replicas=2)
    try:
        prepare(sandbox, TOPOLOGY)
        await asyncio.to_thread(sandbox.stop, "provider-2", grace_s=20)
        watcher = Watcher(sandbox.kubeconfig)
        watching = asyncio.create_task(watcher.run())
        try:
            await asyncio.to_thread(sandbox.kubectl, "apply", "-f", "-", input=deployment(_CROWD_PODS))
            await watcher.until("ready", _CROWD_PODS, _WITHIN_S)
            await asyncio.sleep(SETTLE_S)
            return await _joined(sandbox, watcher) | await _taken_over(sandbox, watcher)
        finally:
            watching.cancel()
    finally:
        await asyncio.to_thread(sandbox.down)


async def _joined(sandbox: Sandbox, watcher: Watcher) -> Figures:
    began = time.monotonic()
    status = await asyncio.to_thread(sandbox.start, "provider-2")
    while not await asyncio.to_thread(_ready, status.url):
        assert time.monotonic() < began + _NODES_S, "the joining replica does not become ready"
        await asyncio.sleep(0.05)
    ready_s = time.monotonic() - began
    while len(shares := await _shares(sandbox)) != 2 or max(shares.values()) - min(shares.values()) > 1:
        assert time.monotonic() < began + _NODES_S, f"no balance: {shares}"
        await asyncio.sleep(0.5)
    balanced_s = time.monotonic() - began
    await asyncio.sleep(SETTLE_S)
    peak_mb = resident_peak_mb(sandbox.process("provider-2").pid or 0)
    return {
        "join until ready": (ready_s, "s"),
        "join until balanced": (balanced_s, "s"),
        "resident of the joining replica, peak": (peak_mb, "MB"),
        "lablets that turned not Ready": (float(watcher.unready), "lablets"),
    }


async def _taken_over(sandbox: Sandbox, watcher: Watcher) -> Figures:
    pid = sandbox.process("provider-2").pid or 0
    before, unready_from, began = cpu_s(pid), watcher.unready, time.monotonic()
    await asyncio.to_thread(sandbox.kill, "provider-1")
    while len(await _shares(sandbox)) != 1:
        assert time.monotonic() < began + _NODES_S, "the nodes are not taken over"
        await asyncio.sleep(0.2)
    taken_s = time.monotonic() - began
    await asyncio.sleep(SETTLE_S)
    return {
        "takeover of 500 nodes": (taken_s, "s"),
        "CPU of the takeover": (cpu_s(pid) - before, "s"),
        "resident of the survivor, peak": (resident_peak_mb(pid), "MB"),
        "lablets that turned not Ready in the takeover": (float(watcher.unready - unready_from), "lablets"),
    }


def _ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/ready", timeout=2) as answer:  # noqa: S310 (the replica's own page)
            return bool(answer.status == 200)
    except OSError:
        return False


async def _shares(sandbox: Sandbox) -> Counter[str]:
    """Count the nodes of each holder."""
    names = "jsonpath={.items[*].spec.holderIdentity}"
    listed = await asyncio.to_thread(sandbox.kubectl, "get", "leases", "--namespace=kube-node-lease", "-o", names)
    return Counter(listed.stdout.split())
