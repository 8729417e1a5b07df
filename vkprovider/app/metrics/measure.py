"""What a metric is, and how one is declared."""

from typing import Literal, NamedTuple

from vkprovider.app.metrics.readings import Reader

Kind = Literal["counter", "gauge", "histogram"]


class Measure(NamedTuple):
    """One metric.

    Attributes:
        help: One sentence.
        read: Returns its samples; None if prometheus_client collects them by itself.
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
