"""The readers of metrics: each returns samples from the counts of queues, informers, controllers and clients."""

import asyncio
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from vkprovider.api import labs as words
from vkprovider.api.histogram import Histogram
from vkprovider.app.replica.run import Replica
from vkprovider.domain.lablet.lifecycle import State
from vkprovider.kube.informer import Informer
from vkprovider.kube.queue import KeyedQueue

Sample = tuple[tuple[str, ...], float | Histogram]
"""Values of the labels, in their order, and the count."""


Reader = Callable[[Replica], Iterable[Sample]]


def value(value: float) -> Iterator[Sample]:
    """Yield the one sample of a metric without labels."""
    yield (), value


def by_name(counts: Mapping[str, float | Histogram]) -> Iterator[Sample]:
    """Return samples by the one label."""
    return (((name,), count) for name, count in counts.items())


def of_queues(read: Callable[[KeyedQueue[str]], float | Histogram]) -> Reader:
    """Return a reader that reads `read` of every measured queue."""
    return lambda replica: (((name,), read(queue)) for name, queue in replica.queues.measured.items())


def of_informers(read: Callable[[Informer[Any]], float]) -> Reader:
    """Return a reader that reads `read` of every informer."""
    return lambda replica: (((i.name,), read(i)) for i in replica.informers)


def reconciles(replica: Replica) -> Iterator[Sample]:
    """Yield the durations of runs, by queue and outcome."""
    for name, queue in replica.queues.measured.items():
        for outcome, histogram in queue.ran_s.items():
            yield (name, outcome), histogram


def lab_starts(replica: Replica) -> Iterator[Sample]:
    """Return how long labs took to boot, of the CMLWorkers that exist."""
    starts = replica.counters.lab_starts_s
    return by_name({worker: starts[worker] for worker in starts if worker in replica.objects.workers.items})


def booted(replica: Replica) -> Iterator[Sample]:
    """Count the booted devices of every lab of this replica."""
    for worker in replica.fleet.items.values():
        for claim in worker.claims.claims.values():
            if claim.lab_id:
                devices = worker.seen.devices.get(claim.lab_id, ())
                yield (claim.pod_uid, claim.lab_id), sum(device.state == words.BOOTED for device in devices)


def lablets(replica: Replica) -> Iterator[Sample]:
    """Count this replica's lablets by state; those of other replicas are known too, and counted there."""
    ours = replica.fleet.items
    states = Tally(lablet.state for lablet in replica.index.items.values() if lablet.worker in ours)
    return by_name({str(state): states[state] for state in State} | {"unreported": states[None]})


def ready(replica: Replica) -> Iterator[Sample]:
    """Yield which CMLWorkers are Ready."""
    for name, resource in replica.objects.workers.items.items():
        conditions = resource.status.get("conditions", [])
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
        yield (name,), ready


def agents(replica: Replica) -> Iterator[Sample]:
    """Yield how many agents are in each state, by tunnel."""
    for kind, states in replica.tunnels.states().items():
        for state in ("there", "silent", "left"):
            yield (kind, state), states[state]


def tunnel_counts(replica: Replica) -> Iterator[Sample]:
    """Yield what became of the frames of each tunnel."""
    for kind, hub in replica.tunnels.hubs.items():
        for what in ("sent", "dropped", "refused", "disconnected"):
            yield (kind, what), hub.counts[what]


def watch_instances(replica: Replica) -> None:
    """Make the queue of lablets record durations by lablet from now on."""
    replica.queues.lablets.ran_s_of = {}


def lease_ages(replica: Replica) -> Iterator[Sample]:
    """Yield how long ago Leases were renewed."""
    if (age_s := replica.ownership.membership.lease_age_s) is not None:
        yield ("replica",), age_s
    yield ("node",), replica.ownership.oldest_renewal_s


def tasks(_: Replica) -> Iterator[Sample]:
    """Count the tasks of the event loop."""
    return value(len(asyncio.all_tasks()))


def silence_s(informer: Informer[Any]) -> float:
    """Return for how long an informer has received nothing; 0 before the first list."""
    heard_s = informer.last_event_monotonic_s
    return time.monotonic() - heard_s if heard_s else 0.0
