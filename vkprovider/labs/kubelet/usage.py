"""`/metrics/resource`, `/stats/summary` and `/metrics`: what devices use, as metrics-server and Prometheus read it.

metrics-server drops a Pod of which one container has no CPU time or no memory, and a Node likewise; a counter that
decreases counts as a restart. So every container of a Pod has a sample, and none is zero. What a device without a
container of its own uses belongs to the container of the lablet as a whole.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from vkprovider.labs.kubelet.server import Call, NodePods, Routes
from vkprovider.labs.kubelet.spi import DeviceUsage
from vkprovider.platform.objects import Pod
from vkprovider.platform.runtime.metrics import Collected
from vkprovider.platform.times import iso, unix

_TEXT: Final = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
_CPU_S_MIN: Final = 1e-9
_BYTES_MIN: Final = 1

UsageOf = Callable[[str], Iterable[DeviceUsage]]
"""Lists what the devices on a Node use."""


@dataclass(slots=True)
class Use:
    """What a container, a Pod or a Node uses."""

    cpu_s: float = 0.0
    nanocores: int = 0
    memory_bytes: int = 0
    started_at: float = 0.0

    def add(self, other: "Use | DeviceUsage") -> None:
        """Add what a part uses."""
        self.cpu_s += other.cpu_s
        self.nanocores += other.nanocores if isinstance(other, Use) else other.cpu_nanocores
        self.memory_bytes += other.memory_bytes
        self.started_at = max(self.started_at, other.started_at)


class Meter:
    """CPU time of Nodes: it goes on growing when a device, and with it its CPU time, is gone."""

    def __init__(self) -> None:
        self._total: dict[str, float] = {}
        self._last: dict[str, dict[tuple[str, str], float]] = {}

    def advance(self, worker: str, found: Iterable[DeviceUsage]) -> float:
        """Add what devices have used since the last call, and return the Node's CPU time in seconds."""
        before = self._last.get(worker, {})
        now = {(use.target.uid, use.target.container): use.cpu_s for use in found}
        grown = sum(cpu_s - min(before.get(key, 0.0), cpu_s) for key, cpu_s in now.items())
        self._last[worker] = now
        self._total[worker] = self._total.get(worker, 0.0) + grown
        return self._total[worker]

    def given_up(self, worker: str) -> None:
        """Forget a worker whose Node is not ours any more."""
        self._total.pop(worker, None)
        self._last.pop(worker, None)


def by_container(pod: Pod, found: Iterable[DeviceUsage]) -> dict[str, Use]:
    """Return the usage of each container of a Pod; that of a device without one counts as the lablet's."""
    names = [container.name for container in pod.spec.containers]
    uses = {name: Use(started_at=unix(pod.status.start_time or "") or 0.0) for name in names}
    found = list(found)
    devices = {use.target.container for use in found}
    whole = next((name for name in names if name not in devices), names[0])
    for use in found:
        uses[use.target.container if use.target.container in uses else whole].add(use)
    return uses


class UsageHandlers:
    """The handlers."""

    def __init__(self, pods: NodePods, usage: UsageOf, meter: Meter, version: Callable[[], str]) -> None:
        """Create them.

        Args:
            pods: Of the Nodes.
            usage: What their devices use.
            meter: Of the Nodes.
            version: Returns the version that the Nodes claim, "" while it is not known; called by each request for
                `/metrics`.
        """
        self._pods = pods
        self._usage = usage
        self._meter = meter
        self._version = version

    def routes(self) -> Routes:
        """Return the handlers by method and path."""
        return {
            ("GET", "/metrics/resource"): self._resource,
            ("GET", "/metrics"): self._own,
            ("GET", "/metrics/cadvisor"): _nothing,
            ("GET", "/metrics/probes"): _nothing,
            ("GET", "/stats/summary"): self._summary,
        }

    def _read(self, call: Call) -> tuple[Use, list[tuple[Pod, dict[str, Use]]]]:
        """Return the usage of a Node and of the running containers of its Pods."""
        found = list(self._usage(call.listener.node))
        node, of_pod = Use(), dict[str, list[DeviceUsage]]()
        for use in found:
            node.add(use)
            of_pod.setdefault(use.target.uid, []).append(use)
        node.cpu_s = self._meter.advance(call.listener.worker, found)
        running = [pod for pod in self._pods.of(call.listener) if pod.status.phase == "Running"]
        return node, [(pod, by_container(pod, of_pod.get(pod.metadata.uid, ()))) for pod in running]

    async def _resource(self, _: web.Request, call: Call) -> web.Response:
        node, pods = self._read(call)
        return _exposition(_resource_metrics(node, pods))

    async def _own(self, _: web.Request, call: Call) -> web.Response:
        """Answer with what stock dashboards ask of a kubelet; the replica's own metrics are on its page."""
        build = GaugeMetricFamily("kubernetes_build_info", "1; the version is a label.", labels=("git_version",))
        if version := self._version():  # stock alerts compare it with those of API server and kubelets
            build.add_metric((version,), 1)
        name = GaugeMetricFamily("kubelet_node_name", "1; the Node's name is a label.", labels=("node",))
        name.add_metric((call.listener.node,), 1)
        running = [pod for pod in self._pods.of(call.listener) if pod.status.phase == "Running"]
        pods = GaugeMetricFamily("kubelet_running_pods", "Pods that run.", value=len(running))
        containers = GaugeMetricFamily(
            "kubelet_running_containers", "Containers by state, of Pods that run.", labels=("container_state",)
        )
        states: dict[str, int] = {}
        for pod in running:
            for status in pod.status.container_statuses:
                state = next(iter(status.state), "unknown")
                states[state] = states.get(state, 0) + 1
        for state, count in sorted(states.items()):
            containers.add_metric((state,), count)
        return _exposition([build, name, pods, containers])

    async def _summary(self, _: web.Request, call: Call) -> web.Response:
        node, pods = self._read(call)
        now = iso(int(call.at))
        body = {
            "node": {"nodeName": call.listener.node, **_stats(node, now)},
            "pods": [_pod_stats(pod, uses, now) for pod, uses in pods],
        }
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")


