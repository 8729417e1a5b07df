"""Metrics for Prometheus: how each is declared, and the counts of one process, read at every scrape."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from vkprovider.platform.histogram import Histogram

Kind = Literal["counter", "gauge", "histogram"]
Sample = tuple[tuple[str, ...], float | Histogram]
"""Values of the labels, in their order, and the count."""
Reader = Callable[[], Iterable[Sample]]


class Measure(NamedTuple):
    """One metric.

    Attributes:
        help: One sentence.
        read: Returns its samples; called at every scrape; None if prometheus_client collects them by itself.
        labels: Their names.
    """

    name: str
    kind: Kind
    help: str
    read: Reader | None
    labels: tuple[str, ...]


def counter(name: str, text: str, read: Reader | None = None, *labels: str) -> Measure:
    """Return a metric that only grows."""
    return Measure(name, "counter", text, read, labels)


def gauge(name: str, text: str, read: Reader | None = None, *labels: str) -> Measure:
    """Return a metric that goes up and down."""
    return Measure(name, "gauge", text, read, labels)


def histogram(name: str, text: str, read: Reader, *labels: str) -> Measure:
    """Return a metric that counts values by size."""
    return Measure(name, "histogram", text, read, labels)


def value(value: float) -> Iterator[Sample]:
    """Yield the one sample of a metric without labels."""
    yield (), value


def by_name(counts: Mapping[str, float | Histogram]) -> Iterator[Sample]:
    """Return samples by the one label."""
    return (((name,), count) for name, count in counts.items())


_FAMILIES: Final[dict[Kind, type[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class MeasureCollector(Collector):
    """Turns the counts of one process into metrics; costs nothing between two scrapes."""

    def __init__(self, measures: Sequence[Measure]) -> None:
        self._measures = [measure for measure in measures if measure.read is not None]

    def collect(self) -> Iterator[Metric]:
        """Read all counts."""
        return map(_family, self._measures)

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without their values: registering must not need a process that runs."""
        return (_FAMILIES[m.kind](m.name, m.help, labels=m.labels) for m in self._measures)


def _family(measure: Measure) -> Metric:
    family = _FAMILIES[measure.kind](measure.name, measure.help, labels=measure.labels)
    assert measure.read is not None  # noqa: S101 (asked only then)
    for labels, value in measure.read():
        if isinstance(family, HistogramMetricFamily):
            assert isinstance(value, Histogram)  # noqa: S101 (the measure says so)
            family.add_metric(labels, buckets=value.buckets(), sum_value=value.sum)
        else:
            assert not isinstance(value, Histogram)  # noqa: S101 (same)
            family.add_metric(labels, float(value))
    return family


def registry_of(measures: Sequence[Measure]) -> CollectorRegistry:
    """Return a registry for the measures of one process."""
    registry = CollectorRegistry()
    registry.register(MeasureCollector(measures))
    ProcessCollector(registry=registry)
    return registry


class Collected(Collector):
    """Metrics that were just collected."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self._metrics


async def exposition(registry: CollectorRegistry) -> bytes:
    """Read all counts at once, and format them in a thread: of ten thousand series that takes a third of a second.

    The event loop renews Leases meanwhile.
    """
    collected = Collected(list(registry.collect()))
    return await asyncio.to_thread(generate_latest, collected)
