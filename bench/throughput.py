"""A Deployment of 1000 lablets on 10 workers of the null backend: what the bridge itself costs.

Three runs on one sandbox, the median of each figure. Times are those of a watch, writes those of the audit log.
"""

import asyncio
import json
import time

from bench.figures import Figures, median_of, percentile
from bench.outside import Watcher, audited, cpu_s, resident_peak_mb
from vkprovider.sandbox import Sandbox

PODS = 1000
WORKERS = 10
RUNS = 3
CAPACITY = {"cpu": "1000", "memory": "2Ti", "labs": 500, "labNodes": 2000}
TOPOLOGY = """
lab: {version: 0.1.0, title: one host, description: '', notes: ''}
nodes: [{id: n0, label: n0, node_definition: alpine, x: 0, y: 0, interfaces: []}]
links: []
"""


async def run() -> Figures:
    """Measure."""
    sandbox = await asyncio.to_thread(
        Sandbox.up,
        "bench-throughput",
        workers=WORKERS,
        backend="null",
        audit=True,
        tied=True,
        worker_spec={"capacity": CAPACITY},
        on_progress=print,
    )
    try:
        prepare(sandbox, TOPOLOGY)
        runs = []
        for number in range(RUNS):
            figures = await _one(sandbox)
            runs.append(figures)
            print(f"run {number + 1}: " + ", ".join(f"{k} {v:.2f} {u}" for k, (v, u) in figures.items()), flush=True)
        return median_of(runs)
    finally:
        await asyncio.to_thread(sandbox.down)


def prepare(sandbox: Sandbox, topology: str, *, name: str = "bench") -> None:
    """Make a definition, and wait until pods can name it."""
    definition = {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "LabletDefinition",
        "metadata": {"name": name},
        "spec": {"version": "1", "source": {"inline": topology}},
    }
    sandbox.kubectl("apply", "-f", "-", input=json.dumps(definition))
    sandbox.kubectl("wait", "--for=condition=Ready", f"labletdefinition/{name}", "--timeout=30s")


def deployment(replicas: int, *, name: str = "bench") -> str:
    """Make a Deployment of lablets."""
    labels = {"app": name}
    pod = {
        "runtimeClassName": name,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 30,
        "containers": [{"name": "lab", "image": f"{name}:1"}],
    }
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
    )


async def _one(sandbox: Sandbox) -> Figures:
    assert sandbox.audit_log is not None
    pid = sandbox.process("provider-1").pid
    assert pid is not None
    audit_from, cpu_from = sandbox.audit_log.stat().st_size, cpu_s(pid)
    watcher = Watcher(sandbox.kubeconfig)
    watching = asyncio.create_task(watcher.run())
    try:
        created = time.time()
        await asyncio.to_thread(sandbox.kubectl, "apply", "-f", "-", input=deployment(PODS))
        await watcher.until("ready", PODS, 180)
        await asyncio.sleep(2.0)  # what is written late counts too
        scaled = time.time()
        await asyncio.to_thread(sandbox.kubectl, "scale", "deployment/bench", "--replicas=0")
        await watcher.until("gone", PODS, 180)
        await asyncio.sleep(3.0)
    finally:
        watching.cancel()
    lives = watcher.lives.values()
    assert len(lives) == PODS, f"{len(lives)} pods were seen"
    bound_s = max(life.bound for life in lives) - created
    ready_s = max(life.ready for life in lives) - created
    gone_s = max(life.gone for life in lives) - scaled
    waits = [life.running - life.bound for life in lives]
    writes = audited(sandbox.audit_log, audit_from)
    return {
        "create to all bound": (bound_s, "s"),
        "create to all Ready": (ready_s, "s"),
        "all Ready / all bound": (ready_s / bound_s, "ratio"),
        "bound to Running p50": (percentile(waits, 0.5), "s"),
        "bound to Running p99": (percentile(waits, 0.99), "s"),
        "scale to 0 to all gone": (gone_s, "s"),
        "all gone / all Ready": (gone_s / ready_s, "ratio"),
        "provider CPU, up and down": (cpu_s(pid) - cpu_from, "s"),
        "provider resident": (resident_peak_mb(pid), "MB"),
        "status and delete writes per pod": ((writes["pods/status"] + writes["delete pods"]) / PODS, "writes"),
        "claim writes per pod": (writes["claims"] / PODS, "writes"),
        "events per pod": (writes["events"] / PODS, "writes"),
        "other writes": (float(writes["other"] + writes["leases"]), "writes"),
        "refused writes": (float(writes["failed"]), "writes"),
    }
