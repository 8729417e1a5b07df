"""A metric: how it is declared, and the samples that its reader returns."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

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
