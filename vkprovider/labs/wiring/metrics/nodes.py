"""The metrics of Nodes: which this replica owns, and whether their workers are Ready."""

from collections.abc import Iterator, Mapping

from vkprovider.lablet.models.status import worker_status
from vkprovider.labs.wiring.base import Base
from vkprovider.platform.objects import CustomResource
from vkprovider.platform.runtime.metrics.measure import Measure, Sample, counter, gauge, value
from vkprovider.platform.runtime.ownership import Ownership


def nodes_measures(base: Base, ownership: Ownership) -> Iterator[Measure]:
    """Yield the metrics of Nodes."""
    resources = base.objects.workers.items
    yield gauge(
        "vkprovider_leader",
        "Whether this replica writes what belongs to no worker, such as RuntimeClasses; one replica does.",
        lambda: value(base.membership.leads()),
    )
    yield gauge("vkprovider_owned_nodes", "Nodes of this replica.", lambda: value(len(ownership.epochs)))
    yield gauge(
        "vkprovider_imbalance",
        "Nodes of the replica with most, less those of the one with least; at most 1 unless nodes are changing hands.",
        lambda: value(ownership.plan.imbalance),
    )
    yield gauge(
        "vkprovider_lease_age_seconds",
        "Time since this replica renewed its own Lease (`replica`), and that Lease of its Nodes whose "
        "renewal is longest ago (`node`).",
        lambda: _lease_ages(ownership),
        "lease",
    )
    yield gauge(
        "vkprovider_node_owned",
        "Whether this replica owns the Node of a CMLWorker; exactly one replica should.",
        lambda: (((name,), name in ownership.epochs) for name in resources),
        "worker",
    )
    yield gauge(
        "vkprovider_worker_ready",
        "Whether a CMLWorker's condition Ready is True; every replica reports it for all.",
        lambda: _ready(resources),
        "worker",
    )
    yield counter(
        "vkprovider_fenced_total",
        "Side effects that were stopped because the Node was not this replica's (any more).",
        lambda: value(ownership.fenced_total),
    )
    yield counter(
        "vkprovider_takeovers_total", "Nodes taken from a silent replica.", lambda: value(ownership.takeovers_total)
    )


def _ready(resources: Mapping[str, CustomResource]) -> Iterator[Sample]:
    """Yield which CMLWorkers are Ready."""
    for name, resource in resources.items():
        yield (name,), worker_status(resource).is_ready


def _lease_ages(ownership: Ownership) -> Iterator[Sample]:
    """Yield how long ago Leases were renewed."""
    if (age_s := ownership.membership.lease_age_s) is not None:
        yield ("replica",), age_s
    yield ("node",), ownership.oldest_renewal_s
