"""The metrics of every process: whether it is ready, its queues, watches, requests, Events and memory.

`process_*` are those of Prometheus' clients.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from vkprovider import __version__
from vkprovider.platform.kube.informer import Informer
from vkprovider.platform.kube.queue import KeyedQueue
from vkprovider.platform.runtime.context import Context
from vkprovider.platform.runtime.membership import Membership
from vkprovider.platform.runtime.metrics import Measure, Reader, Sample, by_name, counter, gauge, histogram, value

Queues = Collection[KeyedQueue[str]]
Informers = Collection[Informer[Any]]


def process_measures(
    ctx: Context,
    membership: Membership,
    informers: Informers,
    queues: Queues,
    *,
    refusals: Mapping[str, int],
    ready: Callable[[], bool],
) -> Iterable[Measure]:
    """Return the metrics of a process.

    Args:
        ctx: The process.
        membership: The process among the others.
        informers: What it follows.
        queues: Its queues.
        refusals: Requests to its page that were refused, by reason.
        ready: Returns whether it is ready; called at every scrape.
    """
    yield gauge("vkprovider_build_info", "1; the version is the label.", lambda: [((__version__,), 1)], "version")
    yield gauge(
        "vkprovider_ready",
        "Whether the replica knows all objects that it decides from and could renew its Lease.",
        lambda: value(ready()),
    )
    yield gauge(
        "vkprovider_replica_fenced",
        "Whether the replica must not act, because it could not renew its Lease for too long.",
        lambda: value(membership.is_fenced),
    )
    yield gauge(
        "vkprovider_clock_skew_seconds",
        "By how much the clock of this machine is ahead of the API server's, which decides when time is over.",
        lambda: value(ctx.skew_s()),
    )
    yield counter(
        "vkprovider_http_refusals_total",
        "Requests to the HTTP page that were refused, by reason.",
        lambda: by_name(refusals),
        "reason",
    )
    yield from _of_queues(queues)
    yield from _of_requests(ctx)
    yield from _of_informers(informers)
    yield from _of_events(ctx)
    yield gauge("vkprovider_tasks", "Tasks in the replica's event loop.", lambda: value(len(asyncio.all_tasks())))
    yield counter("process_cpu_seconds_total", "CPU time of the replica.")
    yield gauge("process_resident_memory_bytes", "Resident memory of the replica.")
    yield gauge("process_virtual_memory_bytes", "Virtual memory of the replica.")
    yield gauge("process_start_time_seconds", "When the replica began, seconds since 1970.")
    yield gauge("process_open_fds", "Open files and connections of the replica.")
    yield gauge("process_max_fds", "How many it may open.")


def _of_queues(queues: Queues) -> Iterator[Measure]:
    def ran() -> Iterator[Sample]:
        return (((q.name, outcome), took_s) for q in queues for outcome, took_s in q.ran_s.items())

    yield gauge(
        "vkprovider_queue_depth",
        "Keys that are due and wait for their turn.",
        lambda: (((queue.name,), queue.depth) for queue in queues),
        "queue",
    )
    yield gauge(
        "vkprovider_queue_oldest_age_seconds",
        "For how long the first of them has been due.",
        lambda: (((queue.name,), queue.oldest_age_s) for queue in queues),
        "queue",
    )
    yield counter(
        "vkprovider_queue_rushes_total",
        "Turns that asked for the next one at once and were made to wait, longer each time in a row.",
        lambda: (((queue.name,), queue.rushes_total) for queue in queues),
        "queue",
    )
    yield histogram(
        "vkprovider_queue_wait_seconds",
        "Time between a key's being due and its turn.",
        lambda: (((queue.name,), queue.waited_s) for queue in queues),
        "queue",
    )
    yield histogram(
        "vkprovider_reconcile_seconds",
        "Time of a turn; the result is `ok`, `error` or `fenced`.",
        ran,
        "queue",
        "result",
    )


def _of_requests(ctx: Context) -> Iterator[Measure]:
    kube = ctx.kube
    yield counter(
        "vkprovider_api_requests_total",
        "Requests to the API server, watches included.",
        lambda: value(kube.requests_total),
    )
    yield counter(
        "vkprovider_api_errors_total",
        "Requests that the API server refused, by status, or that got no answer (`none`).",
        lambda: by_name(kube.errors),
        "code",
    )
    yield counter(
        "vkprovider_api_writes_total",
        "Writes by resource and verb, as RBAC names them.",
        kube.writes.items,
        "resource",
        "verb",
    )
    yield gauge(
        "vkprovider_api_in_flight",
        "Requests that await an answer of the API server, without Leases, claims and watches.",
        lambda: value(kube.flow.in_flight),
    )
    yield gauge(
        "vkprovider_api_in_flight_limit",
        "How many of them there may be now; fewer after the API server refused one or did not answer.",
        lambda: value(kube.flow.limit),
    )
    yield gauge(
        "vkprovider_api_waiting",
        "Requests that wait to be sent, by lane: first `result`, which a user or controller acts on, then `work`, then "
        "`news`.",
        lambda: by_name(kube.flow.waiting),
        "lane",
    )


def _of_informers(informers: Informers) -> Iterator[Measure]:
    def each(read: Callable[[Informer[Any]], float]) -> Reader:
        return lambda: (((informer.name,), read(informer)) for informer in informers)

    yield counter(
        "vkprovider_watch_restarts_total",
        "Watches begun after the first; a few per hour are normal.",
        each(lambda informer: informer.restarts_total),
        "informer",
    )
    yield counter(
        "vkprovider_relists_total",
        "Complete lists after the first.",
        each(lambda informer: informer.relists_total),
        "informer",
    )
    yield gauge(
        "vkprovider_watch_silence_seconds",
        "Time since the API server was last heard on a watch; bookmarks come every minute.",
        each(_silence_s),
        "informer",
    )
    yield counter(
        "vkprovider_decode_errors_total",
        "Objects skipped because they could not be read.",
        each(lambda informer: informer.decode_errors_total),
        "informer",
    )


def _silence_s(informer: Informer[Any]) -> float:
    """Return for how long an informer has received nothing; 0 before the first list."""
    heard_s = informer.last_event_monotonic_s
    return time.monotonic() - heard_s if heard_s else 0.0


def _of_events(ctx: Context) -> Iterator[Measure]:
    events = ctx.events
    yield counter(
        "vkprovider_events_written_total",
        "Kubernetes Events created or counted up.",
        lambda: value(events.written_total),
    )
    yield counter(
        "vkprovider_warnings_total",
        "Warnings about objects, by the reason of their Event; repeated ones count, too.",
        lambda: by_name(events.warnings_total),
        "reason",
    )
    yield counter(
        "vkprovider_events_dropped_total",
        "Kubernetes Events never written.",
        lambda: value(events.dropped_total),
    )
