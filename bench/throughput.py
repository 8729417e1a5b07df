"""A Deployment of 1000 lablets on 10 workers of the null backend: the cost of the bridge itself.

All rounds on one sandbox. Times are those of a watch, writes those of the audit log.
"""

import asyncio

from bench.controlplane import COMPONENT_ARGS, COMPONENT_ENV, changes
from bench.figures import Figures, percentile, show
from bench.updown import prepare, up_and_down
from vkpsandbox import Sandbox

PODS = 1000
WORKERS = 10
CAPACITY = {"cpu": "1000", "memory": "2Ti", "labs": 500, "labNodes": 2000}
TOPOLOGY = """
lab: {version: 0.1.0, title: one host, description: '', notes: ''}
nodes: [{id: n0, label: n0, node_definition: alpine, x: 0, y: 0, interfaces: []}]
links: []
"""


async def run(rounds: int) -> list[Figures]:
    """Measure."""
    print(changes(), flush=True)
    sandbox = await asyncio.to_thread(
        Sandbox.up,
        "bench-throughput",
        workers=WORKERS,
        backend="null",
        audit=True,
        tied=True,
        component_args=COMPONENT_ARGS,
        component_env=COMPONENT_ENV,
        worker_spec={"capacity": CAPACITY},
        on_progress=print,
    )
    try:
        prepare(sandbox, TOPOLOGY)
        found = []
        for number in range(rounds):
            found.append(await _one(sandbox))
            show(f"round {number + 1}", found[-1])
        return found
    finally:
        await asyncio.to_thread(sandbox.down)


async def _one(sandbox: Sandbox) -> Figures:
    seen = await up_and_down(sandbox, PODS)
    waits = [life.running - life.bound for life in seen.lives.values()]
    writes = seen.writes
    return {
        "create to all bound": (seen.bound_s, "s"),
        "create to all Ready": (seen.ready_s, "s"),
        "all Ready / all bound": (seen.ready_s / seen.bound_s, "ratio"),
        "bound to Running p50": (percentile(waits, 0.5), "s"),
        "bound to Running p99": (percentile(waits, 0.99), "s"),
        "scale to 0 to all gone": (seen.gone_s, "s"),
        "all gone / all Ready": (seen.gone_s / seen.ready_s, "ratio"),
        "provider CPU, up and down": (seen.cpu_s, "s"),
        "provider resident": (seen.resident_mb, "MB"),
        "status and delete writes per pod": ((writes["pods/status"] + writes["delete pods"]) / PODS, "writes"),
        "claim writes per pod": (writes["claims"] / PODS, "writes"),
        "events per pod": (writes["events"] / PODS, "writes"),
        "other writes": (float(writes["other"] + writes["leases"]), "writes"),
        "refused writes": (float(writes["failed"]), "writes"),
    }
