"""The main job: 200 lablets on 10 simulated workers with realistic boot times, and the time that the bridge adds.

The bridge's share lies between two events seen from outside: the Pod bound (a watch) and its import at the simulator;
the simulator's first response that shows the lab converged, and the Pod Ready (the watch). The yardstick is a bare PUT
to the same API server in the same seconds.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from bench.controlplane import COMPONENT_ARGS, COMPONENT_ENV, changes
from bench.figures import Figures, percentile
from bench.outside import Yardstick
from bench.updown import prepare, up_and_down
from vkpsandbox import Sandbox

LABLETS = 200
WORKERS = 10
_BATCHING_MS = 100
"""What may be added to the p99 for writing the claims of many lablets at once."""
TOPOLOGY = """
lab: {version: 0.1.0, title: pair, description: '', notes: ''}
nodes:
- {id: n0, label: h0, node_definition: alpine, x: 0, y: 0, interfaces: [{id: i0, label: eth0, slot: 0, type: physical}]}
- {id: n1, label: h1, node_definition: alpine, x: 9, y: 0, interfaces: [{id: i0, label: eth0, slot: 0, type: physical}]}
links: [{id: l0, n1: n0, i1: i0, n2: n1, i2: i0}]
"""


async def run() -> Figures:
    """Measure."""
    print(changes(), flush=True)
    sandbox = await asyncio.to_thread(
        Sandbox.up,
        "bench-main-job",
        workers=WORKERS,
        audit=True,
        tied=True,
        component_args=COMPONENT_ARGS,
        component_env=COMPONENT_ENV,
        worker_args=[["--boot-seconds", "5-20", "--latency-ms", "50", "--seed", str(n)] for n in range(WORKERS)],
        on_progress=print,
    )
    try:
        prepare(sandbox, TOPOLOGY)
        return await _measure(sandbox)
    finally:
        await asyncio.to_thread(sandbox.down)


async def _measure(sandbox: Sandbox) -> Figures:
    yardstick = Yardstick(sandbox.kubeconfig)
    bare = asyncio.create_task(yardstick.run())
    try:
        seen = await up_and_down(sandbox, LABLETS)
    finally:
        bare.cancel()
    puts = [took for sent, took in yardstick.took_ms.items() if seen.created <= sent <= seen.created + seen.ready_s]
    imports, converged = _simulator_times(sandbox)
    lives, writes = seen.lives, seen.writes
    assert set(imports) == set(converged) == set(lives), "a lablet was not imported or not seen converged"
    to_import = [1000 * (imports[uid] - life.bound) for uid, life in lives.items()]
    to_ready = [1000 * (life.ready - converged[uid]) for uid, life in lives.items()]
    return {
        **_shares("bound to import", to_import, puts),
        **_shares("converged to Ready", to_ready, puts),
        "bare PUT p50": (percentile(puts, 0.5), "ms"),
        "bare PUT p99": (percentile(puts, 0.99), "ms"),
        "create to all Ready": (seen.ready_s, "s"),
        "scale to 0 to all gone": (seen.gone_s, "s"),
        "status writes per lablet": (writes["pods/status"] / LABLETS, "writes"),
        "events per lablet": (writes["events"] / LABLETS, "writes"),
        "deletes per lablet": (writes["delete pods"] / LABLETS, "writes"),
        "claim writes per lablet": (writes["claims"] / LABLETS, "writes"),
        "other writes": (float(writes["other"] + writes["leases"]), "writes"),
        "refused writes": (float(writes["failed"]), "writes"),
        "provider CPU": (seen.cpu_s, "s"),
        "provider resident": (seen.resident_mb, "MB"),
    }


def _shares(name: str, took_ms: Sequence[float], puts_ms: Sequence[float]) -> Figures:
    """Return the percentiles of a share of the bridge, and in proportion to a bare PUT to the same API server."""
    p50, p99 = percentile(took_ms, 0.5), percentile(took_ms, 0.99)
    return {
        f"{name} p50": (p50, "ms"),
        f"{name} p99": (p99, "ms"),
        f"{name} p50 / bare PUT": (p50 / percentile(puts_ms, 0.5), "ratio"),
        f"({name} p99 - {_BATCHING_MS} ms) / bare PUT": ((p99 - _BATCHING_MS) / percentile(puts_ms, 0.99), "ratio"),
    }


def _simulator_times(sandbox: Sandbox) -> tuple[dict[str, float], dict[str, float]]:
    """Read from the access logs when each lablet was imported, and when an answer first showed it converged."""
    imports: dict[str, float] = {}
    converged: dict[str, float] = {}
    for worker in sandbox.workers:
        assert worker.access_log is not None
        titles: dict[str, str] = {}
        for raw in Path(worker.access_log).read_text().splitlines():
            entry = json.loads(raw)
            if entry.get("lab"):
                uid = entry["title"][-36:]
                assert uid not in imports, f"pod {uid} was imported twice"
                titles[entry["lab"]], imports[uid] = uid, entry["arrived_unix_s"]
            for lab_id in entry.get("converged", ()):
                converged.setdefault(titles[lab_id], entry["answered_unix_s"])
    return imports, converged
