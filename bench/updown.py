"""A Deployment of lablets scaled up and down again: the frame of the benchmarks that measure lives of pods."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bench.outside import Life, Watcher, audited, cpu_of, cpu_since, machine_busy_s, resident_peak_mb
from vkprovider.labs.controllers.claims.store import LAZY_S
from vkpsandbox import Sandbox

OURS = "provider-1"
"""The process of a sandbox's first provider replica."""
_WITHIN_S = 300.0
_AFTERWARDS_S = LAZY_S + 2.0
"""Late writes count, too: claims that nobody waits for are written last."""

Reach = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class UpAndDown:
    """What a run showed from outside.

    Attributes:
        lives: Of each pod, by UID.
        created, scaled: When the Deployment was created, and scaled to 0 (Unix seconds).
        bound_s, ready_s: From the creation of the Deployment until the last pod was bound, Ready.
        gone_s: From scaling to 0 until the last pod was gone.
        cpu_until_ready_s: Until the last pod was Ready, by process.
        cpu_s, resident_mb: Of the measured process, over the whole run.
        server_cpu_s: Of API server and etcd.
        controllers_cpu_s: Of scheduler and controller-manager.
        others_cpu_s: Of all that has nothing to do with the run.
        writes: The provider's, by kind; none without an audit log.
    """

    lives: dict[str, Life]
    created: float
    scaled: float
    bound_s: float
    ready_s: float
    gone_s: float
    cpu_until_ready_s: dict[str, float]
    cpu_s: float
    server_cpu_s: float
    controllers_cpu_s: float
    others_cpu_s: float
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


def deployment(replicas: int, *, name: str = "bench", placed: Mapping[str, Any] | None = None) -> str:
    """Return a Deployment of lablets.

    Args:
        replicas: How many.
        name: Its name and that of the definition.
        placed: Fields of the Pod's spec that place it on other nodes than the provider's; it is not a lablet then.
    """
    labels = {"app": name}
    pod = {
        **({"runtimeClassName": name} if placed is None else placed),
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


async def up_and_down(sandbox: Sandbox, pods: int, *, process: str = OURS, manifest: str | None = None) -> UpAndDown:
    """Scale a Deployment up to so many pods, wait until all are Ready, and scale it to 0.

    Args:
        sandbox: Where.
        pods: How many.
        process: The name of the process that makes them Ready; it is what is measured.
        manifest: The Deployment, named `bench`; by default one of lablets.
    """
    pid = sandbox.process(process).pid
    assert pid is not None
    audit_from = sandbox.audit_log.stat().st_size if sandbox.audit_log else 0
    before, busy_from = cpu_of(sandbox), machine_busy_s()
    async with _watched(sandbox, pods) as (lives, reach):
        created = time.time()
        await asyncio.to_thread(sandbox.kubectl, "apply", "-f", "-", input=manifest or deployment(pods))
        await reach("ready")
        until_ready = cpu_since(before, sandbox)
        await asyncio.sleep(_AFTERWARDS_S)
        scaled = time.time()
        await asyncio.to_thread(sandbox.kubectl, "scale", "deployment/bench", "--replicas=0")
        await reach("gone")
        await asyncio.sleep(_AFTERWARDS_S)
    assert len(lives) == pods, f"{len(lives)} pods were seen"
    used = cpu_since(before, sandbox)
    return UpAndDown(
        lives=lives,
        created=created,
        scaled=scaled,
        bound_s=max(life.bound for life in lives.values()) - created,
        ready_s=max(life.ready for life in lives.values()) - created,
        gone_s=max(life.gone for life in lives.values()) - scaled,
        cpu_until_ready_s=until_ready,
        cpu_s=used[process],
        server_cpu_s=used["kube-apiserver"] + used["etcd"],
        controllers_cpu_s=used["kube-scheduler"] + used["kube-controller-manager"],
        others_cpu_s=machine_busy_s() - busy_from - sum(used.values()),
        resident_mb=resident_peak_mb(pid),
        writes=audited(sandbox.audit_log, audit_from) if sandbox.audit_log else Counter(),
    )


@asynccontextmanager
async def _watched(sandbox: Sandbox, pods: int) -> AsyncIterator[tuple[dict[str, Life], Reach]]:
    """Watch the pods; yield their lives, and what waits until so many have reached a step of their life."""
    watcher = Watcher(sandbox.kubeconfig)
    watching = asyncio.create_task(watcher.run())
    try:
        yield watcher.lives, lambda moment: _reach(watcher, watching, moment, pods)
    finally:
        watching.cancel()


async def _reach(watcher: Watcher, watching: "asyncio.Task[None]", moment: str, pods: int) -> None:
    """Wait until all pods have reached a step of their life, or the watch fails."""
    reached = asyncio.create_task(watcher.until(moment, pods, _WITHIN_S))
    await asyncio.wait({reached, watching}, return_when=asyncio.FIRST_COMPLETED)
    if not reached.done():
        reached.cancel()
        await watching
    await reached