async def _nothing(_: web.Request, __: Call) -> web.Response:
    """Answer a scraper of stock kubelets, whose target would count as down otherwise."""
    return web.Response(body=b"", headers=_TEXT)


def _exposition(metrics: Iterable[Metric]) -> web.Response:
    return web.Response(body=generate_latest(Collected(metrics)), headers=_TEXT)


def _resource_metrics(node: Use, pods: Iterable[tuple[Pod, dict[str, Use]]]) -> Iterator[Metric]:
    of_pod, of_container = ("namespace", "pod"), ("container", "namespace", "pod")
    yield CounterMetricFamily("node_cpu_usage_seconds", "CPU time of the Node's devices.", value=_cpu_s(node))
    yield GaugeMetricFamily("node_memory_working_set_bytes", "Memory of the Node's devices.", value=_memory(node))
    pod_cpu = CounterMetricFamily("pod_cpu_usage_seconds", "CPU time of the lablet's devices.", labels=of_pod)
    pod_memory = GaugeMetricFamily("pod_memory_working_set_bytes", "Memory of the lablet's devices.", labels=of_pod)
    cpu = CounterMetricFamily("container_cpu_usage_seconds", "CPU time of the device.", labels=of_container)
    memory = GaugeMetricFamily("container_memory_working_set_bytes", "Memory of the device.", labels=of_container)
    start = GaugeMetricFamily("container_start_time_seconds", "When the device started.", labels=of_container)
    for pod, uses in pods:
        whole, key = Use(), (pod.metadata.namespace, pod.metadata.name)
        for name, use in uses.items():
            whole.add(use)
            cpu.add_metric((name, *key), _cpu_s(use))
            memory.add_metric((name, *key), _memory(use))
            start.add_metric((name, *key), use.started_at)
        pod_cpu.add_metric(key, _cpu_s(whole))
        pod_memory.add_metric(key, _memory(whole))
    yield from (pod_cpu, pod_memory, cpu, memory, start)
    yield GaugeMetricFamily("resource_scrape_error", "Whether something could not be read.", value=0)


def _cpu_s(use: Use) -> float:
    return max(use.cpu_s, _CPU_S_MIN)


def _memory(use: Use) -> int:
    return max(use.memory_bytes, _BYTES_MIN)


def _stats(use: Use, now: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cpu": {"time": now, "usageNanoCores": use.nanocores, "usageCoreNanoSeconds": int(_cpu_s(use) * 1e9)},
        "memory": {"time": now, "usageBytes": _memory(use), "workingSetBytes": _memory(use)},
    }
    return {"startTime": iso(int(use.started_at)), **found} if use.started_at else found


def _pod_stats(pod: Pod, uses: dict[str, Use], now: str) -> dict[str, Any]:
    meta, whole = pod.metadata, Use()
    for use in uses.values():
        whole.add(use)
    return {
        "podRef": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        **_stats(whole, now),
        "containers": [{"name": name, **_stats(use, now)} for name, use in uses.items()],
    }
