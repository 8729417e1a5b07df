"""Metrics for Prometheus: the counts of one replica, read at every scrape; see `measures` for the table."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from vkprovider.api.histogram import Histogram
from vkprovider.app.metrics.measure import Kind, Measure
from vkprovider.app.metrics.measures import MEASURES
from vkprovider.app.metrics.readings import watch_instances
from vkprovider.app.replica.run import Replica

_FAMILIES: Final[dict[Kind, type[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class ReplicaCollector(Collector):
    """Turns the counts of one replica into metrics; costs nothing between two scrapes."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def collect(self) -> Iterator[Metric]:
        """Read all counts."""
        return (_family(measure, self._replica) for measure in MEASURES if measure.read is not None)

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without their values: registering must not need a running replica."""
        return (_FAMILIES[m.kind](m.name, m.help, labels=m.labels) for m in MEASURES if m.read is not None)


def _family(measure: Measure, replica: Replica) -> Metric:
    family = _FAMILIES[measure.kind](measure.name, measure.help, labels=measure.labels)
    assert measure.read is not None  # noqa: S101 (asked only then)
    for labels, value in measure.read(replica):
        if isinstance(family, HistogramMetricFamily):
            assert isinstance(value, Histogram)  # noqa: S101 (the table says so)
            family.add_metric(labels, buckets=value.buckets(), sum_value=value.sum)
        else:
            assert not isinstance(value, Histogram)  # noqa: S101 (same)
            family.add_metric(labels, float(value))
    return family


def registry_of(replica: Replica) -> CollectorRegistry:
    """Return a registry for one replica."""
    watch_instances(replica)
    registry = CollectorRegistry()
    registry.register(ReplicaCollector(replica))
    ProcessCollector(registry=registry)
    return registry


class _Collected(Collector):
    """Metrics that were just collected."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


async def exposition(registry: CollectorRegistry) -> bytes:
    """Read all counts at once, and format them in a thread: of ten thousand lablets that takes a third of a second.

    The event loop renews Leases meanwhile.
    """
    collected = _Collected(list(registry.collect()))
    return await asyncio.to_thread(generate_latest, collected)
