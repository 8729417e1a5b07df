"""The main job: 200 lablets on 10 simulated workers with realistic boot times, and the time that the bridge adds.

The bridge's share lies between two events seen from outside: the Pod bound (a watch) and its import at the simulator;
the simulator's first response that shows the lab converged, and the Pod Ready (the watch). The yardstick is a bare PUT
to the same API server: of each lablet, the one that was sent next to the first of the two.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench import stages
from bench.controlplane import COMPONENT_ARGS, COMPONENT_ENV, changes
from bench.figures import Figures, percentile
from bench.outside import Yardstick
from bench.updown import OURS, UpAndDown, prepare, up_and_down
from vkprovider.labs.controllers import counters
from vkpsandbox import Sandbox

_NAME = "bench-main-job"
LABLETS = 200
WORKERS = 10
_BATCHING_MS = 100
"""What may be added to the p99 for writing the claims of many lablets at once."""
_IMPORTED = "import arrived, by the simulator's log"
_CONVERGED = "converged, by the simulator's log"
_TO_IMPORT = (stages.BOUND, counters.SEEN, counters.TURN_BEGUN, counters.CLAIM_STORED, _IMPORTED)
_TO_READY = (_CONVERGED, counters.READY_DECIDED, counters.STATUS_SENT, counters.STATUS_ANSWERED, stages.READY)
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
        _NAME,
        workers=WORKERS,
        audit=True,
        tied=True,
        component_args=COMPONENT_ARGS,
        component_env=COMPONENT_ENV,
        provider_env={"VKPROVIDER_TIMELINE_FILE": str(stages.timeline_of(_NAME))},
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
    imports, converged = _simulator_times(sandbox)
    lives, writes = seen.lives, seen.writes
    assert set(imports) == set(converged) == set(lives), "a lablet was not imported or not seen converged"
    await asyncio.to_thread(sandbox.stop, OURS, grace_s=20)
    print("stages of both shares:", _stages(seen, imports, converged), sep="\n", flush=True)
    to_import = [(life.bound, imports[uid]) for uid, life in lives.items()]
    to_ready = [(converged[uid], life.ready) for uid, life in lives.items()]
    return {
        **_shares("bound to import", to_import, yardstick),
        **_shares("converged to Ready", to_ready, yardstick),
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


def _shares(name: str, spans: Sequence[tuple[float, float]], yardstick: Yardstick) -> Figures:
    """Return the percentiles of a share of the bridge, and in proportion to bare PUTs of the same moments.

    Args:
        name: The share's.
        spans: When it began and ended, of each lablet (Unix seconds).
        yardstick: The PUTs.
    """
    took_ms = [1000 * (end - begin) for begin, end in spans]
    puts_ms = [yardstick.took_at(begin) for begin, _ in spans]
    figures: Figures = {}
    for percent, spared_ms in ((50, 0), (99, _BATCHING_MS)):
        ours, bare = percentile(took_ms, percent / 100), percentile(puts_ms, percent / 100)
        share = f"({name} p{percent} - {spared_ms} ms)" if spared_ms else f"{name} p{percent}"
        figures |= {f"{name} p{percent}": (ours, "ms"), f"{name}, bare PUT p{percent}": (bare, "ms")}
        figures[f"{share} / bare PUT"] = ((ours - spared_ms) / bare, "ratio")
    return figures


def _stages(seen: UpAndDown, imports: Mapping[str, float], converged: Mapping[str, float]) -> str:
    """Return what the provider did in its two shares, and when; it has stopped."""
    found, _ = stages.read(stages.timeline_of(_NAME), seen.lives)
    for uid, times in found.items():
        times |= {_IMPORTED: imports[uid], _CONVERGED: converged[uid]}
    return "\n".join(stages.rows(found, way) for way in (_TO_IMPORT, _TO_READY))


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
