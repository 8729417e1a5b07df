"""A Deployment of lablets scaled up and down again: the frame of the benchmarks that measure lives of pods."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass

from bench.outside import Life, Watcher, audited, cpu_s, resident_peak_mb
from vkprovider.controllers.claims.store import LAZY_S
from vkpsandbox import Sandbox

_WITHIN_S = 300.0
_AFTERWARDS_S = LAZY_S + 2.0
"""Late writes count, too: claims that nobody waits for are written last."""


@dataclass(frozen=True, slots=True)
class UpAndDown:
    """What a run showed from outside.

    Attributes:
        lives: Of each pod, by UID.
        bound_s, ready_s: From the creation of the Deployment until the last pod was bound, Ready.
        gone_s: From scaling to 0 until the last pod was gone.
        cpu_s, resident_mb: The provider's, over the whole run.
        writes: The provider's, by kind.
    """

    lives: dict[str, Life]
    bound_s: float
    ready_s: float
    gone_s: float
    cpu_s: float
    resident_mb: float
    writes: Counter[str]


def prepare(sandbox: Sandbox, topology: str, *, name: str = "bench") -> None:
    """Create a definition and wait until pods can use it."""
    definition = {
        "apiVersion": "vkprovider.io/v1alpha1",
        "kind": "LabletDefinition",
        "metadata": {"name": name},
        "spec": {"version": "1", "source": {"inline": topology}},
    }
    sandbox.kubectl("apply", "-f", "-", input=json.dumps(definition))
    sandbox.kubectl("wait", "--for=condition=Ready", f"labletdefinition/{name}", "--timeout=30s")


def deployment(replicas: int, *, name: str = "bench") -> str:
    """Return a Deployment of lablets."""
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


async def up_and_down(sandbox: Sandbox, pods: int) -> UpAndDown:
    """Scale a Deployment up to so many pods, wait until all are Ready, and scale it to 0."""
    assert sandbox.audit_log is not None
    pid = sandbox.process("provider-1").pid
    assert pid is not None
    audit_from, cpu_from = sandbox.audit_log.stat().st_size, cpu_s(pid)
    watcher = Watcher(sandbox.kubeconfig)
    watching = asyncio.create_task(watcher.run())
    try:
        created = time.time()
        await asyncio.to_thread(sandbox.kubectl, "apply", "-f", "-", input=deployment(pods))
        await watcher.until("ready", pods, _WITHIN_S)
        await asyncio.sleep(_AFTERWARDS_S)
        scaled = time.time()
        await asyncio.to_thread(sandbox.kubectl, "scale", "deployment/bench", "--replicas=0")
        await watcher.until("gone", pods, _WITHIN_S)
        await asyncio.sleep(_AFTERWARDS_S)
    finally:
        watching.cancel()
    lives = watcher.lives
    assert len(lives) == pods, f"{len(lives)} pods were seen"
    return UpAndDown(
        lives=lives,
        bound_s=max(life.bound for life in lives.values()) - created,
        ready_s=max(life.ready for life in lives.values()) - created,
        gone_s=max(life.gone for life in lives.values()) - scaled,
        cpu_s=cpu_s(pid) - cpu_from,
        resident_mb=resident_peak_mb(pid),
        writes=audited(sandbox.audit_log, audit_from),
    )
